"""The profile of one example: evaluated for its steps; with other sizes, for the names of its dims; as an inference and as a training step.

What a view shows first is there after two evaluations: the names are those that one run with other sizes tells, and are made sure later.
Nothing is taken from the op cache where memory is counted: the graph that autograd builds is what keeps activations.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ...profiles import CheckpointSeen, MemoryProfile, ModelProfile, ProfiledModule, ProfileRequest, Step
from ..calls.mismatches import mismatch_of, one_line
from ..evaluation.evaluated import Evaluated
from ..evaluation.example_runner import MOST_NAMED_DIMS, ExampleRunner
from ..evaluation.expression import compile_expression, evaluate
from ..evaluation.probing import apart, probes
from ..meta import op_cache
from ..sandbox.originals import time
from ..shims import checkpointing
from ..trace.autocast import under
from ..trace.dim_names import Naming, Sizes, formula, name_key, proportional
from ..trace.module_memory import Holdings, parts_of
from ..trace.provenance import tensors_in
from ..trace.value_summary import MODE, Key, value_of
from . import mixed_precision
from .allocations import AllocationRecorder, storages
from .block_checkpoints import BlockCheckpoints
from .checkpoint import compare
from .fused_kernels import FusedKernels, fused
from .steps import StepRecorder

_plainly = torch._C.DisableTorchFunction

MOST_TENSORS = 10_000
_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class _Evaluation:
    """One evaluation of the example, and what it saw."""

    def __init__(self, runner: ExampleRunner, request: ProfileRequest, *, training: bool, counted: bool, places: bool = False) -> None:
        self._runner = runner
        self._request = request
        self.sizes, self.dims = request.sizes, {}  # type: Sizes, Sizes
        self.training = training
        self.steps = StepRecorder(runner.frames, lambda: runner.evaluation.calls, places=places)
        self.allocations = AllocationRecorder(self.steps, request.device) if counted else None
        self.steps.begun, self.steps.restarted = self._begin, self._restart
        self.blocks = BlockCheckpoints() if request.checkpointed and training else None
        if self.blocks is not None:
            self.steps.calling = self.blocks.call
        self.memory = MemoryProfile()
        self.checkpoint: Optional[CheckpointSeen] = None
        # The storages whose bytes the memory has, in their order.
        self.parameters: List[int] = []
        self.buffers: List[int] = []
        self.trained: List[int] = []
        self.error: Optional[BaseException] = None
        self._has_begun = False

    def run(self, code: Any) -> None:
        """Evaluate the example. Raises what ends a run."""
        evaluation = self._runner.evaluation
        names = self._runner.names

        def follow() -> None:
            with contextlib.ExitStack() as stack:
                stack.enter_context(torch.enable_grad() if self.training else torch.no_grad())
                recorder = self.allocations
                if recorder is not None:
                    stack.enter_context(recorder)
                add_flops = recorder.add_flops if recorder is not None else lambda count, backward: None
                # Used where nothing is counted, too: what a kernel gives is laid out as it is, and `contiguous` makes a step or none.
                stack.enter_context(fused(FusedKernels(add_flops, dropout=self._request.device == "cuda")))
                stack.enter_context(self.steps.recording())
                stack.enter_context(mixed_precision.respected(self._request.device))
                with under(_DTYPES.get(self._request.autocast)):
                    evaluate(code, names, self.sizes, self.dims)
                    if self.training and self._request.loss:
                        self._add_loss()
                if self._request.checkpoint:
                    self.checkpoint = self._compared()
                if self.training:
                    self._go_back()
                self._end()

        evaluation.watch_anew()
        self._runner.recorder.is_brief = True  # What is shown is what steps gave.
        try:
            self.error = evaluation.run(lambda: evaluation.start(0), follow)
        finally:
            self._runner.recorder.is_brief = False
        if not self.steps.is_over:
            self._end()

    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        """The first call of the model: what is there already is no activation."""
        if self.blocks is not None:
            self.blocks.find(module)
        if self.training:
            module.__dict__.setdefault(MODE, True)
        if self._has_begun or self.allocations is None:
            self._count_more(module)
            return
        self._has_begun = True
        with _plainly():
            for tensor in tensors_in((args, kwargs), MOST_TENSORS):
                self.allocations.add_input(tensor)
        self._count_more(module)
        self.allocations.on = True

    def _compared(self) -> Optional[CheckpointSeen]:
        """Returns how the model goes with the file of weights; None where there is no such model."""
        calls = self._runner.evaluation.calls
        found = {path: module for module, path in _paths(self.steps.models or list(calls.modules[-1:]))}
        module = found.get(self._request.path)
        return compare(self._request.checkpoint, module, calls) if module is not None else None

    def _restart(self) -> None:
        """Forgets what was counted, which a constructor did."""
        self._has_begun, self.memory = False, MemoryProfile()
        for known in (self.parameters, self.buffers, self.trained):
            known.clear()
        if self.allocations is not None:
            self.allocations.restart()

    def _count_more(self, module: Any) -> None:
        """Parameters and buffers of a model, unless they are counted already."""
        if self.allocations is None:
            return
        memory = self.memory
        parts = list(parts_of(module))
        with _plainly():
            parameters = [tensor for part in parts for tensor in part._parameters.values() if tensor is not None]
            buffers = [tensor for part in parts for tensor in part._buffers.values() if tensor is not None]
        for tensor, size in storages(parameters):
            if self._is_new(tensor):
                memory.parameter_storages.append(size)
                self.parameters.append(_storage_of(tensor))
                if tensor.requires_grad:
                    memory.trained_storages.append(size)
                    memory.parameters.append(list(tensor.shape))
                    self.trained.append(_storage_of(tensor))
        for tensor, size in storages(buffers):
            if self._is_new(tensor):
                memory.buffer_storages.append(size)
                self.buffers.append(_storage_of(tensor))

    def _is_new(self, tensor: Any) -> bool:
        assert self.allocations is not None
        return self.allocations.exclude(tensor)

    def _add_loss(self) -> None:
        """The cross entropy of the one tensor that the model gives: what it keeps for backward is of that size, along whichever dim."""
        with _plainly():
            results = [tensor for tensor in tensors_in(self.steps.results, MOST_TENSORS) if tensor.requires_grad]
            if len(results) == 1 and results[0].dim() > 1 and results[0].is_floating_point():
                scores = results[0].flatten(0, -2)
                target = torch.zeros(scores.shape[0], dtype=torch.long, device=scores.device)
                self.steps.results[:] = [torch.nn.functional.cross_entropy(scores, target)]

    def _go_back(self) -> None:
        """Backward from all that the model gave, as if the loss were its sum."""
        self.steps.is_over = True
        recorder = self.allocations
        assert recorder is not None
        self.memory.forward_end = recorder.time
        with _plainly():
            results = [tensor for tensor in tensors_in(self.steps.results, MOST_TENSORS) if tensor.requires_grad and tensor.grad_fn]
            if not results:
                self.memory.error = "nothing that the model gives needs a gradient"
                return
            recorder.backward = True
            loss = results[0] if len(results) == 1 and not results[0].dim() else _sum(results)
            self.steps.results.clear()
            del results
            loss.backward()

    def _end(self) -> None:
        self.steps.is_over = True
        recorder = self.allocations
        if recorder is None:
            return
        recorder.on = False
        self.memory.forward_end = self.memory.forward_end or recorder.time
        self.memory.backward_end = recorder.time
        self.memory.allocations = recorder.allocations
        if recorder.depends_on_data:
            self.memory.error = "some sizes depend on data"
        parameters = [tensor for model in self.steps.models for part in parts_of(model) for tensor in part._parameters.values()]
        with _plainly():
            trained = [tensor for tensor in parameters if tensor is not None and tensor.grad is not None]
            recorder.mark({tensor.grad.untyped_storage()._cdata for tensor in trained}, "gradient")
            if trained:  # What takes no part in the result has no gradient, and the optimizer leaves it alone.
                owners = storages(trained)
                self.memory.trained_storages = [size for _, size in owners]
                self.memory.parameters = [list(tensor.shape) for tensor, _ in owners]
                self.trained = [_storage_of(tensor) for tensor, _ in owners]

    def add_storages(self, modules: List[ProfiledModule]) -> None:
        """Tell each module which of the memory's storages are its own, or those of what is inside of it."""
        seen = {path: module for module, path in _paths(self.steps.models)}
        numbers = [{storage: number for number, storage in enumerate(known)} for known in (self.parameters, self.buffers, self.trained)]
        for each in modules:
            parts = list(parts_of(seen[each.path])) if each.path in seen else []
            with _plainly():
                held = {_storage_of(tensor) for tensor, _ in storages(own for part in parts for own in _tensors_of(part))}
            each.parameters, each.buffers, each.trained = (sorted(known[key] for key in held if key in known) for known in numbers)


