"""`load_state_dict` of a program: what is loaded is compared with the module, by torch itself, where both are known.

A state is known where all of its values are tensors of the run: of a file that is there (`weight_files`), of another module, of what
the program has saved. What stands in for something says nothing, and a size that nobody knows fits every other one.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import re
import sys
from collections import OrderedDict
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch.nn.modules.module import _IncompatibleKeys

from ...protocol import Mismatch, Origin, StateSeen
from ..loading.failing_lines import parsed
from ..locations import TORCH, WORKER
from ..trace.frames import Frames
from ..trace.module_tree import modules, named_modules
from ..trace.value_summary import HALF_BUILT, LAYER
from ..unknown import unknown_sizes
from ..unknown.missing_modules import MissingModule
from ..unknown.stand_ins import holds_absent, is_absent
from . import state_names
from .exception_handlers import would_be_caught

Tensor = torch.Tensor
Shapes = Dict[str, Tuple[int, ...]]
_plainly = torch._C.DisableTorchFunction

CODE = "checkpoint"
FROM = "_shapelens_file"  # in the __dict__ of tensors that were read from a file: its name
COMPILED = "_shapelens_compiled"  # in the __dict__ of a module that torch.compile was given, and that stands for what that gives
OF_COMPILED = "_orig_mod."
OF_UNKNOWN_MODEL = "_shapelens_gives"  # in the __dict__ of a model of which nothing is known
MOST_KEYS = 200  # that are told of one kind
MOST_SIZES = 24
DEEPEST = 3  # dicts inside of each other in which a state is looked for

_load_state_dict = torch.nn.Module.load_state_dict
_SIZE = re.compile(r"size mismatch for (\S+): copying a param with shape (?:torch\.Size\()?\[([\d, ]*)\]\)? from checkpoint, the shape")
# What gives a model other parameters than its classes say, past what is followed.
_CHANGES_PARAMETERS = re.compile(
    r"\b(quantize\w*|prepare_qat|fuse_modules|get_peft_model|inject_adapter\w*|deepspeed|bitsandbytes|fully_shard)\b|\bFSDP\("
)


class Compared(NamedTuple):
    """The errors and keys that torch reports for a state and a module, less those that rest on something unknown."""

    missing: List[str]
    unexpected: List[str]
    sizes: List[Tuple[str, Tuple[int, ...], Tuple[int, ...]]]  # key, the shape in the state, the module's
    others: List[str]  # what else torch says

    def refuses(self, strict: bool) -> bool:
        """True if torch raises an error."""
        return bool(self.sizes or self.others or (strict and (self.missing or self.unexpected)))


class StateDicts:
    """Compares states with modules while a program is followed."""

    def __init__(self) -> None:
        self._frames: Optional[Frames] = None
        self._tell: Optional[Callable[[Mismatch], None]] = None

    @contextlib.contextmanager
    def watching(self, frames: Frames, tell: Callable[[Mismatch], None]) -> Iterator[None]:
        """`tell` is called with what does not fit meanwhile."""
        self._frames, self._tell = frames, tell
        try:
            yield
        finally:
            self._frames = self._tell = None

    def load(self, module: Any, state: Any = None, strict: bool = True) -> Any:
        """Returns the result of `load_state_dict`; copies nothing."""
        if self._tell is None or self._frames is None or not _is_asked_by_user(self._frames):
            return _IncompatibleKeys([], [])
        with _plainly():
            found = _no_dict(module, state)
            compared = None if found is not None else compared_with(module, state)
            if compared is not None and compared.refuses(strict):
                found = finding_of(module, state, compared, strict)
        if found is None:
            return _IncompatibleKeys([], []) if compared is None else _IncompatibleKeys(compared.missing, compared.unexpected)
        if would_be_caught():
            raise (RuntimeError if found.exception == "RuntimeError" else TypeError)(found.message)
        self._tell(found)
        return _IncompatibleKeys([], [])


state_dicts = StateDicts()


@contextlib.contextmanager
def watching(evaluation: Any) -> Iterator[None]:
    """Compares each state that a program loads meanwhile with its module."""
    calls, frames = evaluation.calls, evaluation.frames

    def tell(found: Mismatch) -> None:
        trail = frames.trail()
        if trail and calls.refuse is None and not calls.aside:
            found.span, found.trail, found.example = trail[-1], trail, calls.example
            calls.add_mismatch(found)

    with state_dicts.watching(frames, tell):
        yield


def without_unsure(evaluation: Any, file: str, text: str, failed_lines: Sequence[int]) -> None:
    """Take back what was said where a statement that failed may have changed the state or the module. failed_lines: of the program's."""
    calls = evaluation.calls
    if not any(found.code == CODE for found in calls.mismatches):
        return
    tree = parsed(text)
    failed = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno in failed_lines] if tree is not None else []
    texts = [text, *("".join(linecache.getlines(each)) for each in evaluation.recorder.rewritten)]
    unsure = tree is None or any(_CHANGES_PARAMETERS.search(each) is not None for each in texts)
    kept = []
    for found in calls.mismatches:
        is_doubtful = found.code == CODE and (unsure or any(_has_to_do(tree, node, found, file) for node in failed))
        kept += [] if is_doubtful else [found]
    calls.mismatches[:] = kept


