"""Devices as labels: each tensor of a program carries the device that the code gives it, while its storage stays on meta.

Eager refuses an operation whose tensors lie on the CPU and on an accelerator. What code chooses where there is an accelerator
(`"cuda" if torch.cuda.is_available() else "cpu"`) stands for it: the branches are those of a machine without one, the label is not.
Accelerators are not told from each other. Where a device is not known,
nothing is said of what meets it; nor of what is computed of a mismatch.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ...protocol import FileSpan
from ..locations import TORCH, WORKER
from ..rewrite.device_choices import NAMES
from .frames import Frames
from .provenance import INPUT, Derivation, tensors_in
from .recorder import Recorder
from .value_summary import ORIGIN, STAND_IN

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
_plainly = torch._C.DisableTorchFunction

CPU = "cpu"
UNKNOWN = ""
PLACED = "_shapelens_placed"  # an attribute of tensors: their Placement; without one nothing is known of their device
MOST_TENSORS = 64  # of a list or batch that are looked at
MOST_PARTS = 256  # tensors of a layer
MOST_FUNCTIONS = 4000  # of which it is kept what they do
_KINDS = (Tensor, torch.nn.Parameter)
_LISTS = (list, tuple)

# Operations that refuse tensors of different devices; of others the device of the result is taken from what they are given.
_REFUSING = """
add sub mul div true_divide floor_divide remainder pow maximum minimum atan2 lerp addcmul addcdiv eq ne lt le gt ge logical_and logical_or
bitwise_and bitwise_or __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__
__pow__ __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __matmul__ __rmatmul__ add_ sub_ mul_ div_ pow_ matmul mm bmm mv
dot addmm baddbmm outer einsum linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d layer_norm
batch_norm group_norm embedding cat stack concat concatenate hstack vstack where masked_fill masked_fill_ gather index_select scatter
scatter_ scatter_add scatter_add_ scaled_dot_product_attention cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
binary_cross_entropy binary_cross_entropy_with_logits kl_div cosine_similarity cosine_embedding_loss triplet_margin_loss pairwise_distance
cdist cross equal allclose isclose
"""
REFUSING = set(_REFUSING.split())
_NUMPY = ("numpy", "__array__")
_SKIPPED = {"backward", "grad", "copy_", "set_", "__setitem__", "broadcast_tensors", "tensor_split", "ctc_loss", "result_type"}
_FIRST_ONLY = {"_pack_padded_sequence", "_pad_packed_sequence", "pack_padded_sequence", "pad_packed_sequence"}  # lengths stay on the CPU
_OF_FIRST = ("_like", "new_")  # factories that place what they make where their first argument is
_ASKS_DEVICE = {Tensor.device.__get__}
_SETS_DATA = {Tensor.data.__set__}  # type: ignore[attr-defined]


class Placement:
    """Where a tensor lies, and what has put it there. What is computed of the tensor has the same one."""

    __slots__ = ("device", "is_told", "node", "number", "operation", "owner", "span")

    def __init__(self, device: str, operation: str, number: int, span: Optional[FileSpan] = None) -> None:
        self.device = device  # CPU, the name of an accelerator, or UNKNOWN
        self.operation = operation  # "to", "zeros", "DataLoader", "Parameter"
        self.number = number  # counted up
        self.span = span  # the expression of the user's that has moved it
        self.node: Optional[Derivation] = None  # of what was made there
        self.owner: Any = None  # the module whose tensors were moved together
        self.is_told = False  # it has met another device, and that was said


_NOWHERE = Placement(UNKNOWN, "", 0)


class Meeting(NamedTuple):
    """Two tensors of an operation, or of a layer and what it is given, that do not go together."""

    operation: str
    on_cpu: Tuple[Tensor, Placement]
    elsewhere: Tuple[Tensor, Placement]
    module: Any = None  # the layer


class Root(NamedTuple):
    """The call of a module that no other one calls: how much was placed before, and where it stands."""

    number: int
    span: Optional[FileSpan]
    module: Any


class Names:
    """Texts and devices that equal "cpu" and stand for something else, told by what they are."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, str]] = {}
        self._texts: Dict[str, str] = {}
        self._devices: Dict[str, torch.device] = {}
        self.device_for(CPU)

    def text_for(self, accelerator: str) -> str:
        """The text "cpu" that stands for an accelerator."""
        if accelerator not in self._texts:
            made = "".join(["c", "pu"])  # No constant, which Python would share with others that are equal.
            self._texts[accelerator] = made
            self._known[id(made)] = made, accelerator
        return self._texts[accelerator]

    def device_for(self, label: str) -> torch.device:
        """The device of a tensor with this label, as user code sees it: that of the CPU."""
        if label not in self._devices:
            made = self._devices[label] = torch.device("cpu")
            self._known[id(made)] = made, label
        return self._devices[label]

    def label(self, value: Any) -> Optional[str]:
        """Returns the label of a text or device; None for one without another meaning."""
        known = self._known.get(id(value))
        return known[1] if known is not None and known[0] is value else None