def _storage_of(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors_of(module: Any) -> Iterator[Any]:
    """The module's own parameters and buffers."""
    for held in (module._parameters, module._buffers):
        yield from (tensor for tensor in held.values() if tensor is not None)


def profile(runner: ExampleRunner, request: ProfileRequest, send: Callable[[ModelProfile], None]) -> None:
    """Send the profile of the run's one example: its steps, then all of it. Raises what ends a run."""
    start, found = time.process_time(), ModelProfile()
    example = runner.run.examples[0]
    try:
        code = compile_expression(example.expression)
    except (SyntaxError, ValueError) as error:
        found.error = getattr(error, "msg", None) or str(error)
        send(found)
        return
    if not request.memory_only:
        seen = _add_steps(runner, code, request, found)
        if request.checkpoint:
            found.checkpoint = seen.checkpoint
            send(found)
            return
        names = _Names(runner, code, request, seen)
        names.guess()
        found.is_complete, found.seconds = False, time.process_time() - start
        send(found)
        found.is_complete = True
        names.make_sure()
        _add_inference(runner, code, request, found)
    with _without_cache(), checkpointing.respected():
        training = _Evaluation(runner, request, training=True, counted=True)
        training.run(code)
    found.dims = found.dims or training.dims
    found.training = training.memory
    found.checkpointed = training.blocks.counts if training.blocks is not None else {}
    if runner.evaluation.calls.mismatches:
        training.memory.error = "an operation fails in it"  # What stands in for its result has no graph.
    if training.error is not None:
        training.memory.error = "%s: %s" % (type(training.error).__name__, one_line(training.error))
    if not request.memory_only:
        for step, trained in _counted(found, training):
            step.backward_flops += trained.backward_flops
        training.add_storages(found.modules)
    found.seconds = time.process_time() - start
    send(found)


def _add_steps(runner: ExampleRunner, code: Any, request: ProfileRequest, found: ModelProfile) -> _Evaluation:
    """Returns what the example goes through; the evaluation that it was seen in."""
    seen = _Evaluation(runner, request, training=False, counted=False, places=True)
    seen.run(code)
    calls, error = runner.evaluation.calls, seen.error
    calls.ended = True
    found.dims = seen.dims
    found.mismatches = list(calls.mismatches)
    if error is not None:
        last = mismatch_of(error, 0, runner.frames, runner.evaluation.meta, calls)
        found.error = "%s: %s" % (last.exception, last.message)
        found.mismatches.append(last)
        _mark_failure(seen.steps, len(found.mismatches) - 1)
    modules = seen.steps.models or list(calls.modules[-1:])
    found.modules, numbers = _modules(modules, calls)
    for step, module in zip(seen.steps.steps, seen.steps.called):
        step.module = numbers.get(id(module)) if module is not None else None
    found.steps = seen.steps.steps
    return seen


def _add_inference(runner: ExampleRunner, code: Any, request: ProfileRequest, found: ModelProfile) -> None:
    """The memory of an inference, and the operations of forward."""
    with _without_cache():
        seen = _Evaluation(runner, request, training=False, counted=True)
        seen.run(code)
    assert seen.allocations is not None
    found.inference = seen.memory
    found.uncounted += ["the operations of %s" % name for name in sorted(seen.allocations.unknown)]
    for step, counted in _counted(found, seen):
        step.flops += counted.flops


def _mark_failure(steps: StepRecorder, mismatch: int) -> None:
    """The example ended in a step: it is the innermost of those that gave nothing."""
    ended = [number for number, key in enumerate(steps.keys) if key is None]
    if ended and steps.steps[ended[-1]].mismatch is None:
        steps.steps[ended[-1]].mismatch = mismatch


def _modules(models: List[Any], calls: Any) -> Tuple[List[ProfiledModule], Dict[int, int]]:
    """All modules of some models, and their numbers by the id of each."""
    found: List[ProfiledModule] = []
    numbers: Dict[int, int] = {}
    holdings = Holdings(calls.modules)
    for module, path in _paths(models):
        numbers[id(module)] = len(found)
        found.append(_module(path, module, calls, holdings))
    return found, numbers


def _paths(models: List[Any]) -> Iterator[Tuple[Any, str]]:
    """All modules of some models, each once, with its path. A further model has its class and number before its paths."""
    seen = set()
    for place, model in enumerate(models):
        prefix = "" if not place else "%s:%d" % (type(model).__name__, place)
        for path, module in model.named_modules():
            if id(module) not in seen:
                seen.add(id(module))
                yield module, ".".join(part for part in (prefix, path) if part)


def _module(path: str, module: Any, calls: Any, holdings: Holdings) -> ProfiledModule:
    index = module.__dict__.get("_shapelens_layer")
    span = calls.spans[index] if isinstance(index, int) and index < len(calls.spans) else None
    count, _ = holdings.of(module)
    with _plainly():
        parts = list(parts_of(module))
        own = {id(tensor): tensor for part in parts for tensor in part._parameters.values() if _is_there(tensor)}
        buffers = {id(tensor): tensor for part in parts for tensor in part._buffers.values() if _is_there(tensor)}
        trainable = sum(tensor.numel() for tensor in own.values() if tensor.requires_grad)
        sizes = [sum(tensor.numel() * tensor.element_size() for tensor in held.values()) for held in (own, buffers)]
    cls = type(module)
    try:
        description = "%s(%s)" % (cls.__name__, " ".join(module.extra_repr().split()))
    except Exception:  # User code, and torch's own for a half-built module.
        description = cls.__name__
    return ProfiledModule(path, cls.__name__, "%s.%s" % (cls.__module__, cls.__qualname__), description, span, count, trainable, *sizes)


def _is_there(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and not torch.nn.parameter.is_lazy(tensor)


def _counted(found: ModelProfile, seen: _Evaluation) -> List[Tuple[Step, Step]]:
    """Steps of the profile with steps of an evaluation that are counted for them; its allocations are told by the former from now on."""
    steps = seen.steps.steps
    if [(step.kind, step.name, step.parent) for step in steps] == [(step.kind, step.name, step.parent) for step in found.steps]:
        return list(zip(found.steps, steps))
    # Training goes another way than inference: what it allocates is told by the modules that both call.
    places: Dict[str, int] = {}
    paths = {number: module.path for number, module in enumerate(found.modules)}
    for number, step in enumerate(found.steps):
        if step.module is not None:
            places.setdefault(paths[step.module], number)
    names = {id(module): path for model in seen.steps.models[:1] for path, module in model.named_modules()}
    now: List[int] = []
    pairs: List[Tuple[Step, Step]] = []
    for number, step in enumerate(steps):
        module = seen.steps.called[number]
        place = places.get(names.get(id(module), "?"), -1) if module is not None else -1
        now.append(place if place >= 0 else now[step.parent] if step.parent is not None else -1)
        if now[-1] >= 0:
            pairs.append((found.steps[now[-1]], step))
    for made in seen.memory.allocations:
        made.step = now[made.step] if 0 <= made.step < len(now) else -1
    return pairs


class _Names:
    """The names of the dims of what the steps of an evaluation gave: the example is evaluated with other sizes."""

    def __init__(self, runner: ExampleRunner, code: Any, request: ProfileRequest, seen: _Evaluation) -> None:
        self._runner, self._code, self._request, self._seen = runner, code, request, seen
        self._shape = _shape(seen.steps)
        self._known: Dict[Tuple[Tuple[str, int], ...], Optional[List[Optional[Key]]]] = {}  # what its steps gave, by the sizes
        self._is_asked = bool(seen.dims) and len(seen.dims) <= MOST_NAMED_DIMS and runner.run.named

    def guess(self) -> None:
        """Name them by one evaluation with all sizes changed; where that leaves a doubt, a size stays a number."""
        sizes = apart(self._seen.dims) if self._is_asked else None
        other = self._probe(sizes) if sizes is not None else None
        if other is not None:
            self._name([other], proportional)

    def make_sure(self) -> None:
        """Name them by all evaluations that a name needs."""
        if self._is_asked:
            own = self._evaluated(self._seen.dims, self._seen.steps.keys)
            self._name(probes(own, self._probe, any_size=bool(self._runner.run.examples[0].target)))

    def _probe(self, sizes: Sizes) -> Optional[Evaluated]:
        key = tuple(sizes.items())
        if key not in self._known:
            other = _Evaluation(self._runner, replace(self._request, sizes=sizes), training=False, counted=False)
            other.run(self._code)
            self._known[key] = other.steps.keys if _shape(other.steps) == self._shape else None
        keys = self._known[key]
        return self._evaluated(sizes, keys) if keys is not None else None

    def _evaluated(self, sizes: Sizes, keys: List[Optional[Key]]) -> Evaluated:
        found = Evaluated({}, self._runner.evaluation.calls, dict(sizes))
        found.code = keys
        return found

    def _name(self, others: List[Evaluated], naming: Naming = formula) -> None:
        steps, dims = self._seen.steps, self._seen.dims
        sizes = [{name: dims[name] for name in others[0].sizes}] + [other.sizes for other in others] if others else []
        for number, step in enumerate(steps.steps):
            keys = [steps.keys[number]] + [other.code[number] for other in others]
            own, comparable = keys[0], [key for key in keys if key is not None]
            if own is not None:
                step.output = value_of(own, name_key(comparable, sizes, naming) if others and len(comparable) == len(keys) else None)


def _shape(steps: StepRecorder) -> List[Tuple[str, str, Optional[int]]]:
    """Returns what is the same of two evaluations that go the same way."""
    return [(step.kind, step.name, step.parent) for step in steps.steps]


def _sum(tensors: List[Any]) -> Any:
    total: Any = None
    for tensor in tensors:
        part = tensor.sum() if not tensor.is_complex() else tensor.real.sum()
        total = part if total is None else total + part
    return total


@contextlib.contextmanager
def _without_cache() -> Iterator[None]:
    before, op_cache.state.off = op_cache.state.off, True
    try:
        yield
    finally:
        op_cache.state.off = before
