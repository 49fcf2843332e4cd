"""`doctor`, `report-bug`, `init`, and what all commands have in common."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command_line.commands import RECIPE, ROOT, SHAPELENS, run, run_process
from shapelens import __version__
from shapelens.analysis.findings.codes import CODES
from shapelens.examples.settings import Settings
from shapelens.worker.sandbox import kernel_boundary, system_calls


@pytest.mark.core
def test_doctor_says_that_all_is_well(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--interpreter", sys.executable)
    assert done.returncode == 0, done.stdout
    assert "✗" not in done.stdout and f"✓ ShapeLens {__version__}" in done.stdout and "✓ torch 2." in done.stdout
    assert "✓ a model with one Linear layer ran" in done.stdout


def test_doctor_says_what_the_kernel_holds(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--interpreter", sys.executable)
    held = "✓ the kernel holds each run to it as well, by "
    assert (held + "Landlock" in done.stdout) == bool(kernel_boundary.version())
    assert (held + "seccomp" in done.stdout) == system_calls.are_filtered()
    assert ("C code may" in done.stdout) != (bool(kernel_boundary.version()) and system_calls.are_filtered())


def test_a_report_of_a_bug_has_versions_and_nothing_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "secret_model.py").write_text(RECIPE.read_text())
    (tmp_path / "pyproject.toml").write_text("[tool.shapelens]\ndeadline = 3\nbaseline = 'private.json'\n")
    done = run("report-bug", ".", "--interpreter", sys.executable, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"- ShapeLens {__version__} on Python" in done.stdout and "torch 2." in done.stdout
    assert "settings that are not their defaults: baseline, deadline" in done.stdout
    assert "secret" not in done.stdout and "private" not in done.stdout and str(tmp_path) not in done.stdout


def test_doctor_says_what_to_do(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.shapelens]\ncolour = "red"\n')
    done = run("doctor", ".", "--interpreter", folder / "bare" / "bin" / "python", cwd=folder)
    assert done.returncode == 1
    assert "✗ PyTorch is not installed for" in done.stdout and "-m pip install torch" in done.stdout
    assert "colour" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter here is a shell script")
def test_an_interpreter_that_a_project_names_runs_on_the_users_word_only(tmp_path: Path) -> None:
    project, ran = tmp_path / "project", tmp_path / "ran"
    python = project / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch {ran}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (project / "pyproject.toml").write_text("[tool.shapelens]\ninterpreter = 'env'\ndeadline = 1e308\n")
    (project / "net.py").write_text(RECIPE.read_text())
    for command in ("show", "check"):
        done = run(command, "net.py", cwd=project, XDG_DATA_HOME=str(tmp_path / "home"), SHAPELENS_CACHE_DIR="")
        assert done.returncode == 0 and not ran.exists()
        assert sorted(done.stderr.splitlines()) == [
            f"shapelens: {project}/pyproject.toml names the interpreter {python}, which runs only on your word: --interpreter {python}",
            f"shapelens: settings: {project}/pyproject.toml: deadline must be at most 3600, which holds instead of 1e+308",
        ]
    done = run("check", "net.py", "--interpreter", "env", cwd=project, SHAPELENS_CACHE_DIR="")
    assert done.returncode == 0 and "on your word" not in done.stderr and ran.exists()


@pytest.mark.core
def test_version_and_help_answer_without_torch_or_libcst() -> None:
    assert run_process("--version").stdout == f"shapelens {__version__}\n"
    assert all(command in run_process("--help").stdout for command in ("show", "check", "doctor", "lsp"))
    assert "[tool.shapelens]" in run("init", "--help").stdout, "what stands in brackets is no markup"


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = "# shapelens: Net()\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    text = open('pipe').read()\n"
    (tmp_path / "slow.py").write_text(code)
    process = subprocess.Popen(
        [SHAPELENS, "show", "slow.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores interrupts, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Opening the pipe for writing waits until the model reads from it, and the model waits for what is never written.
    with (tmp_path / "pipe").open("w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.core
def test_rule_prints_the_section_of_a_code_and_all_codes() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    done = run("rule", "outer-product")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("## `outer-product`\n") and done.stdout in page
    assert [line.split()[0] for line in run("rule").stdout.splitlines()] == list(CODES)


@pytest.mark.core
def test_init_adds_settings_that_change_nothing_and_refuses_a_second_time(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"')
    done = run("init", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "x"\n\n[tool.shapelens]\n') and "# memory-limit = 4096\n" in text
    commented = text.replace("\n# ignore", "\nignore").replace("\n# deadline", "\ndeadline").replace("\n# lints", "\nlints")
    (tmp_path / "pyproject.toml").write_text(commented)
    settings = Settings.from_pyproject(str(tmp_path), str(tmp_path))
    assert settings.problems == [] and settings.deadline == Settings().deadline and settings.lints == Settings().lints
    again = run("init", cwd=tmp_path)
    assert again.returncode == 2 and "has a table tool.shapelens already" in again.stderr and len(again.stderr.splitlines()) == 1


COMMENTED = """
import torch
from torch import nn