# --- what is known ---


def _is_asked_by_user(frames: Frames) -> bool:
    """True if user code itself makes the call: a library knows what it does."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((WORKER, TORCH)):
        frame = frame.f_back
    return frame is not None and frames.is_user_frame(frame)


def _no_dict(module: Any, state: Any) -> Optional[Mismatch]:
    """Returns the mismatch of a state that is a path, or a model."""
    kind = "path" if isinstance(state, (str, os.PathLike)) else "module" if isinstance(state, torch.nn.Module) else ""
    if not kind or is_absent(state) or _is_unknown_module(state):
        return None
    found = _mismatch("Expected state_dict to be dict-like, got %s." % type(state), "TypeError")
    name = os.path.basename(os.fspath(state)) if kind == "path" else type(state).__name__
    found.state = StateSeen(type(module).__name__, name, kind=kind)
    return found


def _mismatch(message: str, exception: str) -> Mismatch:
    return Mismatch(CODE, message, exception, None, [], 0, operation="load_state_dict")


def _is_unknown_module(value: Any) -> bool:
    """True if a module, or a part of it, is not completely known."""
    if not isinstance(value, torch.nn.Module):
        return False
    for part in modules(value):
        held = part.__dict__
        if (
            HALF_BUILT in held
            or OF_UNKNOWN_MODEL in held
            or isinstance(part, MissingModule)
            or hasattr(type(part), unknown_sizes.OWN_SIZES)
        ):
            return True
    return False


def _is_known(state: Any) -> bool:
    """True if a state is a dict of names and tensors, and of other things that are no stand-ins."""
    if is_absent(state) or not isinstance(state, Mapping) or not state:
        return False
    return all(type(name) is str for name in state) and not holds_absent(state.values())


def compared_with(module: Any, state: Any) -> Optional[Compared]:
    """None where the state or the module is not known."""
    swaps = getattr(torch.__future__, "get_swap_module_params_on_conversion", None)  # Since torch 2.3.
    if not _is_known(state) or _is_unknown_module(module) or (swaps is not None and swaps()):
        return None
    own = shapes_of(module)
    found = _compared_by_torch(module, _without_mark_of_compiler(module, state), own)
    if found is None:
        return None
    missing = [] if unknown_sizes.is_partial(state) else found.missing
    if unknown_sizes.state.cut:  # Of layers in a list nobody knows how many there are.
        missing = [key for key in missing if not _is_numbered(key)]
        found = found._replace(unexpected=[key for key in found.unexpected if not _is_numbered(key)])
    unsure = _stand_ins_in(module)
    if unsure and any(key.startswith(unsure) for key in (*found.unexpected, *missing)):
        return None
    sizes = [each for each in found.sizes if not may_be_same(*each[1:])]
    return found._replace(missing=missing, sizes=sizes)


def _without_mark_of_compiler(module: Any, state: Any) -> Any:
    """The state as a module has it that torch.compile was not given, which is all that there is here."""
    if COMPILED not in module.__dict__ and not any(COMPILED in part.__dict__ for part in modules(module)):
        return state
    return OrderedDict((name.replace(OF_COMPILED, ""), value) for name, value in state.items())


def _compared_by_torch(module: Any, state: Any, own: Shapes) -> Optional[Compared]:
    """Returns torch's own comparison, without copying anything; None where the code around it fails in another way."""
    keys: List[Tuple[List[str], List[str]]] = []
    errors: List[str] = []
    last = module.register_load_state_dict_post_hook(lambda _, found: keys.append((list(found.missing_keys), list(found.unexpected_keys))))
    torch.Tensor.copy_ = lambda self, *args, **kwargs: self  # type: ignore[method-assign]
    try:
        with torch.no_grad():
            _load_state_dict(module, state, strict=False)
    except RuntimeError as error:
        said = str(error).split("\n\t")
        if not said[0].startswith("Error(s) in loading state_dict"):
            return None
        errors = said[1:]
    except Exception:  # A hook of the user's that needs more than shapes.
        return None
    finally:
        del torch.Tensor.copy_
        last.remove()
    if not keys:
        return None
    sizes, others = [], []
    for each in errors:
        named = _SIZE.match(each)
        if named is not None and named[1] in own:
            sizes.append((named[1], tuple(map(int, filter(None, named[2].replace(" ", "").split(",")))), own[named[1]]))
        else:
            others.append(" ".join(each.split()))
    return Compared(*keys[-1], sizes, others)


