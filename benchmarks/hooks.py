"""The way of the PyTorch recipe "Reasoning about Shapes", warm in one process: build a model on the meta device, hook its modules, call it.

PYTHON hooks.py FILE FOLDER EXPRESSION ROUNDS      prints the median in ms; FOLDER is where the file's package is imported from

Where torchvision is not installed, a package whose every name, and every attribute of that, is an empty class stands in for it: timm
imports all of its transforms, and none of timm's models calls one.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

OPTIONAL = ("torchvision",)


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds those of the optional packages that nothing else finds."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """As of any finder."""
        wanted = fullname.partition(".")[0] in OPTIONAL
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if wanted else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """As of any loader."""
        module = ModuleType(spec.name)
        module.__getattr__ = _name  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


class Nothing(type):
    """A class whose attributes are such classes."""

    def __getattr__(cls, name: str) -> type:
        return _name(name)


def _name(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing(name, (), {})


def main() -> None:
    """Time it."""
    sys.meta_path.append(Absent())
    file, folder, expression, rounds = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3], int(sys.argv[4])
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(".".join(file.relative_to(folder).with_suffix("").parts))
    except ImportError:  # The package needs more than the file does.
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    build, _, shape = expression.rpartition("@")
    size = [int(part) for part in shape.split(",")]
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        with torch.device("meta"):
            model = eval(build, vars(module))
            given = torch.empty(size)
        shapes: list[object] = []

        def keep(module: object, inputs: object, output: object, shapes: list[object] = shapes) -> None:
            shapes.append((module, getattr(output, "shape", None)))

        for part in model.modules():
            part.register_forward_hook(keep)
        model(given)
        times.append(1000 * (time.perf_counter() - start))
    print(statistics.median(times))


main()