# shapelens: Net()(f32[B:2, T:7, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, scale=1.0):
        x = self.fc(x)
        y = x.mean(
            1)
        text = "# none"
        z = x + y[:, None]  # kept
        return z
"""


def test_annotate_writes_shapes_behind_lines_and_never_twice(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(COMMENTED, encoding="utf-8")
    shown = run("annotate", file, "--diff")
    assert "+        x = self.fc(x)  # (B, T, 4)\n" in shown.stdout and file.read_text(encoding="utf-8") == COMMENTED
    assert run("annotate", file).stdout == f"{file}: 4 comments written\n"
    written = file.read_text(encoding="utf-8")
    for line in ("def forward(self, x, scale=1.0):  # x: (B, T, 8)\n", "            1)  # (B, 4)\n", "# kept\n", "return z  # (B, T, 4)\n"):
        assert line in written
    assert run("annotate", file).stdout == f"{file}: 0 comments written\n"
    assert file.read_text(encoding="utf-8") == written
    assert "nothing is wrong" in run("check", "--no-cache", file).stdout


def test_annotate_writes_no_guess(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    guessed = COMMENTED.replace("# shapelens: Net()(f32[B:2, T:7, 8])\n", "")
    file.write_text(guessed, encoding="utf-8")
    assert "0 comments written; of Net only a guess is known" in run("annotate", file).stdout
    assert file.read_text(encoding="utf-8") == guessed


SIGNATURES = """
import torch
from torch import nn


# shapelens: Net()(f32[B:2, T:7, 8], bool[B:2, T:7])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, mask: torch.Tensor, other=None):
        x = self.fc(x)
        return self.flat(x, mask), self.pool(x), self.pool(x[:, 0])

    def pool(
        self,
        x,  # what
    ):
        return x.mean(0)

    @torch.no_grad()
    def flat(self, x, mask=None) -> torch.Tensor:
        return x.flatten(0, 1)

    def several(self, x):
        return x, x
"""


def test_annotate_writes_signatures_of_jaxtyping_and_never_twice(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SIGNATURES, encoding="utf-8")
    shown = run("annotate", file, "--style", "jaxtyping", "--diff")
    assert '+    def forward(self, x: Float[torch.Tensor, "b t 8"], mask: Bool[torch.Tensor, "b t"], other=None):\n' in shown.stdout
    assert file.read_text(encoding="utf-8") == SIGNATURES
    assert run("annotate", file, "--style", "jaxtyping").stdout == f"{file}: 7 annotations written\n"
    written = file.read_text(encoding="utf-8")
    assert (
        'flat(self, x: Float[torch.Tensor, "b t 4"], mask: Bool[torch.Tensor, "b t"] | None = None) -> Float[torch.Tensor, "b*t 4"]:'
        in written
    )
    assert '        x: Float[torch.Tensor, "... 4"],  # what\n    ) -> Float[torch.Tensor, "... 4"]:\n' in written
    assert "from __future__ import annotations\n" in written and "if TYPE_CHECKING:\n    from jaxtyping import Bool, Float\n" in written
    ast.parse(written)
    # The style is that of the file now.
    assert run("annotate", file).stdout == f"{file}: 0 annotations written\n"
    assert file.read_text(encoding="utf-8") == written
    assert "nothing is wrong" in run("check", "--no-cache", file).stdout


def test_annotate_leaves_alone_what_evaluates_annotations(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(SIGNATURES.replace("import torch\n", "import torch\nimport torch.jit\n", 1), encoding="utf-8")
    refused = run("annotate", file, "--style", "jaxtyping")
    assert refused.returncode == 2 and "line 3 has to do with annotations that are evaluated" in refused.stderr
