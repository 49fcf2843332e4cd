"""What runs ShapeLens in pipelines: each file is as its published schema says, the commands of the action and the hook do their work.

No runner of GitHub is here: what the action's steps run is taken from its YAML, and run by bash as a runner does, with the variables and
the files that it gives. The step that uploads is another action's.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

yaml: Any = importlib.import_module("yaml" if importlib.util.find_spec("yaml") else "yaml_ft")

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = Path(__file__).with_name("schemas")
RECIPE = ROOT / "fixtures" / "recipe"
BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # how a runner starts `shell: bash`
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


def parsed(text: str) -> Any:
    """YAML as GitHub and GitLab read it: `on` is a word."""
    document = yaml.safe_load(text)
    return {"on" if key is True else key: value for key, value in document.items()} if isinstance(document, dict) else document


def action() -> Any:
    return parsed((ROOT / "action.yml").read_text(encoding="utf-8"))


def workflow() -> Any:
    return parsed((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))


def blocks_of_documentation() -> list[Any]:
    text = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
    return [parsed(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def validate(document: Any, schema: str) -> None:
    content = json.loads((SCHEMAS / schema).read_text(encoding="utf-8"))
    jsonschema.validators.validator_for(content)(content).validate(document)


@pytest.mark.core
def test_the_action_and_the_workflow_are_as_their_schemas_say() -> None:
    validate(action(), "github-actions.json")
    validate(workflow(), "github-workflows.json")


@pytest.mark.core
def test_the_documentation_is_as_the_schemas_say() -> None:
    github, gitlab, _ = blocks_of_documentation()
    job = {"runs-on": "ubuntu-latest", "permissions": github["permissions"], "steps": github["steps"]}
    validate({"on": "push", "jobs": {"shapes": job}}, "github-workflows.json")
    validate(gitlab, "gitlab-ci.json")
    (used,) = (step for step in github["steps"] if "shapelens" in step.get("uses", ""))
    assert set(used["with"]) <= set(action()["inputs"])


@pytest.mark.core
def test_the_workflow_runs_what_is_there() -> None:
    runs = [step["run"] for job in workflow()["jobs"].values() for step in job["steps"] if "run" in step]
    paths = [word for run in runs for word in shlex.split(run) if "/" in word or word.endswith((".lock", ".py"))]
    assert len(paths) > 5
    assert all((ROOT / path).exists() for path in paths), paths
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


class Runner:
    """Does the steps of the action that run a command, as a runner does."""

    def __init__(self, workspace: Path, temporary: Path, inputs: dict[str, str]) -> None:
        self._workspace = workspace
        self._files = {name: temporary / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
        for file in self._files.values():
            file.touch()
        defaults = {name: str(each.get("default", "")) for name, each in action()["inputs"].items()}
        assert set(inputs) <= set(defaults)
        self._context = {"github.action_path": str(ROOT), **{f"inputs.{name}": value for name, value in {**defaults, **inputs}.items()}}
        # The action installs into an environment of its own; what the package needs comes from this one, so that nothing is fetched.
        needs = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": needs}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, **offline, "PATH": path, "CI": "true", "RUNNER_TEMP": str(temporary)}
        self._environment.update({name: str(file) for name, file in self._files.items()})
        self._environment.update(said(self._files["GITHUB_ENV"]))
        self.outputs: dict[str, str] = {}

    def run(self, steps: slice) -> subprocess.CompletedProcess[str]:
        """Do these of the steps, up to the first that fails; the last one that was done."""
        for step in [step for step in action()["runs"]["steps"] if "run" in step][steps]:
            assert step["shell"] == "bash"
            given = {name: EXPRESSION.sub(lambda match: self._context[match[1]], value) for name, value in step["env"].items()}
            assert not EXPRESSION.search(step["run"])  # An input in the text of a script is code of whoever gives it.
            script = self._files["GITHUB_ENV"].with_name("step.sh")
            script.write_text(step["run"])
            done = subprocess.run(
                [*BASH, str(script)],
                cwd=self._workspace,
                env={**self._environment, **given},
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            self._environment.update(said(self._files["GITHUB_ENV"]))
            self.outputs.update(said(self._files["GITHUB_OUTPUT"]))
            if done.returncode:
                break
        return done


def said(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a runner that has done the first step: ShapeLens is installed, into an environment of its own."""
    temporary = tmp_path_factory.mktemp("runner") / "runner temp"
    temporary.mkdir()
    done = Runner(temporary, temporary, {}).run(slice(1))
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(said(temporary / "GITHUB_ENV")["SHAPELENS"]).exists()
    return temporary


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with a right and a wrong model, in a folder with a blank in its name."""
    folder = tmp_path / "a repository"
    (folder / "src").mkdir(parents=True)
    shutil.copy(RECIPE / "wrong_in_features.py", folder / "src" / "wrong.py")
    shutil.copy(RECIPE / "recipe.py", folder / "right.py")
    return folder


@pytest.mark.slow("installs the package as the action does")
@pytest.mark.timeout(300)  # An environment is made, and torch started twice.
@pytest.mark.skipif(shutil.which("bash") is None, reason="a runner has bash")
def test_the_action_annotates_lines_and_fails(workspace: Path, installed: Path) -> None:
    runner = Runner(workspace, installed, {"paths": "src right.py", "arguments": "--no-cache", "sarif": "true"})
    done = runner.run(slice(1, None))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=src/wrong.py,line=15" in done.stdout
    log = json.loads(Path(runner.outputs["sarif-file"]).read_text(encoding="utf-8"))
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "linear-in-features" and result["fixes"]
    assert EXPRESSION.findall(action()["outputs"]["sarif-file"]["value"]) == ["steps.check.outputs.sarif-file"]


@pytest.mark.timeout(300)  # An environment is made, and torch started twice.
@pytest.mark.skipif(shutil.which("bash") is None, reason="a runner has bash")
def test_the_action_ends_well_where_nothing_is_wrong(workspace: Path, installed: Path) -> None:
    done = Runner(workspace, installed, {"paths": "right.py", "interpreter": sys.executable}).run(slice(1, None))
    assert done.returncode == 0 and "::error" not in done.stdout, done.stdout + done.stderr


def committed(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """What the hook says: pre-commit runs the entry with the names of the files behind it, in the environment that is active."""
    (hook,) = parsed((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["language"] == "system" and set(hook["types_or"]) == {"python", "jupyter"}
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    command = [*shlex.split(hook["entry"]), *files]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")


def test_the_hook_fails_on_the_files_that_it_is_given(workspace: Path) -> None:
    wrong = committed(workspace, "src/wrong.py", "right.py")
    assert wrong.returncode == 1 and "src/wrong.py:15:" in wrong.stdout, wrong.stdout + wrong.stderr
    assert committed(workspace, "right.py").returncode == 0


def test_the_hook_checks_notebooks(workspace: Path) -> None:
    shutil.copy(ROOT / "fixtures" / "notebooks" / "mistakes.ipynb", workspace / "cells.ipynb")
    done = committed(workspace, "cells.ipynb")
    assert done.returncode == 1 and "cells.ipynb: cell 3, line 2, column 21: error syntax" in done.stdout