def may_be_same(there: Tuple[int, ...], here: Tuple[int, ...]) -> bool:
    """True if two shapes are the same but for unknown sizes."""
    if len(there) != len(here):
        return any(map(unknown_sizes.is_unknown, (*there, *here)))
    return all(one == other or unknown_sizes.is_unknown(one) or unknown_sizes.is_unknown(other) for one, other in zip(there, here))


def _is_numbered(key: str) -> bool:
    return any(part.isdigit() for part in key.split("."))


def _stand_ins_in(module: Any) -> Tuple[str, ...]:
    """Returns the prefixes of the keys of those parts that stand-ins replace."""
    found: List[str] = []
    for path, part in named_modules(module):
        for name, value in part.__dict__.items():
            if not name.startswith("_") and (is_absent(value) or (type(value) in (list, tuple, dict) and holds_absent([value]))):
                found.append("%s.%s" % (path, name) if path else name)
    return tuple([name + "." for name in found])


def owners(module: Any) -> Iterator[Tuple[str, Any, str, Tensor]]:
    """The keys of a module's state, with the part that each belongs to and its name there, and the tensor."""
    for path, part in named_modules(module):
        prefix = path + "." if path else ""
        kept = {name: value for name, value in part._buffers.items() if name not in part._non_persistent_buffers_set}
        for name, value in (*part._parameters.items(), *kept.items()):
            if value is not None:
                yield prefix + name, part, name, value


def shapes_of(module: Any) -> Shapes:
    return {key: () if torch.nn.parameter.is_lazy(value) else tuple(value.shape) for key, _, _, value in owners(module)}


def shapes_in(state: Mapping[str, Any]) -> Shapes:
    return {name: tuple(value.shape) for name, value in state.items() if isinstance(value, Tensor)}


# --- what is wrong ---


def finding_of(module: Any, state: Any, compared: Compared, strict: bool) -> Mismatch:
    said = "size mismatch for %s: %s in the checkpoint, %s in the model"
    parts = [*[said % (key, list(there), list(here)) for key, there, here in compared.sizes], *compared.others]
    for kind, keys in (("Unexpected", compared.unexpected), ("Missing", compared.missing)):
        parts += ["%s key(s) in state_dict: %s" % (kind, ", ".join(keys[:3]))] if strict and keys else []
    name = type(module).__name__
    found = _mismatch("Error(s) in loading state_dict for %s: %s" % (name, "; ".join(parts)), "RuntimeError")
    found.layer = module.__dict__.get(LAYER)
    seen = found.state = StateSeen(name, _file_of(state), strict=bool(strict))
    own, there = shapes_of(module), shapes_in(state)
    seen.own, seen.keys = len(own), len(state)
    seen.fitting = len([key for key in there if key in own])
    seen.missing, seen.missing_count = compared.missing[:MOST_KEYS], len(compared.missing)
    seen.unexpected, seen.unexpected_count = compared.unexpected[:MOST_KEYS], len(compared.unexpected)
    seen.others = compared.others[:3]
    count, inner, held = state_inside(state, own)
    inner = inner if count > seen.fitting else []
    if inner:
        seen.inside, seen.around, seen.keys, there = inner, [str(key) for key in list(state)[:6]], len(held), shapes_in(held)
    if (compared.missing and compared.unexpected) or inner:
        seen.changes, there = state_names.changes_of(there, own)
    sizes = compared.sizes
    if seen.changes or seen.inside:  # What is left once the names fit.
        sizes = [(key, there[key], shape) for key, shape in own.items() if key in there and not may_be_same(there[key], shape)]
        seen.left_missing = len([key for key in own if key not in there])
        seen.left_unexpected = len([key for key in there if key not in own])
    seen.sizes = len(sizes)
    found.origins = list(_origins(module, sizes[:MOST_SIZES]))
    return found


