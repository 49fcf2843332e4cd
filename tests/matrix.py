"""Runs the tests with other versions of Python and torch, and writes down what came out in `docs/versions.json`.

    python tests/matrix.py [PART ...] [--pip-argument ARGUMENT ...] [--keep]

A part is one of two kinds:

  worker-PYTHON-TORCH  the fixtures, with a worker of these versions
  server-PYTHON        the unit tests, those of the language server and the fixtures, with a server on this Python

Each part makes an environment of its own in .matrix, a few GB large where torch comes with CUDA, and removes it afterwards. A part whose
Python is not on this machine is left out, and said to be. `python tests/test_readme.py` puts what was written down into its table.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".matrix"
RESULTS = ROOT / "docs" / "versions.json"
PARTS = [
    *("worker-3.9-2.1", "worker-3.10-2.4", "worker-3.11-2.7", "worker-3.12-2.10", "worker-3.13-2.13", "worker-3.14-2.14"),
    *("server-3.10", "server-3.11", "server-3.12", "server-3.13", "server-3.14"),
]
OLD_NUMPY = {"2.1", "2.2"}  # These were built against numpy 1.
TESTING = ["pytest", "pytest-asyncio", "pytest-lsp", "pytest-timeout", "psutil", "jsonschema", "numpy", "async-timeout"]
COUNTS = re.compile(r"(\d+) (passed|failed|error)")


class NotHere(Exception):
    """What a part needs is not on this machine."""


def main() -> int:
    """Run the parts; 1 if one could not be run to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", default=PARTS, help="(default: all)")
    parser.add_argument("--pip-argument", action="append", default=[], help="for pip, as --index-url=URL of CPU builds of torch")
    parser.add_argument("--keep", action="store_true", help="keep the environments in .matrix")
    options = parser.parse_args()
    code = 0
    for part in options.parts:
        print(f"── {part}", flush=True)
        try:
            result = run(part, options.pip_argument)
        except NotHere as reason:
            print(f"left out: {reason}")
            continue
        except subprocess.CalledProcessError as error:
            print(f"{part} could not be set up: {error}")
            code = 1
            continue
        finally:
            if not options.keep:
                shutil.rmtree(FOLDER / part, ignore_errors=True)
        write(part, result)
        print(f"{part}: {result}", flush=True)
    return code


def run(part: str, pip_arguments: list[str]) -> dict[str, object]:
    """Run one part in its own environment; its versions and counts."""
    kind, _, versions = part.partition("-")
    python_version, _, torch_version = versions.partition("-")
    python = environment(part, python_version)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", *pip_arguments]
    if kind == "worker":
        numpy = "numpy<2" if torch_version in OLD_NUMPY else "numpy"
        subprocess.run([*pip, f"torch=={torch_version}.*", numpy, "einops", "pytest"], check=True)
        tests, runs, worker = ["tests/test_fixtures.py"], Path(sys.executable), python
    else:
        subprocess.run([*pip, "--editable", str(ROOT), *TESTING], check=True)
        tests = ["tests/unit", "tests/lsp", "tests/test_fixtures.py"]
        runs, worker = python, Path(sys.executable)
    counted = pytest(runs, worker, tests)
    says = "import platform, torch; print(platform.python_version(), torch.__version__)"
    python_is, torch_is = subprocess.check_output([worker, "-c", says], text=True).split()
    server_is = subprocess.check_output([runs, "-c", "import platform; print(platform.python_version())"], text=True).strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}",
        "worker": {"python": python_is, "torch": torch_is},
        "server": server_is,
        **counted,
    }


def environment(part: str, version: str) -> Path:
    """The interpreter of a part's own environment, made if it is not there."""
    folder = FOLDER / part
    python = folder / "bin" / "python"
    if not python.exists():
        found = interpreter(version)
        if found is None:
            raise NotHere(f"no Python {version} on this machine")
        subprocess.run([found, "-m", "venv", str(folder)], check=True)
    return python


def interpreter(version: str) -> str | None:
    """The interpreter of this version on PATH or of pyenv."""
    at_pyenv = sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob(f"versions/{version}.*/bin/python"))
    for candidate in [shutil.which(f"python{version}"), *map(str, at_pyenv)]:
        if candidate:
            said = subprocess.run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
            if said.stdout.strip() == version:
                return candidate
    return None


def pytest(runs: Path, worker: Path, tests: list[str]) -> dict[str, int]:
    """How many tests passed and failed."""
    FOLDER.mkdir(exist_ok=True)
    command = [str(runs), "-m", "pytest", "-q", "--color=no", *tests]
    variables = {**os.environ, "SHAPELENS_TEST_PYTHON": str(worker)}
    lines = []
    with subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = [*process.stdout]
    (FOLDER / "last.log").write_text("".join(lines), encoding="utf-8")
    counted = {word: int(number) for number, word in COUNTS.findall(lines[-1] if lines else "")}
    if process.returncode not in (0, 1):  # It did not come to its end.
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"passed": counted.get("passed", 0), "failed": counted.get("failed", 0) + counted.get("error", 0)}


def write(part: str, result: dict[str, object]) -> None:
    """Put a part's result among those of the others."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results[part] = result
    RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
