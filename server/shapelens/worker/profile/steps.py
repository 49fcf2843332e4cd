"""Writes down the steps of a forward: calls of modules, and operations of user code, with the steps whose tensors each was given.

A tensor carries the number of the step that gave it. Steps inside of a layer of torch's own that has no modules inside are left out.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode

from ...profiles import Step
from ...protocol import FileSpan
from ..calls.module_calls import Calls
from ..meta.mode import ASKS, DESCRIBES
from ..torch_calls import is_in_place
from ..trace.frames import Frames
from ..trace.layer_inputs import is_torch_layer
from ..trace.module_memory import parts_of
from ..trace.provenance import tensors_in
from ..trace.value_summary import Key, key_of, value_of

STEP = "_shapelens_step"  # in a tensor's __dict__: the recorder of the evaluation, and the number of the step that gave it
MOST_STEPS = 20_000
MOST_TENSORS = 64  # of a list
# Operations that only look at tensors or name them differently, or set what is not seen.
_SILENT = {"detach", "requires_grad_", "__get__", "__set__", "data", "real", "requires_grad", "grad", "register_hook", "numel", "size"}

_plainly = torch._C.DisableTorchFunction

Call = Callable[[Callable[..., Any], Any, Tuple[Any, ...], Dict[str, Any]], Any]


def _plain_call(original: Callable[..., Any], module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    return original(module, *args, **kwargs)


class StepRecorder(TorchFunctionMode):
    """Records the steps of one evaluation. places: whether it is noted where in the code each step is."""

    def __init__(self, frames: Frames, calls: Callable[[], Calls], *, places: bool = True) -> None:
        super().__init__()
        self.frames = frames
        self.places = places
        self.calls = calls
        self.steps: List[Step] = []
        self.keys: List[Optional[Key]] = []  # of what each step gave
        self.called: List[Any] = []  # the module of each step; None for an operation
        self.running: List[int] = []  # the steps under way, outermost first
        self.sequence: List[int] = []  # the number that autograd had come to when each step began
        self.models: List[Any] = []  # modules that were called by no other
        self.results: List[Any] = []  # what those gave
        self.begun: Optional[Callable[[Any, Any, Any], None]] = None  # told of the first call: module, args, kwargs
        self.calling: Call = _plain_call  # calls a module
        self.restarted: Optional[Callable[[], None]] = None  # told that what was recorded was none of the model's
        self.token = object()  # of what is recorded now
        self.is_over = False  # whether forward has ended: what is computed from now on is no step
        self._hidden = 0  # inside of a layer whose steps are left out

    @property
    def current(self) -> int:
        """The step under way; -1 outside of any."""
        return self.running[-1] if self.running else -1

    def step_of_gradient(self, sequence: int) -> int:
        """The step whose operation autograd gave this number; -1 where it is not known."""
        low, high = 0, len(self.sequence)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.sequence[middle] <= sequence else (low, middle)
        return low - 1

    # --- operations ---

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.running or self._hidden or self.is_over or func in DESCRIBES or func in ASKS or len(self.steps) >= MOST_STEPS:
            return func(*args, **kwargs)
        name = _name(func)
        if name in _SILENT:
            return func(*args, **kwargs)
        with _plainly():
            given = list(tensors_in((args, kwargs), MOST_TENSORS))
        number = self._begin("operation", name, None, given)
        before = len(self.calls().mismatches)
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self._take_back(number)
            raise
        with _plainly():
            made = list(tensors_in(result, MOST_TENSORS))
            same = bool(made) and not is_in_place(func) and all(any(tensor is other for other in given) for tensor in made)
        if not made or same:
            self._take_back(number)
            return result
        self._end(number, result, before)
        return result

    # --- modules ---

    def call(self, original: Callable[..., Any], module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Call a module by `original`, as a step."""
        if self.is_over or self._hidden or len(self.steps) >= MOST_STEPS:
            return original(module, *args, **kwargs)
        is_outermost = not self.running
        if is_outermost:
            self._forget_parts_of(module)
            if self.begun is not None:
                self.begun(module, args, kwargs)
            self._inputs(module, args, kwargs)
            self.models.append(module)
        number = self._begin("module", "", module, (args, kwargs))
        before = len(self.calls().mismatches)
        hides = is_torch_layer(module) and all(map(_is_never_called, module.children()))
        self._hidden += hides
        try:
            result = self.calling(original, module, args, kwargs)
        except BaseException:
            self.running.pop()
            self.steps[number].end = len(self.steps)
            raise
        finally:
            self._hidden -= hides
        self._end(number, result, before)
        if is_outermost:
            self.results.append(result)
        return result

    def _forget_parts_of(self, module: Any) -> None:
        """A constructor may call parts of a model, to see what they give: that is no step of the model."""
        inside = {id(part) for part in parts_of(module)} if self.models else set()
        if any(id(model) in inside and model is not module for model in self.models):
            for record in (self.steps, self.keys, self.called, self.sequence, self.models, self.results):
                record.clear()
            self.token = object()
            if self.restarted is not None:
                self.restarted()

    def _inputs(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """The tensors that a model is called with are steps without a call."""
        try:
            names = list(inspect.signature(type(module).forward).parameters)[1:]
        except (TypeError, ValueError):
            names = []
        given = [(names[place] if place < len(names) else "input %d" % place, value) for place, value in enumerate(args)]
        for name, value in [*given, *kwargs.items()]:
            with _plainly():
                tensors = [tensor for tensor in tensors_in(value, MOST_TENSORS) if self._source(tensor) < 0]
            if tensors:
                number = self._begin("input", name, None, ())
                self._end(number, value, None)

    # --- both ---

    def _begin(self, kind: str, name: str, module: Any, given: Any) -> int:
        number = len(self.steps)
        sources: List[int] = []
        with _plainly():
            for tensor in tensors_in(given, MOST_TENSORS):
                source = self._source(tensor)
                if source >= 0 and source not in sources:
                    sources.append(source)
        parent = self.running[-1] if self.running else None
        span: Optional[FileSpan] = self.frames.innermost() if self.places and kind != "input" else None
        self.steps.append(Step(kind, name, None, parent, number + 1, span, value_of(None), sources))
        self.keys.append(None)
        self.called.append(module)
        self.sequence.append(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]
        self.running.append(number)
        return number

    def _end(self, number: int, result: Any, before: Optional[int]) -> None:
        self.running.pop()
        step, mismatches = self.steps[number], self.calls().mismatches
        step.end = len(self.steps)
        self.keys[number] = key = key_of(result)
        step.output = value_of(key)
        inside = {self.steps[other].mismatch for other in range(number + 1, step.end)}
        if before is not None and len(mismatches) > before and before not in inside:
            step.mismatch = before
        with _plainly():
            for tensor in tensors_in(result, MOST_TENSORS):
                # A layer that hands on what a step inside of it gave: the inner one stays its source.
                if step.kind != "module" or not number < self._source(tensor) < step.end:
                    tensor.__dict__[STEP] = self.token, number

    def _source(self, tensor: Any) -> int:
        """The step that gave a tensor; -1 where none of those that are recorded did."""
        token, number = tensor.__dict__.get(STEP, (None, -1))
        return number if token is self.token else -1

    def _take_back(self, number: int) -> None:
        """An operation that is no step after all."""
        self.running.pop()
        if number == len(self.steps) - 1:
            for record in (self.steps, self.keys, self.called, self.sequence):
                record.pop()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Have calls of modules come by here, too."""
        original = torch.nn.Module.__call__

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            return self.call(original, module, args, kwargs)

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]
        try:
            with self:
                yield
        finally:
            torch.nn.Module.__call__ = original  # type: ignore[method-assign]


def _name(func: Callable[..., Any]) -> str:
    name = getattr(func, "__name__", "") or "operation"
    if name == "__get__":  # `x.T`
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return str(name)


def _is_never_called(module: Any) -> bool:
    """The projection inside of torch's attention is only read."""
    return type(module).__name__ == "NonDynamicallyQuantizableLinear"
