"""Tensors of different devices that meet in a program, as mismatches at the place where one would move them."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Iterator, List, Optional, Sequence

import torch

from ...protocol import FileSpan, Mismatch, Origin, Value
from ..loading.failing_lines import parsed
from ..rewrite.resilient import asks_for_accelerator, is_setting, only_moves
from ..trace.devices import CPU, Meeting, Placement, devices
from ..trace.provenance import known_sizes
from ..trace.suspects import modules_running
from ..trace.value_summary import LAYER, key_of, value_of

Tensor = torch.Tensor

_NAMES_DEVICES = re.compile(r"cuda|mps|xpu|accelerator|device")
CODE = "device"
# What moves tensors by itself, or makes them on an accelerator past what is followed.
_MOVES_ITSELF = re.compile(
    r"\b(accelerate|lightning|pytorch_lightning|deepspeed|horovod|ignite|fastai|colossalai|composer|catalyst|skorch|poptorch|torch_xla)\b"
    r"|\bdevice_map\b|\bTrainer\(|cuda\.\w*Tensor\b|set_default_tensor_type|\bprefetcher\b|torch\.cuda\.comm|\.to_device\("
)
_ASKS = re.compile(r"cuda|gpu|mps|xpu|device|is_available|accelerator", re.IGNORECASE)


def may_be_told(text: str) -> bool:
    """True if a program names devices, and nothing in it moves tensors in a way that the tracing does not follow."""
    return _NAMES_DEVICES.search(text) is not None and _MOVES_ITSELF.search(text) is None


@contextlib.contextmanager
def watching(evaluation: Any) -> Iterator[None]:
    """The tensors of a program have labels meanwhile."""
    with devices.watching(evaluation.frames, evaluation.recorder, lambda meeting: _tell(evaluation, meeting)):
        yield


def without_unsure(evaluation: Any, failed_lines: Sequence[int]) -> None:
    """Take back what was said of devices where something else may move tensors. failed_lines: of the program's statements."""
    calls = evaluation.calls
    said = any(found.code == CODE for found in calls.mismatches)
    if said and (devices.is_lost or _may_move_otherwise(list(evaluation.recorder.rewritten), evaluation.frames.file, failed_lines)):
        calls.mismatches[:] = [found for found in calls.mismatches if found.code != CODE]


# --- what does not go together ---


def _tell(evaluation: Any, meeting: Meeting) -> None:
    calls, frames = evaluation.calls, evaluation.frames
    trail = frames.trail()
    if not trail or calls.refuse is not None or calls.aside:
        return
    on_cpu, elsewhere = meeting.on_cpu, meeting.elsewhere
    accelerator = elsewhere[1].device
    if meeting.operation == "numpy":
        message = "can't convert %s:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first." % accelerator
        found = Mismatch(CODE, message, "TypeError", trail[-1], trail, calls.example, operation="numpy")
        found.inputs, found.origins = [_value(*elsewhere)], [_side(frames, trail[-1], *elsewhere)]
        calls.add_mismatch(found)
        return
    message = "Expected all tensors to be on the same device, but found at least two devices, %s:0 and cpu!" % accelerator
    span, root, layer = trail[-1], None, meeting.module
    if calls.depth:
        root = devices.root.module
        if _came_from_outside(meeting, root):
            span, layer = devices.root.span or span, None
            for parameter in root.parameters() if root is not None and isinstance(on_cpu[0], torch.nn.Parameter) else ():
                devices.tell_no_more(parameter)  # One cause is said once.
    if _was_made_in_library(meeting, span):
        return
    found = Mismatch(CODE, message, "RuntimeError", span, trail, calls.example, operation=meeting.operation)
    if span in trail:
        found.trail = trail[: trail.index(span) + 1]
    if layer is not None:
        found.layer = layer.__dict__.get(LAYER)
    elif root is not None and isinstance(on_cpu[0], torch.nn.Parameter):
        found.layer = root.__dict__.get(LAYER)
    found.inputs = [_value(*on_cpu), _value(*elsewhere)]
    found.origins = [_side(frames, span, *on_cpu), _side(frames, span, *elsewhere)]
    found.inside = modules_running(None, frames.is_user_frame) if span == trail[-1] else []
    calls.add_mismatch(found)


