"""The way of the PyTorch recipe "Reasoning about Shapes", warm in one process: build a model on the meta device, hook its modules, call it.

PYTHON hooks.py FILE FOLDER EXPRESSION ROUNDS      prints the median in ms; FOLDER is where the file's package is imported from
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import sys
import time
from pathlib import Path

import torch


def main() -> None:
    """Time it."""
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