names = Names()


def standing_for(accelerator: str) -> str:
    """The text "cpu" that stands for an accelerator."""
    return names.text_for(accelerator)


def device_of(make: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.device(…)` in user code."""
    if args and type(args[0]) is int:  # An accelerator by its number, which torch takes where there is one.
        args = ("cuda:%d" % max(args[0], 0), *args[1:])
    made = make(*args, **kwargs)
    label = names.label(args[0]) if args else None
    return names.device_for(label) if label is not None and made == torch.device("cpu") else made


class Devices:
    """Labels the tensors of a program while it is `active`, and tells of those that meet and do not go together."""

    def __init__(self) -> None:
        self.active = False
        self._forget()

    def _forget(self) -> None:
        self.is_lost = False  # whether something else moves tensors, as a wrapper of several devices
        self.default = CPU
        self.root = Root(0, None, None)
        self._number = 0
        self._frames: Optional[Frames] = None
        self._recorder: Optional[Recorder] = None
        self._tell: Callable[[Meeting], None] = lambda meeting: None

    @contextlib.contextmanager
    def watching(self, frames: Frames, recorder: Recorder, tell: Callable[[Meeting], None]) -> Iterator[None]:
        """A program that names devices is followed meanwhile. tell: is given what does not go together."""
        self._forget()
        self._frames, self._recorder, self._tell = frames, recorder, tell
        self.active = True
        try:
            yield
        finally:
            self.active = False
            self._tell = lambda meeting: None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Meanwhile nothing is labelled or told."""
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before

    # --- where code puts things ---

    def _placement(self, device: str, operation: str, span: Optional[FileSpan] = None) -> Placement:
        self._number += 1
        return Placement(device, operation, self._number, span)

    def _moved(self, device: str, operation: str) -> Placement:
        return self._placement(device, operation, self._frames.innermost() if self._frames is not None else None)

    def _label(self, value: Any) -> Optional[str]:
        """The label of what code gives as a device; None where it is none.

        A plain "cpu" is believed where the call itself says so: any other one may have been chosen for the lack of an accelerator.
        """
        known = names.label(value)
        if known is not None:
            return known
        if isinstance(value, torch.device):
            value = value.type
            if value == CPU:
                return UNKNOWN
        if type(value) is str:
            if value == CPU:
                return CPU if self._says_cpu() else UNKNOWN
            found = NAMES.match(value)
            return found[1] if found is not None else UNKNOWN
        return "cuda" if type(value) is int else None

    def _says_cpu(self) -> bool:
        """True if the calling user code names "cpu" itself."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith((WORKER, TORCH)):
            frame = frame.f_back
        if frame is None or self._frames is None or not self._frames.is_user_frame(frame):
            return False
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        return '"cpu"' in text or "'cpu'" in text

    def set_default(self, device: Any) -> None:
        """torch.set_default_device"""
        if self.active:
            label = self._label(device)
            self.default = CPU if device is None else label if label is not None else UNKNOWN

    def move_module(self, module: Any, operation: str, args: Args, kwargs: Kwargs) -> None:
        """`module.to(…)`, `module.cuda()`: its parameters and buffers are moved, and nothing else that it holds."""
        device = self._target(operation, args, kwargs)
        if device is None:
            return
        placement = self._moved(device, operation)
        placement.owner = module
        with _plainly():
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.__dict__[PLACED] = placement

    def _target(self, operation: str, args: Args, kwargs: Kwargs) -> Optional[str]:
        """The label that `to`, `cuda` and their kin give; None where they say no device."""
        if operation == "cpu":
            return CPU
        if operation != "to":
            return NAMES.match(operation)[1] if NAMES.match(operation) is not None else UNKNOWN  # type: ignore[index]
        given = [*args, *(kwargs[name] for name in ("device", "other", "tensor") if name in kwargs)]
        for value in given:
            if isinstance(value, Tensor):
                placement = self.of(value)
                return placement.device if placement is not None else UNKNOWN
            if value is None or isinstance(value, (torch.dtype, bool, torch.memory_format)):
                continue
            label = self._label(value)
            return UNKNOWN if label is None else label
        return None

    def made_parameter(self, parameter: Tensor, data: Any) -> None:
        """A parameter lies where the tensor lies that it was made of."""
        placement = data.__dict__.get(PLACED) if isinstance(data, Tensor) else None
        if placement is not None:
            parameter.__dict__[PLACED] = placement

    def constructed(self, layer: Any, args: Args, kwargs: Kwargs) -> None:
        """A layer of torch's was constructed: its own tensors lie where its `device` says, or on the default device."""
        given = [id(value) for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        placement: Optional[Placement] = None
        with _plainly():
            for tensor in (*layer.parameters(), *layer.buffers()):
                if PLACED not in tensor.__dict__ and id(tensor) not in given:
                    placement = placement or self._of_constructor(layer, kwargs.get("device"))
                    tensor.__dict__[PLACED] = placement

    def _of_constructor(self, layer: Any, device: Any) -> Placement:
        if device is None:
            return self._placement(self.default, type(layer).__name__)
        label = self._label(device)
        return self._moved(UNKNOWN if label is None else label, type(layer).__name__)

    def loaded(self, batch: Any) -> Any:
        """A batch of a loader: its tensors lie on the CPU, but for those that the data set has placed."""
        if self.active:
            with _plainly():
                placement = self._placement(CPU, "DataLoader")
                for tensor in tensors_in(batch, MOST_TENSORS):
                    known = tensor.__dict__.get(PLACED)
                    if STAND_IN not in tensor.__dict__ and (known is None or known.device == CPU):
                        tensor.__dict__[PLACED] = own = self._placement(CPU, "DataLoader")
                        own.number, own.node = placement.number, tensor.__dict__.get(ORIGIN)
        return batch

    def calls_root(self, module: Any) -> None:
        """A module is called that no other one calls."""
        self.root = Root(self._number, self._frames.innermost() if self._frames is not None else None, module)

    # --- where tensors lie ---

    def of(self, tensor: Tensor) -> Optional[Placement]:
        """Where a tensor lies; None where that is not known."""
        placement = tensor.__dict__.get(PLACED)
        return placement if placement is not None and placement.device and STAND_IN not in tensor.__dict__ else None

    def place_of(self, placement: Placement) -> Tuple[Optional[FileSpan], str, str]:
        """Where in the user's code something was placed, what it is called there, and in which function."""
        node, recorder = placement.node, self._recorder
        if placement.span is not None or node is None or node is INPUT or node.site < 0 or recorder is None:
            return placement.span, "", ""
        site = recorder.sites[node.site]
        return recorder.span_of(node.site), site.name if site.kind == "assign" else "", site.function

    def tell_no_more(self, tensor: Tensor) -> None:
        """Reports none of a tensor's meetings from now on."""
        placement = self.of(tensor)
        if placement is not None:
            placement.is_told = True

    # --- what operations do with it ---

    def meet(self, func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Optional[Placement]:
        """An operation is about to run: where its result will lie; None where its arguments do not tell. Tells of those that do not go
        together."""
        kind = _KIND_OF.get(func)
        if kind is None:
            kind = _kind_of(func)
        if kind in (_PLAIN, _REFUSES):
            found: Optional[Placement] = None
            for part in args:
                if isinstance(part, Tensor):
                    placement = part.__dict__.get(PLACED)
                    if placement is None or (found is not None and placement.device != found.device):
                        break
                    if not placement.device or placement.is_told:
                        return _NOWHERE
                    found = found or placement
                elif type(part) in _LISTS and part and isinstance(part[0], Tensor):
                    break
            else:
                if not any(isinstance(part, Tensor) for part in kwargs.values()):
                    return found  # All of it lies at one place.
            return self._joined(_tensors_given(args, kwargs), func.__name__ if kind == _REFUSES else "")
        if kind == _SKIPS:
            first: Optional[Placement] = args[0].__dict__.get(PLACED) if args and isinstance(args[0], Tensor) else None
            return first
        if kind == _INDEXES:
            return self._indexed(args)
        if kind == _TO_ARRAY:
            return self._as_array(args)
        return self._joined(_tensors_given(args, kwargs), "")

    def _joined(self, tensors: List[Tensor], operation: str, module: Any = None) -> Optional[Placement]:
        """Where a result lies. operation: of one that refuses what does not go together."""
        cpu: Optional[Tuple[Tensor, Placement]] = None
        elsewhere: Optional[Tuple[Tensor, Placement]] = None
        number: Optional[Placement] = None
        is_known = True
        for tensor in tensors:
            placement = tensor.__dict__.get(PLACED)
            if placement is None:
                is_known = False
                continue
            if not placement.device or placement.is_told:
                return _NOWHERE
            if placement.device != CPU:
                elsewhere = elsewhere or (tensor, placement)
            elif tensor.dim():
                cpu = cpu or (tensor, placement)
            else:
                number = placement
        if cpu is not None and elsewhere is not None:
            if operation and not any(STAND_IN in tensor.__dict__ for tensor in tensors):
                self._meets(Meeting(operation, cpu, elsewhere, module))
            return _NOWHERE
        found = elsewhere or cpu
        if found is not None:
            return found[1]
        return number if is_known else None

    def _meets(self, meeting: Meeting) -> None:
        self._tell(meeting)
        on_cpu = meeting.on_cpu[1]
        on_cpu.is_told = True

    def _indexed(self, args: Args) -> Optional[Placement]:
        """`x[i]`: an index on the CPU is moved to where `x` lies, one on an accelerator is not moved to the CPU."""
        tensor = args[0]
        placement: Optional[Placement] = tensor.__dict__.get(PLACED) if isinstance(tensor, Tensor) else None
        if placement is not None and placement.device == CPU and not placement.is_told:
            index = args[1] if len(args) > 1 else None
            for part in index if isinstance(index, tuple) else (index,):
                other = part.__dict__.get(PLACED) if isinstance(part, Tensor) and part.dim() else None
                if other is not None and other.device not in (CPU, UNKNOWN) and STAND_IN not in tensor.__dict__:
                    self._meets(Meeting("__getitem__", (tensor, placement), (part, other)))
                    return _NOWHERE
        return placement

    def _as_array(self, args: Args) -> Placement:
        """`x.numpy()`, `np.array(x)`: of what lies on the CPU only."""
        placement = self.of(args[0]) if args and isinstance(args[0], Tensor) else None
        if placement is not None and placement.device != CPU and not placement.is_told:
            self._tell(Meeting("numpy", (args[0], _NOWHERE), (args[0], placement)))
        return _NOWHERE

    def gave(self, func: Callable[..., Any], args: Args, kwargs: Kwargs, result: Any, placement: Optional[Placement]) -> Any:
        """Returns an operation's result, with its label, to the calling code."""
        kind = _KIND_OF.get(func, _PLAIN)
        if isinstance(result, Tensor):
            if kind == _MOVES:
                return self._move(func.__name__, args, kwargs, result)
            if kind == _MAKES:
                placement = self._made(func.__name__, args, kwargs, result, placement)
            elif args and result is args[0]:
                return result
            if placement is not None:
                result.__dict__[PLACED] = placement
            elif PLACED in result.__dict__:
                del result.__dict__[PLACED]
        elif isinstance(result, (tuple, list)):
            for number, tensor in enumerate(tensors_in(result, MOST_TENSORS)):
                is_length = number and getattr(func, "__name__", "") in _FIRST_ONLY
                _place(tensor, _NOWHERE if is_length else placement)
        elif kind == _ASKS:
            return names.device_for(placement.device) if placement is not None and placement.device else result
        elif kind == _SETS and isinstance(args[1], Tensor):
            _place(args[0], args[1].__dict__.get(PLACED))
        return result

    def _made(self, name: str, args: Args, kwargs: Kwargs, result: Tensor, placement: Optional[Placement]) -> Optional[Placement]:
        """A factory has made a tensor: where its `device` says, where its first argument lies, or on the default device."""
        device = kwargs.get("device")
        if device is not None:
            label = self._label(device)
            return self._moved(UNKNOWN if label is None else label, name)
        first = args[0] if args else None
        if name.endswith(_OF_FIRST[0]) or name.startswith(_OF_FIRST[1]) or isinstance(first, Tensor):
            return placement
        made = self._placement(self.default, name)
        made.node = result.__dict__.get(ORIGIN)
        return made

    def _move(self, name: str, args: Args, kwargs: Kwargs, result: Tensor) -> Tensor:
        """A tensor was moved: what the caller gets is another one, where eager makes a copy."""
        if name == "pin_memory":
            return result
        source = args[0]
        before = source.__dict__.get(PLACED)
        device = self._target("to" if name in ("type_as", "type") else name, args[1:], kwargs)
        if name == "type" and device == UNKNOWN and before is not None and before.device == CPU and "cuda" not in str(args[1:]):
            device = None  # `x.type(torch.FloatTensor)`
        if device is None:
            _place(result, before)
            return result
        if before is not None and before.device == device:
            _place(result, before)
            return result
        made = _copied(result) if result is source else result
        made.__dict__[PLACED] = self._moved(device, name)
        return made

    def call_layer(self, module: Any, args: Args, kwargs: Kwargs) -> Optional[Placement]:
        """A layer of torch's is called: where its result lies. Tells of what does not go together."""
        packed = torch.nn.utils.rnn.PackedSequence
        given = [*args, *kwargs.values()]
        tensors = list(tensors_in([part.data if isinstance(part, packed) else part for part in given], MOST_TENSORS))
        if module._modules:
            own = [*module.parameters(), *module.buffers()][:MOST_PARTS]
        else:
            own = [tensor for held in (module._parameters, module._buffers) for tensor in held.values() if tensor is not None]
        own = [tensor for tensor in own if tensor.dim()]
        return self._joined([*tensors, *own], type(module).__name__, module)

    def called_layer(self, result: Any, placement: Optional[Placement]) -> None:
        """A layer of torch's has given a result."""
        for tensor in tensors_in(result, MOST_TENSORS):
            _place(tensor, placement)

    def on_cpu(self, tensor: Tensor, operation: str) -> None:
        """A tensor was made of what lies in the memory of the CPU."""
        if self.active:
            placement = tensor.__dict__[PLACED] = self._placement(CPU, operation)
            placement.node = tensor.__dict__.get(ORIGIN)


def _place(tensor: Tensor, placement: Optional[Placement]) -> None:
    if placement is not None:
        tensor.__dict__[PLACED] = placement
    else:
        tensor.__dict__.pop(PLACED, None)


def _copied(tensor: Tensor) -> Tensor:
    """Another tensor with all that is known of this one."""
    if type(tensor) not in _KINDS or tensor.layout is not torch.strided:
        return tensor
    if not tensor.is_meta:
        made = tensor.detach().clone()
        made.requires_grad_(tensor.requires_grad)
    else:
        made = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")
        if tensor.requires_grad and tensor.is_leaf:
            made.requires_grad_()
        elif tensor.requires_grad:
            made = made.copy_(torch.empty((), device="meta", requires_grad=True))
    if type(tensor) is torch.nn.Parameter:
        made = torch.nn.Parameter(made.detach(), tensor.requires_grad)
    made.__dict__.update(tensor.__dict__)
    node = tensor.__dict__.get(ORIGIN)
    if node is not None and node is not INPUT:
        made.__dict__[ORIGIN] = node.copy()
    return made


MOVES = {"to", "cuda", "cpu", "xpu", "ipu", "pin_memory", "type_as", "type"}


def _factories() -> Any:
    from torch.utils._device import _device_constructors

    found = set(_device_constructors()) | {torch.from_numpy, torch.as_tensor, torch.asarray, torch.tensor, torch.frombuffer}
    likes = "empty_like rand_like randn_like randint_like zeros_like ones_like full_like"
    found |= {getattr(torch, name) for name in likes.split() if hasattr(torch, name)}
    new = "new_tensor new_zeros new_ones new_full new_empty new_empty_strided"
    return found | {getattr(Tensor, name) for name in new.split() if hasattr(Tensor, name)}


FACTORIES = _factories()
_KIND_OF: Dict[Any, int] = {}  # by the function; see below
_PLAIN, _REFUSES, _SKIPS, _INDEXES, _TO_ARRAY, _MOVES, _MAKES, _ASKS, _SETS = range(9)


def _kind_of(func: Callable[..., Any]) -> int:
    """Returns the effect of a function on devices, and keeps it for the next time."""
    name = getattr(func, "__name__", "")
    kind = _REFUSES if name in REFUSING else _SKIPS if name in _SKIPPED else _MOVES if name in MOVES else _PLAIN
    if name == "__getitem__":
        kind = _INDEXES
    elif name in _NUMPY:
        kind = _TO_ARRAY
    elif func in FACTORIES:
        kind = _MAKES
    elif func in _ASKS_DEVICE or func in _SETS_DATA:
        kind = _ASKS if func in _ASKS_DEVICE else _SETS
    if len(_KIND_OF) < MOST_FUNCTIONS:
        _KIND_OF[func] = kind
    return kind


def _tensors_given(args: Args, kwargs: Kwargs) -> List[Tensor]:
    """The tensors among arguments, and in lists among them."""
    tensors = []
    for part in args:
        if isinstance(part, Tensor):
            tensors.append(part)
        elif type(part) in (list, tuple):
            tensors += [each for each in part[:MOST_TENSORS] if isinstance(each, Tensor)]
    if kwargs:
        tensors += [part for part in kwargs.values() if isinstance(part, Tensor)]
    return tensors


devices = Devices()
