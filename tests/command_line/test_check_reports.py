"""The reports of `check`: each format against its published schema, fixes, changed files, the baseline. Real workers, real torch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import xmlschema

from command_line.commands import ROOT, SHAPELENS, run
from shapelens.report.findings import json_document

SCHEMAS = Path(__file__).parent.with_name("schemas")

# Eleven kinds of findings; each line says which.
MANY = """
import einopz
import torch
import torch.nn.functional as F
from torch import nn


# shapelens: Net()(f32[B:2, 3, 32, 32])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 5)  # conv-in-channels
        self.norm = nn.BatchNorm2d(7)  # norm-num-features
        self.fc = nn.Linear(16, 10)  # linear-in-features
        self.unused = nn.Linear(84, 10)  # unused-layer

    def forward(self, x):
        y = self.norm(self.conv(x))
        z = y.view(-1, 399)  # view
        a = torch.cat([x, x[:, :, 1:]], 1)  # cat
        b = x[0] @ x[1].transpose(1, 2)[:, :31]  # matmul
        c = x + x[:, :2]  # broadcast
        d = x.permute(0, 2, 1)  # dim
        e = x[:, 3]  # index
        if x.sum() > 0:  # data-dependent
            y = y + 1
        g = x.sise(0)  # exception
        return self.fc(y.flatten(1)[:, :20])
