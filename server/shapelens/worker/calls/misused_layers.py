"""Layers that are called as nothing can be called: with a tuple, a list or an array where a tensor belongs, with the wrong number of
arguments; and classes of layers that are called as if they were functions (`nn.ReLU(x)`)."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from traceback import walk_tb
from types import FrameType
from typing import Any, Dict, List, Optional, Tuple, Union

import torch

from ...protocol import FileSpan, Origin
from ...stated.syntax_trees import expression_of
from ..loading.definitions import KEPT
from ..sandbox.exceptions import message_of, traceback_of
from ..trace import provenance
from ..trace.layer_inputs import is_torch_layer
from ..trace.recorder import Recorder
from ..trace.tape import tape
from ..trace.value_summary import HALF_BUILT, ORIGIN, STAND_IN
from ..unknown.stand_ins import holds_absent
from .unfit_calls import says_so

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]

GIVES_TUPLES = (torch.nn.RNNBase, torch.nn.LSTMCell, torch.nn.MultiheadAttention)
# Layers that take something else than a tensor first.
_TAKES_OTHERS = (torch.nn.RNNBase, torch.nn.Identity, torch.nn.Sequential)
_NO_TENSORS = (tuple, list, dict, str, bytes, torch.nn.Module)
_OF_TUPLES = re.compile(
    r"unsupported operand type\(s\) for .*'Tensor' and 'tuple'|unsupported operand type\(s\) for .*'tuple' and 'Tensor'"
    r"|must be Tensor, not (tuple|torch\.return_types\.\w+)|'(tuple|list|torch\.return_types\.\w+)' object has no attribute"
    r"|can only concatenate tuple|tuple indices must be integers or slices, not tuple"
    r"|unsupported operand type\(s\) for .*torch\.return_types"
)
_LACKS_FORWARD = 'is missing the required "forward" function'
_OF_SAMPLES = re.compile(r"default_collate: batch must contain .*; found <class '(NoneType|PIL\.\w+\.Image)'>")
_OF_PICTURES = re.compile(r"pic should be PIL Image or ndarray\. Got <class 'torch\.Tensor'>")
_OF_NUMBERS = re.compile(r"'(float|int|UnknownFloat|UnknownInt)' object has no attribute 'backward'")


def is_given_no_tensor(module: Any, args: Args, kwargs: Kwargs) -> bool:
    """True if the first argument of a layer of torch is known, and no tensor."""
    if not args or not is_torch_layer(module) or isinstance(module, _TAKES_OTHERS) or holds_absent(args):
        return False
    given = args[0]
    return isinstance(given, _NO_TENSORS) or is_array(given) or is_picture(given)


def words_for(given: Any) -> str:
    """Returns the words for an argument in the place of a tensor."""
    if isinstance(given, torch.nn.Module):
        return "the layer %s" % type(given).__name__
    if type(given).__module__ == "torch.return_types":
        return "a tuple"
    return "a numpy array" if is_array(given) else "a PIL picture" if is_picture(given) else "a %s" % type(given).__name__


def is_array(value: Any) -> bool:
    """True if a value is an array of numpy."""
    return any((base.__module__, base.__name__) == ("numpy", "ndarray") for base in type(value).__mro__)


def is_picture(value: Any) -> bool:
    """True if a value is a picture of PIL."""
    return any((base.__module__, base.__name__) == ("PIL.Image", "Image") for base in type(value).__mro__)


def is_given_result_of_class(args: Args) -> bool:
    """True if a layer's argument is a layer that was constructed where it should have been called: a finding reports that already."""
    return bool(args) and isinstance(args[0], torch.nn.Module) and HALF_BUILT in args[0].__dict__


def is_tuple_of_layer(value: Any) -> bool:
    """True if a value is the whole tuple that a layer or function of torch returned, or a module that a program called."""
    if type(value).__module__ == "torch.return_types":
        return True
    if tape.active and type(value) is tuple and value and all(map(_is_made, value)):
        return True
    return _is_of_torch(value)


