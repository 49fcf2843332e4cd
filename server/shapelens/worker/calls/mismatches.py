"""Exceptions of user code, as the protocol's Mismatch: a stable code, the innermost expression, and what the failed operation was given."""

from __future__ import annotations

import ast
import difflib
import re
import sys
from traceback import walk_tb
from types import FunctionType
from typing import Any, Iterable, List, Optional, Sequence, Tuple

import torch

from ...protocol import FileSpan, Mismatch, Origin, Trace
from ..meta.mode import FailedTorchCall, MetaMode, needs_data
from ..sandbox.exceptions import message_of, raised_at, traceback_of
from ..trace import gradient_paths, provenance
from ..trace.frames import Frames
from ..trace.recorder import Recorder
from ..trace.suspects import modules_running, suspects_of, tensors_of
from ..trace.tape import tape
from ..trace.value_summary import LAYER, key_of, value_of
from ..unknown.stand_ins import STAND_IN_TYPE, cause_of
from .misplaced_dims import lacks_dims, lacks_transpose
from .missing_keys import dict_without

# What eager says -> the code of the finding. The first that fits counts.
MESSAGES: List[Tuple[str, str]] = [
    (
        r"must match the size of tensor|not broadcastable|doesn't match the broadcast shape|Attempting to broadcast a dimension"
        r"|shape mismatch: .* broadcast",
        "broadcast",
    ),
    (r"mat1 and mat2 shapes|size mismatch, got|Expected size for first two dimensions of batch2|batch1|inconsistent tensor size", "matmul"),
    (
        r"same d(ata)?type|expected scalar type|dtypes? .*(must|should) (be|match)|dtype but got|does not match weight dtype|target dtype"
        r"|not implemented for '|operator, (with|on) .*bool tensor|Expected (a long tensor|dtype)|scalar type of|same scalar type"
        r"|only supports? floating|[Bb]ool(ean)? (inputs?|dtypes?) (is |are )?not|weight type \(|used as indices must be"
        r"|can't be cast to the desired output type|dtypes match|only implemented on integer and Boolean",
        "dtype",
    ),
    (r"key_padded_mask|key_padding_mask|attn_mask|src_mask|is_causal", "attention"),
    (r"shape '.*' is invalid for input|view size is not compatible|cannot be reshaped|is invalid for input of size", "view"),
    (r"Sizes of tensors must match except in dimension|Tensors must have same number of dimensions|stack expects each tensor", "cat"),
    (r"Dimension out of range|number of dimensions in the tensor input does not match|Dimension specified as|dims? .* out of range", "dim"),
    (r"einsum\(\)", "einsum"),
    (r"to have \d+ channels|expected input\[.*\] to have", "conv-in-channels"),
    (r"embed_dim must be divisible|divisible by num_heads|num_heads", "attention-heads"),
    (r"Kernel size can't be greater|output size is too small|Calculated padded input size|Output size is too small", "kernel-size"),
    (r"hidden\[?0?\]? size|Expected hidden|input must have \d dimensions|must be equal to input_size", "rnn-input-size"),
    (r"pixel_(un)?shuffle expects", "shape"),
    (r"grad can be implicitly created only for scalar", "backward-scalar"),
    (r"does not require grad and does not have a grad_fn", "detached-loss"),
    (r"leaf Variable|modified by an inplace operation", "in-place"),
    (r"backward through the graph a second time", "second-backward"),
    (r"Can't call numpy\(\) on Tensor that requires grad", "numpy-of-gradient"),
    (r"Expected more than 1 (value per channel|spatial element)", "norm-single-value"),
    (r"index out of range|out of bounds", "index"),
]
_PATTERNS = [(re.compile(pattern), code) for pattern, code in MESSAGES]
# The torch function that failed -> the code, where the message tells nothing.
OPERATIONS = {
    "linear": "matmul", "matmul": "matmul", "mm": "matmul", "bmm": "matmul", "__matmul__": "matmul", "addmm": "matmul", "baddbmm": "matmul",
    "scaled_dot_product_attention": "attention", "view": "view", "reshape": "view", "unflatten": "view", "flatten": "view",
    "cat": "cat", "concat": "cat", "stack": "cat", "einsum": "einsum",
    "expand": "broadcast", "expand_as": "broadcast", "where": "broadcast",
    "split": "split", "chunk": "split", "gather": "index", "index_select": "index", "permute": "dim", "transpose": "dim",
}  # fmt: skip


OF_THE_TAPE = ("in-place", "second-backward", "numpy-of-gradient")  # whose places the tape knows
OF_THE_WORLD = ("missing-file", "unavailable")  # codes of notes on what the machine lacks


def may_follow(trace: Trace, file: str, node: ast.stmt) -> bool:
    """True if the cause of a failed statement may be a failed one above it, or the missing content of a file."""
    failed = [found.span for found in trace.mismatches if found.code == "definition"]
    failed += [note.span for note in trace.notes if note.code in OF_THE_WORLD]
    computes = isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.For))
    return computes and any(span is not None and span.file == file and span.line < node.lineno for span in failed)


