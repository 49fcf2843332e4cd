"""Writes down the storages that an evaluation allocates and frees, and its floating-point operations, by step.

On the meta device storages live exactly as long as they would elsewhere, as Python and autograd hold them; what a kernel allocates inside
of itself is not seen, but for convolutions on a CPU. Operations are counted by the rules of `torch.utils.flop_counter`.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...profiles import Allocation
from ..meta import second_opinion
from ..unknown import unknown_sizes
from . import kernels
from .convolution_workspaces import workspace
from .steps import StepRecorder

Rule = Callable[..., Any]
_COPY = torch.ops.aten._to_copy.default
_ADD = torch.ops.aten.add.Tensor
_CPU = torch.device("cpu")


def _rules() -> Dict[Any, Rule]:
    try:
        from torch.utils import flop_counter
    except ImportError:  # Before torch 2.1.
        return {}
    rules: Dict[Any, Rule] = dict(getattr(flop_counter, "flop_registry", {}))
    attention = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    gradient = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)
    forward, backward = getattr(flop_counter, "sdpa_flop_count", None), getattr(flop_counter, "sdpa_backward_flop_count", None)
    if attention is not None and gradient is not None and forward is not None and backward is not None:
        rules[attention] = lambda query, key, value, *args, **kwargs: forward(query.shape, key.shape, value.shape)
        rules[gradient] = lambda grad, query, key, value, *args, **kwargs: backward(grad.shape, query.shape, key.shape, value.shape)
    return rules


_RULES = _rules()

_plainly = torch._C.DisableTorchFunction


def _engine_calls() -> Set[Any]:
    """The code of torch's own that calls autograd's engine: what the engine computes has it as the frame above."""
    called = torch.autograd.backward, getattr(torch.autograd.graph, "_engine_run_backward", None)
    return {call.__code__ for call in called if call is not None}


_ENGINE_CALLS = _engine_calls()


def _is_of_engine() -> bool:
    """True if autograd's engine itself computes what is dispatched, and not code that a gradient's formula runs."""
    frame = sys._getframe(2)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("torch._dynamo", "torch._compile")):
        frame = frame.f_back  # Wrapped around each dispatch.
    return frame.f_code in _ENGINE_CALLS


class AllocationRecorder(TorchDispatchMode):
    """Records while it is `on`."""

    def __init__(self, steps: StepRecorder, device: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps = steps
        self.device = device
        self.on = False
        self.time = 0
        self.backward = False
        self.depends_on_data = False  # whether a size that only data says was allocated
        self.allocations: List[Allocation] = []
        self.unknown: Set[str] = set()  # operations of other packages, whose FLOPs no rule counts
        self._known: Dict[int, Any] = {}  # storages that live, and those that are counted elsewhere
        self._living: Dict[int, Allocation] = {}  # by storage
        self._held: List[Any] = []  # storages that live until the step is over
        self._twins: Dict[int, Any] = {}  # by a storage on the meta device: that of the constant which it is a copy of
        self._added_to: Tuple[int, int, int] = (
            -1,
            -1,
            0,
        )  # the storage of a gradient that another one was added to, that of the sum, and when

    def restart(self) -> None:
        """Forget all that was recorded."""
        self.on, self.time, self.allocations = False, 0, []
        self._known.clear()
        self._living.clear()
        self._held.clear()
        self._twins.clear()

    def exclude(self, tensor: Any) -> bool:
        """Have the storage of this tensor counted elsewhere; whether it was not known yet."""
        with _plainly():
            storage = tensor.untyped_storage()
            is_new = storage._cdata not in self._known
            self._known.setdefault(storage._cdata, storage)
        return is_new

    def mark(self, storages: Set[int], kind: str) -> None:
        """Say what kind of storages these are, of those that live."""
        for key, made in self._living.items():
            if key in storages:
                made.kind = kind

    def add_input(self, tensor: Any) -> None:
        """Count the storage of a tensor that is there already, and stays: a loop over data holds its batch until the next one."""
        with _plainly():
            self._add(tensor, "input")
            with contextlib.suppress(RuntimeError, NotImplementedError):  # As for sparse tensors below.
                self._held.append(tensor.untyped_storage())

    def add_flops(self, count: int, backward: bool) -> None:
        """Count operations of the step under way that no rule counts."""
        step = self.steps.current
        if self.on and step >= 0:
            if backward:
                self.steps.steps[step].backward_flops += count
            else:
                self.steps.steps[step].flops += count

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with _plainly():
            if self.backward and func is _COPY and args[0].is_meta and kwargs.get("device") == _CPU:
                # The gradient of a constant that is kept real, and went to the meta device in forward.
                result: Any = torch.empty_like(args[0], device=_CPU, dtype=kwargs.get("dtype") or args[0].dtype)
            else:
                result = kernels.call(func, args, kwargs)
            if not self.on or second_opinion.state.is_asked:
                return result
            if func is _COPY and args[0].device == _CPU and result.is_meta:
                self._add_twin(result, args[0])
            step = self._step()
            if self.backward and func is _ADD and _is_of_engine():
                self._added_to = args[0].untyped_storage()._cdata, result.untyped_storage()._cdata, self.time + 1
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                if isinstance(tensor, torch.Tensor):
                    self._add(tensor, "activation", step)
            if self.device == "cpu":
                self._add_for_a_while(workspace(func, args), step)
            self._count(func, args, kwargs, result, step)
        return result

    def _step(self) -> int:
        if not self.backward:
            return self.steps.current
        node: Any = torch._C._current_autograd_node()
        if node is None:
            return -1
        number = node._sequence_nr()
        return self.steps.step_of_gradient(number) if number < 1 << 62 else -1

    def _add(self, tensor: Any, kind: str, step: int = -1) -> None:
        try:
            storage = tensor.untyped_storage()
            size = storage.nbytes()
        except (RuntimeError, NotImplementedError):  # Sparse and nested tensors have several, or none.
            return
        key = storage._cdata
        if not isinstance(size, int) or not size or key in self._known:
            return
        if unknown_sizes.state.met and unknown_sizes.any_unknown(tensor.shape):
            self.depends_on_data = True
        self.time += 1
        made = Allocation(size, kind, step, self.time)
        self.allocations.append(made)
        self._living[key] = made
        self._known[key] = weakref.ref(storage, self._freed(key))

    def _add_twin(self, tensor: Any, constant: Any) -> None:
        """Have a constant that is kept real live as long as its copy on the meta device, which is not counted: elsewhere there is none."""
        storage, source = tensor.untyped_storage(), constant.untyped_storage()
        key = storage._cdata
        self._twins[key] = source
        self._known[key] = weakref.ref(storage, lambda reference: self._forget_twin(key))

    def _forget_twin(self, key: int) -> None:
        self._known.pop(key, None)
        self._twins.pop(key, None)

    def _add_for_a_while(self, size: int, step: int) -> None:
        if size:
            self.time += 2
            self.allocations.append(Allocation(size, "activation", step, self.time - 1, self.time))

    def _freed(self, key: int) -> Callable[[Any], None]:
        def freed(reference: Any) -> None:
            self._known.pop(key, None)
            made = self._living.pop(key, None)
            if not self.on or made is None:
                return
            added_to, total, time = self._added_to
            if (added_to, time) == (key, self.time) and total in self._living:
                # Where no dispatch mode is on, the engine adds a gradient in place to one that nothing else holds (`can_accumulate_inplace`
                # in torch/csrc/autograd/input_buffer.cpp): what is freed at once is the storage of the sum.
                self.allocations.pop()
                self._living[total] = made
                self.time -= 1
                return
            self.time += 1
            made.died = self.time

        return freed

    def _count(self, func: Any, args: Any, kwargs: Any, result: Any, step: int) -> None:
        rule = _RULES.get(func._overloadpacket)
        if rule is None:
            if func.namespace not in ("aten", "prims", "c10d", "prim"):
                self.unknown.add(str(func._overloadpacket))
            return
        count = rule(*args, **kwargs, out_val=result)
        if 0 <= step < len(self.steps.steps) and isinstance(count, int):
            if self.backward:
                self.steps.steps[step].backward_flops += count
            else:
                self.steps.steps[step].flops += count


def storages(tensors: Any) -> List[Tuple[Any, int]]:
    """The tensors that have a storage of their own, with the bytes of each: what is shared counts once."""
    found: Dict[int, Tuple[Any, int]] = {}
    with _plainly():
        for tensor in tensors:
            try:
                storage = tensor.untyped_storage()
                size: Optional[int] = storage.nbytes()
            except (RuntimeError, NotImplementedError, ValueError):  # One that is not initialised has none.
                continue
            if isinstance(size, int):
                found.setdefault(storage._cdata, (tensor, size))
    return list(found.values())