def _origins(module: Any, sizes: Sequence[Tuple[str, Sequence[int], Sequence[int]]]) -> Iterator[Origin]:
    """The tensors of sizes that do not fit, each with its layer, and behind it the layers around that."""
    modules_by_path = dict(named_modules(module))
    for key, shape, here in sizes:
        path = key.rpartition(".")[0].split(".") if "." in key else []
        around = [modules_by_path.get(".".join(path[:count])) for count in range(len(path), -1, -1)]
        layers = [None if part is None else part.__dict__.get(LAYER) for part in around]
        yield Origin(key, None, list(shape), list(here), layers[0])
        yield from (Origin("", None, [], [], layer) for layer in layers[1:] if layer is not None)


def _file_of(state: Any) -> str:
    """The name of the file that the tensors of a state come from; "" where there is no single one."""
    names = {value.__dict__.get(FROM, "") for value in _tensors_in(state, DEEPEST)}
    return names.pop() if len(names) == 1 else ""


def _tensors_in(state: Any, depth: int) -> Iterator[Tensor]:
    for value in list(state.values()):
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Mapping) and depth:
            yield from _tensors_in(value, depth - 1)


def state_inside(state: Any, own: Shapes, depth: int = DEEPEST) -> Tuple[int, List[str], Any]:
    """Returns the count of a module's names in a dict inside of a state, the keys that lead to the dict, and the dict. The names may be
    changed ones."""
    best: Tuple[int, List[str], Any] = (0, [], None)
    for key, value in state.items():
        if type(key) is not str or not isinstance(value, Mapping) or is_absent(value) or not value:
            continue
        shapes = shapes_in({name: each for name, each in value.items() if type(name) is str})
        changes, _ = state_names.changes_of(shapes, own)
        count = max(len(own.keys() & shapes.keys()), sum(change.count for change in changes))
        if count > best[0]:
            best = count, [key], value
        elif depth > 1 and not count:
            further, path, held = state_inside(value, own, depth - 1)
            best = (further, [key, *path], held) if further > best[0] else best
    return best


# --- what a statement that failed has to do with it ---


def _has_to_do(tree: Optional[ast.AST], failed: ast.stmt, found: Mismatch, file: str) -> bool:
    """True if a statement that failed names something that the state or the module was made of."""
    lines = [span.line for span in found.trail if span.file == file]
    if tree is None or not lines:
        return True
    if failed.lineno > max(lines) or any(failed.lineno <= line <= (failed.end_lineno or failed.lineno) for line in lines):
        return failed.lineno <= max(lines)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno in lines]
    names = {name for call in calls if "load_state_dict" in ast.unparse(call.func) for name in _names_in(call)}
    kinds = (ast.Assign, ast.AugAssign, ast.For)
    made = [node for node in ast.walk(tree) if isinstance(node, kinds) and node.lineno <= max(lines)]
    for _ in range(3):
        for node in made:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(not names.isdisjoint(_names_in(target)) for target in targets):
                names |= set(_names_in(node.iter if isinstance(node, ast.For) else node.value))
    return not names.isdisjoint(_names_in(failed))


_GENERAL = {"torch", "nn", "F", "os", "print", "len", "range", "str", "int", "dict", "list", "zip", "enumerate"}


def _names_in(node: ast.AST) -> Set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - _GENERAL
