"""The interface for programs, and the pytest plugin: real workers, real torch."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

import shapelens
from forked_workers import forked_workers as forked_workers

ROOT = Path(__file__).resolve().parent.parent
WRONG = ROOT / "fixtures" / "recipe" / "wrong_in_features.py"

SCRIPT = """
import torch
from torch import nn

model = nn.Linear(8, 4)
batch = torch.randn(16, 8)
scores = model(batch)
"""


def shapes(seen: list[shapelens.Seen]) -> dict[str, list[str]]:
    return {each.name: each.named for each in seen}


def test_a_class_of_a_file_is_traced_with_layers_values_and_findings() -> None:
    trace = shapelens.trace(f"{WRONG}::Net")
    assert not trace.ok
    assert shapes(trace.layers)["conv1"] == ["[B, 6, 28, 28]"] and shapes(trace.layers)["fc3"] == ["[B, 10]"]
    assert [value.named for value in trace.values if value.name == "x"][-1] == ["[B, 120]"] or trace.values
    (example,) = trace.examples
    assert (example.cls, example.evidence, example.dims, example.error) == ("Net", "directive", {"B": 1024}, None)
    (finding,) = trace.findings
    assert (finding.code, finding.severity, finding.fix) == ("linear-in-features", "error", "Change in_features to 16 * 5 * 5")
    line = WRONG.read_text().splitlines()[finding.place.line - 1]
    assert line[finding.place.column : finding.place.end_column] == "16 * 6 * 6" and finding.place.file == str(WRONG)


def test_another_example_may_be_given() -> None:
    trace = shapelens.trace(WRONG, "Net()(f32[N:7, 3, 32, 32])")
    assert trace.examples[0].dims == {"N": 7} and shapes(trace.layers)["conv1"] == ["[N, 6, 28, 28]"]
    conv = next(layer for layer in trace.layers if layer.name == "conv1")
    assert conv.shapes == [[7, 6, 28, 28]] and conv.dtype == "float32" and conv.kind == "layer"


def test_a_class_and_an_object_lead_to_their_source(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(WRONG.read_text().replace("16 * 6 * 6", "400"))
    spec = util.spec_from_file_location("nets", tmp_path / "nets.py")
    assert spec is not None and spec.loader is not None
    nets = util.module_from_spec(spec)
    sys.modules["nets"] = nets
    try:
        spec.loader.exec_module(nets)
        assert shapelens.trace(nets.Net).ok and shapelens.trace(nets.Net()).ok
    finally:
        del sys.modules["nets"]


async def test_source_text_is_traced_where_an_event_loop_runs() -> None:
    assert asyncio.get_running_loop().is_running()
    trace = shapelens.trace(SCRIPT)
    assert trace.ok and shapes(trace.values)["scores"] == ["[16, 4]"]
    assert [(each.cls, each.evidence) for each in trace.examples] == [("", "program")]


@pytest.mark.parametrize(
    ("model", "example", "message"),
    [
        ("nothing.py", None, "nothing.py: no such file"),
        (WRONG, "Net()(f32[B:2, ", "the example 'Net()(f32[B:2, ' cannot be read: "),
        (3, None, "the source of 3 is in no file: pass its text"),
    ],
)
def test_what_cannot_be_traced_is_said_in_a_line(model: object, example: str | None, message: str) -> None:
    with pytest.raises(shapelens.TracingError) as error:
        shapelens.trace(model, example)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_an_interpreter_that_is_not_there_is_said() -> None:
    with pytest.raises(shapelens.TracingError, match="/no/python"):
        shapelens.trace(WRONG, interpreter="/no/python")


def test_the_package_loads_nothing_until_it_is_asked() -> None:
    code = "import sys, shapelens; sys.exit(any(name in sys.modules for name in ('torch', 'libcst', 'asyncio')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_pytest_makes_a_test_of_each_class(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG.read_text())
    (tmp_path / "right.py").write_text(WRONG.read_text().replace("16 * 6 * 6", "400") + "\n\nclass Base(nn.Module):\n    pass\n")
    (tmp_path / "script.py").write_text(SCRIPT.replace("16, 8", "16, 9"))
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "test_plain.py").write_text("def test_nothing():\n    pass\n")
    # Without the other plugins of this environment: one of them fails on every test that is no function.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ["-p", "shapelens.pytest_plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-rA", "--shapelens", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment)
    said = done.stdout
    assert done.returncode == 1, said + done.stderr
    assert "FAILED wrong.py::shapes of Net" in said and "PASSED right.py::shapes of Net" in said
    assert "FAILED script.py::shapes of the module" in said and "PASSED wrong.py::shapes of the module" in said
    assert "no example of Base was given or found" in said and "PASSED test_plain.py::test_nothing" in said
    assert "wrong.py:15:30: linear-in-features: fc1 gets 400 features" in said and "Traceback" not in said
    assert "plain.py::shapes" not in said.replace("test_plain.py", "")
    without = subprocess.run([*command[:-2], "."], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert without.returncode == 0 and "1 passed" in without.stdout


IGNORES = """from torch import nn

class Net(nn.Module):  # shapelens: Net()(f32[B:2, 3], f32[B, 3])
    def forward(self, x, mask):
        return 2 * x
"""


def test_what_running_for_real_finds_fails_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(IGNORES.replace("from", "import torch\nfrom", 1))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "shapelens.pytest_plugin", "-p", "no:cacheprovider", "--shapelens", "net.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment).returncode == 0
    done = subprocess.run([*command, "--deep"], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 1
    assert "net.py:5:26: ignored-input: mask is never used" in done.stdout


WRITES = """import pathlib
from torch import nn

class Net(nn.Module):  # shapelens: Net()(f32[B:2, 3])
    def forward(self, x):
        pathlib.Path({!r}).joinpath("made").touch()
        return x
"""


def test_what_is_allowed_is_done_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    file = tmp_path / "net.py"
    file.write_text(WRITES.format(str(folder)))
    shapelens.trace(file)
    assert not list(folder.iterdir())
    shapelens.trace(file, allow=[str(folder)])
    assert [path.name for path in folder.iterdir()] == ["made"]
    with pytest.raises(shapelens.TracingError, match="is not a folder"):
        shapelens.trace(file, allow=["everything"])
    (folder / "made").unlink()
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "shapelens.pytest_plugin", "-p", "no:cacheprovider", "--shapelens", "net.py"]

    def run(*options: str) -> tuple[int, bool]:
        code = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, env=environment).returncode
        return code, (folder / "made").exists()

    assert run("--shapelens-allow", "nowhere") == (4, False)
    assert run() == (0, False)
    assert run("--shapelens-allow", "allowed") == (0, True)