def _are_asked_for_one(owner: Any, name: Any) -> bool:
    """True if a program reads an attribute of a single tensor from a tuple or list of several: `hidden.to(device)`."""
    if not tape.active or type(owner) not in (tuple, list) or not isinstance(name, str) or not hasattr(Tensor, name):
        return False
    return bool(owner) and all(type(each) in (Tensor, torch.nn.Parameter) and STAND_IN not in each.__dict__ for each in owner)


def holds_tuples(value: Any) -> bool:
    """True if a program joins a list of tuples of tensors: `torch.stack(outputs)` of the results of an LSTM."""
    return tape.active and type(value) is list and bool(value) and is_tuple_of_layer(value[0])


def _is_of_torch(value: Any) -> bool:
    """True if a tuple is the whole result of a layer of torch."""
    if type(value) is not tuple or not value or not isinstance(value[0], Tensor):
        return False
    node = value[0].__dict__.get(ORIGIN)
    return node is not None and isinstance(node.module, GIVES_TUPLES)


def _is_made(value: Any) -> bool:
    """True if a value is a tensor that an operation returned without a failure."""
    node = value.__dict__.get(ORIGIN) if type(value) is Tensor else None
    return node is not None and not node.stand_in and STAND_IN not in value.__dict__


def lacks_forward(module: Any) -> bool:
    """True if a module only lists others, so that it cannot be called."""
    return isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)) and type(module).__module__.startswith("torch.")


def lacks_forward_function(error: BaseException) -> bool:
    """True if the called module has a class without `forward`."""
    return type(error) is NotImplementedError and _LACKS_FORWARD in message_of(error)


def cannot_be_collated(error: BaseException) -> str:
    """Returns the words for a part of a sample that has no batch; "" where the error has another cause."""
    found = _OF_SAMPLES.match(message_of(error)) if type(error) is TypeError else None
    return "" if found is None else "None" if found[1] == "NoneType" else "a PIL picture"


def refuses_tensor(error: BaseException) -> bool:
    """True if a transform of torchvision's that takes pictures, as `ToTensor` does, was given a known tensor."""
    if type(error) is not TypeError or _OF_PICTURES.match(message_of(error)) is None:
        return False
    frames = [frame for frame, _ in walk_tb(traceback_of(error))]
    given = frames[-1].f_locals.get("pic") if frames else None
    return type(given) is Tensor and STAND_IN not in given.__dict__


def made_at(value: Any, recorder: Recorder) -> List[Origin]:
    """Where a tuple or a list came from, in a list; [] where that is not known, or where code of the user's put it together."""
    if type(value) in (tuple, list) and not _is_of_torch(value):
        return []
    tensor = next(provenance.tensors_in(value), None) if isinstance(value, (tuple, list)) else None
    return [] if tensor is None else provenance.made_by(tensor, recorder)


def does_not_bind(module: Any, args: Args, kwargs: Kwargs, error: BaseException) -> bool:
    """True if a call of a module failed as its `forward` does not take that many arguments, or none of these names."""
    return type(error) is TypeError and says_so(message_of(error)) and not binds(module, args, kwargs)


def binds(module: Any, args: Args, kwargs: Kwargs) -> bool:
    """False if the `forward` of a module takes other arguments, whatever their values are."""
    try:
        inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # There is no signature.
        return True
    return True


def is_applied_class(cls: Any, args: Args) -> bool:
    """True if a layer's constructor is given the arguments that the layer itself needs. Some losses take the weights of classes."""
    if not args or not isinstance(args[0], Tensor) or not (tape.active or _in_forward()):
        return False
    with torch._C.DisableTorchFunction():
        if issubclass(cls, torch.nn.modules.loss._Loss):
            return len(args) > 1 and isinstance(args[1], Tensor) and args[0].dim() > 0
        return args[0].dim() > 1