def _came_from_outside(meeting: Meeting, root: Any) -> bool:
    """True if the tensor on the CPU was given to the called root model, or if all of that model lies on the CPU."""
    tensor, placement = meeting.on_cpu
    if isinstance(tensor, torch.nn.Parameter):
        return root is not None and not any(_is_elsewhere(each) for each in root.parameters())
    return placement.number <= devices.root.number and not devices.place_of(placement)[2].endswith("__init__")


def _is_elsewhere(parameter: Tensor) -> bool:
    placement = devices.of(parameter)
    return placement is None or placement.device != CPU


def _was_made_in_library(meeting: Meeting, span: FileSpan) -> bool:
    """True if a library made the tensor on the CPU during its own call: the library knows what to do with it."""
    tensor, placement = meeting.on_cpu
    if isinstance(tensor, torch.nn.Parameter) or placement.operation == "DataLoader":
        return False
    return devices.place_of(placement)[0] is None and placement.number > devices.root.number


def _value(tensor: Tensor, placement: Placement) -> Value:
    kind = "Parameter" if isinstance(tensor, torch.nn.Parameter) else "Tensor"
    return replace(value_of(key_of(tensor)), device=placement.device, type_name=kind)


def _side(frames: Any, at: FileSpan, tensor: Tensor, placement: Placement) -> Origin:
    """Where one side got its device; `argument` is what the code calls it there, where it failed, or where it was made."""
    span, name, _ = devices.place_of(placement)
    name = _name_at(frames, at, tensor) or name
    owner = placement.owner
    layer = owner.__dict__.get(LAYER) if owner is not None else None
    operation = "Parameter" if isinstance(tensor, torch.nn.Parameter) and owner is None else placement.operation
    return Origin(operation, span, [], known_sizes(tuple(tensor.shape)), layer, name)


def _name_at(frames: Any, at: FileSpan, tensor: Tensor) -> str:
    """Returns the name of the variable or attribute that holds a tensor, in the user's frame at a place; "" where none does."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == at.file and at.line <= frame.f_lineno <= at.end_line:
            for name, value in frame.f_locals.items():
                if value is tensor and not name.startswith("__shapelens"):
                    return name
            owner = frame.f_locals.get("self")
            held = owner.__dict__ if isinstance(owner, torch.nn.Module) else {}
            for found in (held, held.get("_buffers") or {}, held.get("_parameters") or {}):
                for name, value in found.items():
                    if value is tensor:
                        return "self.%s" % name
        frame = frame.f_back
    return ""


# --- what may move tensors past what is followed ---


def _may_move_otherwise(files: List[str], document: str, failed_lines: Sequence[int]) -> bool:
    for file in files:
        text = "".join(linecache.getlines(file))
        tree = parsed(text) if _MOVES_ITSELF.search(text) is None else None
        if tree is None or _moves_on_condition(tree, file == document):
            return True
    tree = parsed("".join(linecache.getlines(document)))
    failed = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno in failed_lines] if tree is not None else []
    return any(_moves(node) for node in failed if not hasattr(node, "body"))


def _moves_on_condition(node: ast.AST, is_program: bool) -> bool:
    """True if a tree has an `if use_cuda:` that moves something: without an accelerator, the tracing does not follow that.

    is_program: outside of classes, a program always runs a plain `if use_cuda: model.cuda()` (rewrite/resilient.py).
    """
    if isinstance(node, ast.If) and _ASKS.search(ast.unparse(node.test)) is not None:
        moving = [any(map(_moves, branch)) for branch in (node.body, node.orelse)]
        is_done = is_program and only_moves(node) and (asks_for_accelerator(node) or is_setting(node.test, set()))
        if moving[0] != moving[1] and not is_done:
            return True
    if isinstance(node, ast.IfExp) and _ASKS.search(ast.unparse(node.test)) is not None and _moves(node.body) != _moves(node.orelse):
        return True
    is_program = is_program and not isinstance(node, ast.ClassDef)
    return any(_moves_on_condition(part, is_program) for part in ast.iter_child_nodes(node))


def _moves(node: ast.AST) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("to", "cuda", "cpu", "xpu", "type"):
            return True
        if isinstance(part, ast.keyword) and part.arg == "device":
            return True
    return False
