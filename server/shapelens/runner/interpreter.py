"""Which Python runs the user's code."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def find(root: str, setting: str | None) -> str:
    """The interpreter for a workspace folder, as a path that can be started (it need not exist: starting it says so).

    The setting wins; then $VIRTUAL_ENV, `.venv` or `venv` in the folder, $CONDA_PREFIX, and last the interpreter that runs the server.
    `root` may be "" where there is no folder. A setting may name an environment's folder, a command on PATH, or start with `~`
    or `${workspaceFolder}`; a relative one is relative to `root`.
    """
    if setting and setting.strip():
        return _expanded(root, setting.strip())
    for environment in _environments(root):
        python = _python_of(environment)
        if python is not None:
            return str(python)
    return sys.executable


def problem(interpreter: str) -> str | None:
    """Why this path cannot be started as an interpreter, in one line; None where nothing speaks against it."""
    path = Path(interpreter)
    if not path.exists():
        return f"The Python interpreter {interpreter} does not exist."
    if path.is_dir():
        return f"{interpreter} is a folder without a Python interpreter in it."
    if not os.access(path, os.X_OK):
        return f"The Python interpreter {interpreter} is not executable."
    return None


def _expanded(root: str, setting: str) -> str:
    # A venv's `python` is a symbolic link whose own place matters, so paths are joined but never resolved.
    path = Path(setting.replace("${workspaceFolder}", root)).expanduser()
    if path.parent == Path() and not (Path(root) / path).exists():
        return shutil.which(setting) or setting
    path = Path(root or os.curdir).absolute() / path
    if path.is_dir():
        return str(_python_of(path) or path)
    return str(path)


def _environments(root: str) -> Iterator[Path]:
    if "VIRTUAL_ENV" in os.environ:
        yield Path(os.environ["VIRTUAL_ENV"])
    if root:
        yield Path(root, ".venv")
        yield Path(root, "venv")
    if "CONDA_PREFIX" in os.environ:
        yield Path(os.environ["CONDA_PREFIX"])


def _python_of(environment: Path) -> Path | None:
    places = ("Scripts/python.exe", "python.exe") if os.name == "nt" else ("bin/python", "bin/python3")
    return next((environment / place for place in places if (environment / place).is_file()), None)
