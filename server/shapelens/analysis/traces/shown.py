"""Which example shows a class as a whole, and where in its model the class is."""

from __future__ import annotations

from dataclasses import dataclass

from shapelens.protocol import ExampleRun, Trace
from shapelens.traces import PROGRAM


@dataclass(frozen=True)
class Shown:
    """An example, and the path in its model of what is shown: "" for all of it. others: other examples of the class."""

    example: ExampleRun
    path: str
    others: tuple[ExampleRun, ...] = ()


def shown_for(trace: Trace, class_name: str, number: int = 0) -> Shown | None:
    """Returns the example that shows a class: its own example (of several the one with this `number`), or that of a model that it is a part
    of."""
    last = class_name.rpartition(".")[2]
    runs = [run for run in trace.examples if run.evidence != PROGRAM and run.expression]
    own = [run for run in runs if run.target in (class_name, last)]
    if own:
        chosen = own[min(number, len(own) - 1)]
        return Shown(chosen, "", tuple(run for run in own if run is not chosen))
    for layer in trace.layers:
        if layer.class_name == last and 0 <= layer.example < len(trace.examples):
            run = trace.examples[layer.example]
            if run in runs:
                return Shown(run, layer.path)
    given = [run for run in runs if not run.target]  # Of a command line, which names no class.
    return Shown(given[0], "", tuple(given[1:])) if given else None
