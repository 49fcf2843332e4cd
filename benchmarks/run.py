"""What a run of the worker costs, against the recipe's own way (hooks.py), warm in one process.

    python benchmarks/run.py [--python PYTHON] [--packages FOLDER] [--edits 15] [--pause 1.0] [--only NAME ...]

--python and --packages are those of session.py. The models are edited by turns, a wrong number and its undoing, as in session.py, and each
text is sent to a real worker as the server does. Printed are medians in ms, from the message until:

  said        it was known what is wrong: of definitions, build and forward only what the edit concerns is done again
  run         its whole trace had arrived, with every expression and layer; of that
  evaluated   were spent in build and forward, observed
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

from session import CASES, PICTURE, Case, hooks, texts

from shapelens.protocol import ExampleRequest, Run, Traced
from shapelens.runner import Worker

DENSENET = Case(
    "DenseNet-121",
    "pytorchcv/pytorchcv/models/densenet.py",
    "in_features=in_channels,",
    "in_features=in_channels + 1,",
    f"densenet121(){PICTURE}",
    "densenet121()@2,3,224,224",
)
GOALS = {"ResNet-50": "0.2 ×", "DenseNet-121": "0.3 ×", "ViT, 12 layers": "0.3 ×", "Swin-T": "0.3 ×"}
WARM = 2  # runs of each text that are not counted


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the models (default: this one)")
    parser.add_argument("--packages", type=Path, default=Path(), help="sources of packages")
    parser.add_argument("--edits", type=int, default=15, help="how often a bug is made and mended (default: 15)")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two edits (default: 1)")
    parser.add_argument("--only", nargs="*", default=[], help="only the models whose name has one of these words")
    options = parser.parse_args()
    print(f"{'ms, and × the own way':<21}{'own way':>4}{'said':>18}{'evaluated':>18}{'run':>18}   goal")
    for case in [*CASES, DENSENET]:
        if case.expression and (not options.only or any(word in case.name for word in options.only)):
            asyncio.run(_measure(case, options))


async def _measure(case: Case, options: argparse.Namespace) -> None:
    found = texts(case, options)
    if found is None:
        return
    path, folder, right, wrong = found
    expression = case.directive or "Net()(f32[B:2, 3, 32, 32])"
    requests = [ExampleRequest(expression.partition("(")[0], expression)]
    own = hooks(case, path, folder, options)
    worker = Worker(options.python, root=str(folder))
    said: list[float] = []
    evaluated: list[float] = []
    whole: list[float] = []
    for number in range(-2 * WARM, 4 * options.edits):
        first = number % 4 < 2  # By turns with and without its being said first.
        text = right if number % 2 else wrong
        run = Run(number + 2 * WARM, str(path), text, str(folder), requests, named=False, findings_first=first)
        traces: list[tuple[float, Traced]] = []
        begun = time.perf_counter()
        finished = await worker.submit(run, lambda traced, to=traces: to.append((time.perf_counter(), traced)))
        assert finished.outcome == "ok", finished
        last = traces[-1][1].trace
        assert bool(last.mismatches) == (text is wrong), f"{case.name}: not what was expected to be wrong"
        if number >= 0 and first:
            said.append(1000 * (traces[0][0] - begun))
        elif number >= 0:
            evaluated.append(1000 * last.examples[0].seconds)
            whole.append(1000 * (traces[-1][0] - begun))
        await asyncio.sleep(options.pause)
    await worker.stop()
    own = statistics.mean([own, hooks(case, path, folder, options) or own]) if own is not None else None
    cells = [statistics.median(each) for each in (said, evaluated, whole)]
    shown = [f"{each:.1f}" + (f": {each / own:.2f} ×" if own else "") for each in cells]
    print(f"{case.name:<18}{own or float('nan'):>10.1f}{shown[0]:>18}{shown[1]:>18}{shown[2]:>18}   {GOALS.get(case.name, '')}", flush=True)


main()