"""
WRONG = (ROOT / "fixtures" / "recipe" / "wrong_in_features.py").read_text()
RIGHT = WRONG.replace("16 * 6 * 6", "16 * 5 * 5")


def check(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run("check", *arguments, "--interpreter", sys.executable, cwd=cwd, **environment)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of many findings, one that is right, and one with a fix that works, in a folder with a blank in its name."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "many.py").write_text(MANY)
    (folder / "right.py").write_text(RIGHT)
    (folder / "my models").mkdir()
    (folder / "my models" / "net.py").write_text(WRONG)
    return folder


def report(many: Path, form: str) -> str:
    """What a format says of the folder, which is run once for all formats with fixes, and once for those without."""
    done = check(".", "--format", form, cwd=many, SHAPELENS_CACHE_DIR=str(many.with_name(f"{many.name}-cache")))
    assert done.returncode == 1 and "files checked: " in done.stderr, done.stderr
    return done.stdout


def lines_of(codes: set[str]) -> set[tuple[str, int]]:
    """Where MANY says that these codes are."""
    lines = enumerate(MANY.splitlines(), start=1)
    return {(code, number) for number, line in lines for code in [line.partition("  # ")[2]] if code in codes}


@pytest.mark.core
@pytest.mark.slow("fills the cache that the other formats share")
def test_sarif_is_valid_and_has_rules_places_fingerprints_and_fixes(many: Path) -> None:
    log = json.loads(report(many, "sarif"))
    schema = json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())
    jsonschema.Draft4Validator(schema).validate(log)
    (ran,) = log["runs"]
    results = ran["results"]
    codes = {each["ruleId"] for each in results}
    assert len(codes) >= 10, codes
    assert [ran["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in results] == [each["ruleId"] for each in results]
    fingerprints = [each["partialFingerprints"]["shapelens/v1"] for each in results]
    assert len(set(fingerprints)) == len(fingerprints)
    places = [each["locations"][0]["physicalLocation"] for each in results]
    assert {place["artifactLocation"]["uri"] for place in places} == {"many.py", "my%20models/net.py"}
    found = {(each["ruleId"], place["region"]["startLine"]) for each, place in zip(results, places, strict=True)}
    assert lines_of({"conv-in-channels", "cat", "broadcast", "index"}) <= found
    (wrong,) = (each for each in results if "my%20models" in json.dumps(each["locations"]))
    (change,) = wrong["fixes"][0]["artifactChanges"]
    (edit,) = change["replacements"]
    line = WRONG.splitlines()[edit["deletedRegion"]["startLine"] - 1]
    assert line[edit["deletedRegion"]["startColumn"] - 1 : edit["deletedRegion"]["endColumn"] - 1] == "16 * 6 * 6"
    assert edit["insertedContent"]["text"] == "16 * 5 * 5"
    assert wrong["relatedLocations"][0]["message"]["text"].startswith("gets [B, 400]")


@pytest.mark.core
def test_json_is_as_its_schema_says(many: Path) -> None:
    document = json.loads(report(many, "json"))
    jsonschema.Draft202012Validator(json_document.schema()).validate(document)
    files = {each["file"]: each for each in document["files"]}
    assert files["right.py"]["findings"] == [] and files["right.py"]["example"] == "given"
    (wrong,) = files["my models/net.py"]["findings"]
    assert wrong["scope"] == "Net.__init__" and wrong["fix"]["edits"][0]["new_text"] == "16 * 5 * 5"


@pytest.mark.core
def test_junit_is_valid_and_counts_errors_and_warnings_as_failures(many: Path) -> None:
    text = report(many, "junit")
    suites = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd")).to_dict(text)["testsuite"]
    by_name = {suite["@name"]: suite for suite in suites}
    assert by_name["right.py"]["@failures"] == "0" and len(by_name["right.py"]["testcase"]) == 1
    assert int(by_name["many.py"]["@failures"]) >= 8


@pytest.mark.core
def test_gitlab_has_what_its_documentation_asks_for(many: Path) -> None:
    issues = json.loads(report(many, "gitlab"))
    assert {"description", "check_name", "fingerprint", "severity", "location"} == set(issues[0])
    assert {issue["severity"] for issue in issues} <= {"info", "minor", "major", "critical", "blocker"}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)


@pytest.mark.core
def test_github_annotates_lines(many: Path) -> None:
    lines = report(many, "github").splitlines()
    start = "::error file=my models/net.py,line=15,col=30,endLine=15,endColumn=39,title=ShapeLens (linear-in-features)::fc1 gets 400"
    assert any(line.startswith(start) for line in lines)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


def test_a_fingerprint_stays_when_lines_move_and_numbers_change(tmp_path: Path) -> None:
    def fingerprints() -> list[tuple[str, int]]:
        document = json.loads(check("net.py", "--format", "json", cwd=tmp_path).stdout)
        return [(each["fingerprint"], each["line"]) for each in document["files"][0]["findings"]]

    (tmp_path / "net.py").write_text(WRONG)
    ((before, line),) = fingerprints()
    (tmp_path / "net.py").write_text("# A line more.\n" + WRONG.replace("16 * 6 * 6", "16 * 7 * 7"))
    assert fingerprints() == [(before, line + 1)]


@pytest.mark.core
def test_fixes_are_shown_as_a_diff_and_applied(tmp_path: Path) -> None:
    text = WRONG.replace("\n", "\r\n")
    (tmp_path / "net.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    shown = check("net.py", "--diff", cwd=tmp_path)
    assert shown.returncode == 1 and "-        self.fc1 = nn.Linear(16 * 6 * 6, 120)" in shown.stdout
    assert "+        self.fc1 = nn.Linear(16 * 5 * 5, 120)" in shown.stdout and "1 error" in shown.stderr
    assert (tmp_path / "net.py").read_bytes().decode("utf-8-sig") == text
    done = check("net.py", "--fix", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "net.py:15: fixed linear-in-features: Change in_features to 16 * 5 * 5",
        "1 file checked: nothing is wrong",
    ]
    assert (tmp_path / "net.py").read_bytes() == b"\xef\xbb\xbf" + text.replace("16 * 6 * 6", "16 * 5 * 5").encode()


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_changed_files_are_checked_with_those_that_import_them(tmp_path: Path) -> None:
    head = "from torch import nn\n\n\nclass Head(nn.Linear):\n    def __init__(self):\n        super().__init__(24, 4)\n"
    (tmp_path / "head.py").write_text(head)
    net = "from torch import nn\n\nfrom head import Head\n\n\n# shapelens: Net()(f32[B:2, 24])\n"
    net += "class Net(nn.Module):\n    def __init__(self):\n"
    net += "        super().__init__()\n        self.head = Head()\n\n    def forward(self, x):\n        return self.head(x)\n"
    (tmp_path / "net.py").write_text(net)
    (tmp_path / "other.py").write_text(WRONG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    assert check(".", "--changed", cwd=tmp_path).stdout == "0 files checked: there was nothing to run\n"
    (tmp_path / "head.py").write_text(head.replace("24", "25"))
    (tmp_path / "new.py").write_text(RIGHT)
    done = check(".", "--changed", cwd=tmp_path)
    assert done.returncode == 1 and "25" in done.stdout and "other.py" not in done.stdout, done.stdout
    assert "3 files checked: 1 error" in done.stdout or "2 files checked: 1 error" in done.stdout
    refused = check(".", "--since", "no-such-branch", cwd=tmp_path)
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1 and "no-such-branch" in refused.stderr


@pytest.mark.core
def test_a_baseline_knows_what_was_there_and_shrinks(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(WRONG)
    (tmp_path / "pyproject.toml").write_text('[tool.shapelens]\nbaseline = "known.json"\n')
    refused = check("net.py", cwd=tmp_path)
    assert refused.returncode == 2 and "known.json: no such file" in refused.stderr
    written = check("net.py", "--update-baseline", cwd=tmp_path)
    assert written.returncode == 0 and "1 finding written to" in written.stdout
    known = check("net.py", cwd=tmp_path)
    assert (known.returncode, known.stdout) == (0, "1 file checked: nothing new is wrong; 1 known finding is left out\n")
    two = WRONG.replace("nn.Linear(120, 84)", "nn.Linear(121, 84)")
    (tmp_path / "net.py").write_text("# A line more.\n" + two)
    done = check("net.py", cwd=tmp_path)
    assert done.returncode == 1 and "fc2 gets 120" in done.stdout and "fc1 gets" not in done.stdout
    suppressed = json.loads(check("net.py", "--format", "sarif", cwd=tmp_path).stdout)["runs"][0]["results"]
    assert ["suppressions" in each for each in suppressed] == [True, False]
    (tmp_path / "net.py").write_text(RIGHT)
    assert "`shapelens check --prune`" in check("net.py", cwd=tmp_path, CI="1").stdout
    assert "1 finding that is gone was taken out of" in check("net.py", cwd=tmp_path).stdout
    assert json.loads((tmp_path / "known.json").read_text()) == {"version": 1, "findings": {}}
    (tmp_path / "net.py").write_text(WRONG)
    assert check("net.py", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("content", ["no JSON", "[]", '{"version": 1, "findings": {"a.py": [{}]}}', '{"version": 9}', "[" * 100_000])
def test_a_baseline_that_cannot_be_read_is_refused_in_a_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "net.py").write_text(RIGHT)
    (tmp_path / "known.json").write_text(content)
    done = check("net.py", "--baseline", "known.json", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("shapelens: known.json: ") and len(done.stderr.splitlines()) == 1


def test_a_program_is_checked_too(tmp_path: Path) -> None:
    script = "import torch\nfrom torch import nn\n\nmodel = nn.Linear(8, 4)\n"
    script += "for step in range(3):\n    x = torch.randn(16, 9)\n    loss = model(x).sum()\n"
    (tmp_path / "train.py").write_text(script)
    done = check("train.py", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout.startswith("train.py:4:19: error linear-in-features: "), done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends it")
def test_what_changes_is_checked_again_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(WRONG)
    command = [str(SHAPELENS), "check", ".", "--watch", "--interpreter", sys.executable]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}

    def heed_interrupts() -> None:
        """What is started in the background inherits that they are ignored."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, cwd=tmp_path, text=True, encoding="utf-8", preexec_fn=heed_interrupts, **pipes) as watching:
        printed = watching.stdout
        assert printed is not None

        def said() -> str:
            """What is printed up to the line of counts."""
            text = ""
            while "checked:" not in text:
                line = printed.readline()
                assert line, f"it ended after {text!r}"
                text += line
            return text

        assert "linear-in-features" in said()
        (tmp_path / "net.py").write_text(RIGHT)
        assert said() == "1 file checked: nothing is wrong\n"
        cell = {"cell_type": "code", "metadata": {}, "source": "import torch\nx = torch.rand(2, 3) @ torch.rand(2, 3)", "outputs": []}
        (tmp_path / "cells.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        assert "cells.ipynb" in said()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=30) in (1, 130)