def is_set_elsewhere(error: BaseException) -> bool:
    """True if an object lacks an attribute that a method of its class sets: a program calls that method, but only definitions ran."""
    owner, name = type(getattr(error, "obj", None)), getattr(error, "name", None)
    if not isinstance(error, AttributeError) or name is None:
        return False
    methods = [value for base in owner.__mro__ for value in base.__dict__.values() if isinstance(value, FunctionType)]
    return any(name in method.__code__.co_names for method in methods)


def one_line(error: BaseException, limit: int = 500) -> str:
    """The message of an exception, on one line."""
    text = " ".join(message_of(error).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def code_of(error: BaseException, failure: Optional[FailedTorchCall]) -> str:
    """The finding's code; "exception" for anything that is not torch's complaint."""
    text = message_of(error)
    if needs_data(error):
        return "data-dependent"
    ours = failure is not None and failure.error is error
    if ours and failure is not None and failure.operation == "scaled_dot_product_attention" and "dtype" not in text:
        return "attention"
    if ours and failure is not None and failure.operation in ("embedding", "embedding_bag") and "index out of range in self" in text:
        return "embedding-range"
    if ours or isinstance(error, (RuntimeError, IndexError)) or _raised_by_torch(error):
        for pattern, code in _PATTERNS:
            if pattern.search(text):
                return code
    if ours and failure is not None:
        return OPERATIONS.get(failure.operation, "shape" if isinstance(error, (RuntimeError, IndexError, ValueError)) else "exception")
    return "shape" if isinstance(error, (RuntimeError, ValueError, AssertionError)) and _CHECKS.match(_raised_in(error)) else "exception"


# The modules of torch whose Python code checks what layers and functions are given.
_CHECKS = re.compile(r"torch\Z|torch\.functional\Z|torch\.nn\.(functional|modules\.(?!module\Z|container\Z|lazy\Z))")


_OURS = ("shapelens", "_shapelens")


def _raised_by_torch(error: BaseException) -> bool:
    """True if torch's own Python code raised it: for an impossible argument, a layer's constructor raises ValueError or AssertionError."""
    name = _raised_in(error)
    return name == "torch" or name.startswith("torch.")


def _raised_in(error: BaseException) -> str:
    """The name of the module whose code raised an exception, or called the operation of torch that did."""
    modules = [str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(traceback_of(error))]
    return next((name for name in reversed(modules) if name.partition(".")[0] not in _OURS), "")


def mismatch_of(
    error: BaseException, example: int, frames: Frames, meta: MetaMode, calls: Any, trail: Optional[List[FileSpan]] = None
) -> Mismatch:
    """Returns the mismatch that an exception reports. `trail`: the user frames that it came from, where it does not know them itself."""
    trail = frames.trail_of(traceback_of(error)) if trail is None else trail
    failure = meta.failure if meta.failure is not None and meta.failure.error is error else None
    code, message = code_of(error, failure), one_line(error) or type(error).__name__
    cause = cause_of(error)
    of_stand_in = STAND_IN_TYPE in message or (failure is not None and failure.is_given_absent)
    if cause is not None and (code in ("exception", "shape") or of_stand_in):
        code, message = cause  # No mistake of this code: something that it got from a missing module or file is not what it should be.
    found = Mismatch(code, message, type(error).__name__, trail[-1] if trail else None, trail, example)
    layer, given = _layer_in(error)
    if layer is not None:
        found.layer = layer.__dict__.get(LAYER)
    if failure is not None:
        found.operation = failure.operation
        with torch._C.DisableTorchFunction():
            found.inputs = [value_of(key_of(tensor)) for tensor in failure.arguments[:6]]
            _find_origins(found, failure, trail, calls.recorder)
    arguments = failure.arguments if failure is not None else given or tensors_of(traceback_of(error), frames.is_user_frame)
    for tensor, dim in _indivisible(message, arguments) if failure is None else ():
        found.origins += provenance.trace_back(tensor, dim, calls.recorder)
    if not isinstance(error, (AttributeError, NameError, KeyError)):  # What is missing there is a name.
        found.suspects = suspects_of(arguments, calls.recorder, found.layer)
    found.inside = modules_running(traceback_of(error), frames.is_user_frame)
    return found


def meant_name(error: BaseException) -> str:
    """The attribute, name in scope or key that is most like the one that an exception says is missing; "" where none is like it."""
    if isinstance(error, KeyError):
        return alike(str(error.args[0]), dict_without(error)) if error.args else ""
    name, place = getattr(error, "name", None), raised_at(error)  # Since Python 3.10.
    if not isinstance(name, str):
        return ""
    if isinstance(error, AttributeError):
        return alike(name, dir(getattr(error, "obj", None)))
    if isinstance(error, NameError) and place is not None:
        return alike(name, {*place.tb_frame.f_locals, *place.tb_frame.f_globals})
    said = NOT_IMPORTED.search(message_of(error)) if isinstance(error, ImportError) else None
    name, owner = said.groups() if said is not None else name.rpartition(".")[::-2]
    module = sys.modules.get(owner)
    return alike(name, dir(module)) if isinstance(error, ImportError) and module is not None else ""


NOT_IMPORTED = re.compile(r"cannot import name '(?P<name>\w+)' from '(?P<module>[\w.]+)'")


def alike(name: str, known: Iterable[str]) -> str:
    """The name among those that are known which is most like another one, as public as that; "" where none is like it."""
    public = (each for each in known if each.startswith("_") == name.startswith("_") and each.endswith("_") == name.endswith("_"))
    return next(iter(difflib.get_close_matches(name, sorted(public), 1, 0.78)), "")


def _find_origins(found: Mismatch, failure: FailedTorchCall, trail: List[FileSpan], recorder: Recorder) -> None:
    """Where what does not fit came from: the sizes, or what the tape refuses."""
    code, tensors = found.code, failure.arguments
    if code == "backward-scalar" and tensors:
        found.origins = provenance.made_by(tensors[0], recorder)
    if code == "detached-loss":
        found.origins = gradient_paths.cut(tensors[0], recorder) if tensors else []
    elif code in OF_THE_TAPE:
        found.origins, tape.origins = tape.origins, []
        changed = found.origins[1].span if code == "in-place" and len(found.origins) > 1 else None
        if changed is not None:  # There it has to be done otherwise; `backward` only finds it.
            found.origins.append(Origin("backward", found.span, [], []))
            found.span, found.trail = changed, [*trail, changed]
    else:
        for tensor, dim in _split_dim(found.message, tensors[:1]) or _dims_to_blame(code, tensors[:4]):
            found.origins += provenance.trace_back(tensor, dim, recorder)
        found.of_parameter = any(map(provenance.is_of_parameter, tensors[:4]))
        if code in ("matmul", "broadcast"):
            rule = lacks_transpose if code == "matmul" else lacks_dims
            found.lacks_transpose = rule(tensors[:2], recorder)


_INDIVISIBLE = re.compile(r"can't divide axis of length (\d+) in chunks of")  # einops


def _indivisible(message: str, tensors: Sequence[torch.Tensor]) -> List[Tuple[torch.Tensor, int]]:
    """The dim that einops could not take apart: of the first tensor that has one of that size, the innermost frame's first."""
    found = _INDIVISIBLE.search(message)
    sized = [(tensor, tuple(tensor.shape).index(int(found[1]))) for tensor in tensors if found and int(found[1]) in tuple(tensor.shape)]
    return sized[:1]


_SPLIT_DIM = re.compile(r"split_with_sizes expects .*dimension (-?\d+)")


def _dims_to_blame(code: str, tensors: List[torch.Tensor]) -> List[Tuple[torch.Tensor, int]]:
    """The dims, counted from the front, of a failed operation's arguments whose sizes do not fit; the last ones where that is not known."""
    tensors = [tensor for tensor in tensors if tensor.dim()]
    if len(tensors) > 1 and code == "matmul":
        first, second = tensors[:2]
        return [(first, first.dim() - 1), (second, max(second.dim() - 2, 0))]
    if len(tensors) > 1 and code in ("broadcast", "cat"):
        first, second = tensors[:2]
        for back in range(1, min(first.dim(), second.dim()) + 1):
            if first.shape[-back] != second.shape[-back] and (code == "cat" or 1 not in (first.shape[-back], second.shape[-back])):
                return [(tensor, tensor.dim() - back) for tensor in (first, second)]
    return [(tensor, tensor.dim() - 1) for tensor in tensors]


def _split_dim(message: str, tensors: List[torch.Tensor]) -> List[Tuple[torch.Tensor, int]]:
    """The dim that could not be split as it was asked for, of the tensor; [] where the message does not tell."""
    found = _SPLIT_DIM.search(message)
    dim = int(found[1]) if found is not None else -1
    return [(tensor, dim % tensor.dim()) for tensor in tensors[:1] if found is not None and -tensor.dim() <= dim < tensor.dim()]


def _layer_in(error: BaseException) -> Tuple[Any, List[torch.Tensor]]:
    """The torch layer in whose forward an exception was raised, if it was, and the tensors that it was given."""
    traceback, layer = traceback_of(error), None
    given: List[torch.Tensor] = []
    while traceback is not None:
        frame = traceback.tb_frame
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name == "forward" and isinstance(owner, torch.nn.Module):
            is_torch = str(frame.f_globals.get("__name__", "")).startswith("torch.nn.")
            layer = owner if is_torch else None
            parameters = frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
            values = [frame.f_locals.get(name) for name in parameters] if is_torch else []
            given = [value for value in values if isinstance(value, torch.Tensor)]
        traceback = traceback.tb_next
    return layer, given
