"""Engines of `ignite` where it is not installed: a run is one call of the step, with the first batch, and of what was to be told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

from ...unknown.stand_ins import BEHAVIOURS, absent
from ..compilers import nothing

Handler = Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]


class Engine:
    """`ignite.engine.Engine`, as far as a program needs it. What else it is asked for is not known."""

    def __init__(self, process_function: Callable[..., Any] = nothing) -> None:
        self._process = process_function
        self._handlers: List[Handler] = []
        self.state = SimpleNamespace(epoch=1, iteration=1, max_epochs=1, output=None, batch=None, metrics=absent("metrics", "definition"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent("Engine.%s" % name, "definition")

    def run(self, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Process the first batch, then call what waits for events; the state after that."""
        for batch in () if data is None else data:
            self.state.batch = batch
            self.state.output = self._process(self, batch)
            break
        handlers, self._handlers = self._handlers, []
        for handler, given, named in handlers:
            handler(self, *given, **named)
        return self.state

    def on(self, event: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        """A decorator for what is called at an event."""

        def decorated(handler: Any) -> Any:
            self._handlers.append((handler, args, kwargs))
            return handler

        return decorated

    def add_event_handler(self, event: Any, handler: Any, *args: Any, **kwargs: Any) -> Any:
        """Have something called at an event."""
        self._handlers.append((handler, args, kwargs))
        return absent("an event handler", "definition")


def _trainer(model: Any, optimizer: Any, loss_fn: Any, *args: Any, **kwargs: Any) -> Engine:
    """`create_supervised_trainer`: a batch is an input and its target."""

    def step(engine: Engine, batch: Any) -> Any:
        inputs, targets = batch
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        return loss.item()

    return Engine(step)


def _evaluator(model: Any, *args: Any, **kwargs: Any) -> Engine:
    """`create_supervised_evaluator`."""

    def step(engine: Engine, batch: Any) -> Any:
        inputs, targets = batch
        return model(inputs), targets

    return Engine(step)


BEHAVIOURS.update(
    {
        "ignite.engine.Engine": Engine,
        "ignite.engine.create_supervised_trainer": _trainer,
        "ignite.engine.create_supervised_evaluator": _evaluator,
    }
)