def _in_forward() -> bool:
    """True if a `forward` of the user's makes the call: its tensors are no guesses for the numbers that a constructor needs."""
    frame: Optional[FrameType] = sys._getframe(2)
    while frame is not None and KEPT not in frame.f_globals:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "forward"


def is_plain_call(span: Optional[FileSpan]) -> bool:
    """True if the text of a call shows the number of its arguments, and their names."""
    node = _expression_at(span) if span is not None else None
    if not isinstance(node, ast.Call):
        return False
    return not any(isinstance(each, ast.Starred) for each in node.args) and all(each.arg is not None for each in node.keywords)


def _expression_at(span: FileSpan) -> Optional[ast.expr]:
    lines = [line.encode() for line in linecache.getlines(span.file)[span.line - 1 : span.end_line]]
    if not lines:
        return None
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return expression_of(b"(" + b"".join(lines) + b")")


def backs_from_number(error: BaseException) -> bool:
    """True if the code called `backward` on a number."""
    return isinstance(error, AttributeError) and _OF_NUMBERS.search(message_of(error)) is not None


def called_tensor(error: BaseException, tree: ast.AST, frame: FrameType, line: int) -> str:
    """The name that a call has for a function where it holds a tensor; "" where that is not what is wrong."""
    if type(error) is not TypeError or not re.match(r"'(Tensor|Parameter)' object is not callable", message_of(error)):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.lineno <= line <= (node.end_lineno or node.lineno):
            value = frame.f_locals.get(node.func.id, frame.f_globals.get(node.func.id))
            if type(value) is Tensor and STAND_IN not in value.__dict__ and value.__dict__.get(ORIGIN) is not None:
                return node.func.id
    return ""


def tuple_in_place_of_tensor(error: BaseException, tree: Optional[ast.AST], frame: FrameType, line: int) -> Any:
    """The whole result of a layer of torch that a statement takes for a tensor; None where that is not what is wrong."""
    if not isinstance(error, (TypeError, AttributeError)) or _OF_TUPLES.search(message_of(error)) is None:
        return None
    owner = getattr(error, "obj", None)
    if is_tuple_of_layer(owner) or _are_asked_for_one(owner, getattr(error, "name", None)):
        return owner
    for inner, _ in walk_tb(traceback_of(error)):
        module = inner.f_locals.get("self")
        if inner.f_code.co_name == "forward" and isinstance(module, torch.nn.Module) and is_torch_layer(module):
            given = inner.f_locals.get(inner.f_code.co_varnames[1]) if inner.f_code.co_argcount > 1 else None
            return given if is_tuple_of_layer(given) else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Subscript, ast.BinOp, ast.Call)) and node.lineno <= line <= (node.end_lineno or node.lineno):
            given = _tuple_taken(node, frame)
            if given is not None:
                return given
    return None


def _tuple_taken(node: Union[ast.Subscript, ast.BinOp, ast.Call], frame: FrameType) -> Any:
    """The whole result of a layer that an expression indexes, calculates with or hands on as a tensor; () where it has no name."""
    if isinstance(node, ast.Subscript):
        named = isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Tuple)
        given = frame.f_locals.get(node.value.id) if named and isinstance(node.value, ast.Name) else None
        return given if is_tuple_of_layer(given) else None
    for part in (node.left, node.right) if isinstance(node, ast.BinOp) else node.args:
        if isinstance(part, ast.Name) and is_tuple_of_layer(frame.f_locals.get(part.id)):
            return frame.f_locals[part.id]
        if isinstance(node, ast.BinOp) and isinstance(part, ast.Call) and isinstance(_module_of(part.func, frame), GIVES_TUPLES):
            return ()
    return None


def _module_of(node: ast.expr, frame: FrameType) -> Any:
    """The module that `self.layer` or `layer` names."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    owner = frame.f_locals.get(node.value.id) if is_own else None  # type: ignore[attr-defined]
    return owner._modules.get(node.attr) if isinstance(owner, torch.nn.Module) else None  # type: ignore[attr-defined]
