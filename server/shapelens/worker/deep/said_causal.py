"""The signs in the code, beside its masks, of a causal model: names of its modules, and targets that are shifted by one."""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...dependences import CausalClaim
from ...protocol import FileSpan
from ...stated.syntax_trees import program_of
from ..trace.module_memory import parts_of

_CAUSAL = re.compile(r"(?<!non)(?<!non_)causal(?!ity|_?lang|_?lm\b)", re.IGNORECASE)
_GENERATES = re.compile(r"generate|sample|decode|complete", re.IGNORECASE)
_LAST = re.compile(r"\[\(?:, -1(, :)?\)?\]$")
_LOSSES = re.compile(r"cross_entropy|criterion|nll_loss|loss", re.IGNORECASE)


def said_by_modules(model: Any) -> Optional[CausalClaim]:
    """A part of the model that is called causal, or has a setting of that name that is on; one whose setting is off says nothing."""
    for part in parts_of(model):
        settings = [value for name, value in vars(part).items() if _CAUSAL.search(name) and isinstance(value, bool)]
        if True in settings:
            return CausalClaim("name", "%s(%s=True)" % (type(part).__name__, next(name for name in vars(part) if _CAUSAL.search(name))))
        if not settings and _CAUSAL.search(type(part).__name__):
            return CausalClaim("name", type(part).__name__)
    return None


def said_by_text(file: str, text: str, model: str) -> Optional[CausalClaim]:
    """Each next token comes from the last step, or the targets are a step ahead: `x[:, :-1]`, `x[:, 1:]`; `d[i:i+n]`, `d[i+1:i+1+n]`."""
    tree = program_of(text)
    scopes = list(_scopes(tree, model))
    for scope in scopes:
        last = _next_token(scope)
        if last is not None:
            span = FileSpan(file, last.lineno, last.col_offset, last.end_lineno or last.lineno, last.end_col_offset or 0)
            return CausalClaim("generate", "%s in %s" % (ast.unparse(last), getattr(scope, "name", "")), span)
    if _LOSSES.search(text) is None:
        return None
    for scope in scopes:
        found = _shift(scope)
        if found is not None:
            one, other = found
            span = FileSpan(file, other.lineno, other.col_offset, other.end_lineno or other.lineno, other.end_col_offset or 0)
            return CausalClaim("shift", "%s and %s" % (ast.unparse(one), ast.unparse(other)), span)
    return None


def _next_token(scope: ast.AST) -> Optional[ast.Subscript]:
    """`logits[:, -1]` in a loop of a function that generates, which joins what it takes from that to what it began with."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or _GENERATES.search(scope.name) is None:
        return None
    for loop in _own(scope):
        if isinstance(loop, (ast.For, ast.While)):
            parts = list(ast.walk(loop))
            joins = any(isinstance(part, ast.Call) and ast.unparse(part.func) in ("torch.cat", "torch.concat", "cat") for part in parts)
            for part in parts if joins else ():
                if isinstance(part, ast.Subscript) and _LAST.search(ast.unparse(part)):
                    return part
    return None


def _scopes(tree: ast.Module, model: str) -> Iterator[ast.AST]:
    """The functions whose sequences are a model's: its methods, and functions of no class where no other class has it for a part."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    yield from (part for each in classes if each.name == model for part in ast.walk(each) if isinstance(part, functions))
    others = [part for each in classes if each.name != model for part in ast.walk(each)]
    if not any(isinstance(part, ast.Name) and part.id == model for part in others):
        yield tree
        yield from (
            part for each in tree.body if not isinstance(each, ast.ClassDef) for part in ast.walk(each) if isinstance(part, functions)
        )


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, but for those of functions in it."""
    todo: List[ast.AST] = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
            todo += ast.iter_child_nodes(node)


def _shift(scope: ast.AST) -> Optional[Tuple[ast.Subscript, ast.Subscript]]:
    """A slice without its last step and one of the same without its first, that are not put together at once: that is a difference."""
    together = set()
    for node in _own(scope):
        if isinstance(node, (ast.BinOp, ast.Compare, ast.BoolOp)):
            together |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Subscript)}
    ends: Dict[str, ast.Subscript] = {}
    begins: Dict[str, ast.Subscript] = {}
    for node in _own(scope):
        if isinstance(node, ast.Subscript) and id(node) not in together:
            for kind, key in _kinds(node):
                (ends if kind == "end" else begins).setdefault(key, node)
    for key, one in ends.items():
        if key in begins:
            return one, begins[key]
    return None


def _kinds(node: ast.Subscript) -> Iterator[Tuple[str, str]]:
    """("end", what): all steps but the last; ("begin", what): all but the first."""
    inner: Any = node.slice
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    slices = [part for part in parts if isinstance(part, ast.Slice) and (part.lower is not None or part.upper is not None)]
    if len(slices) != 1 or slices[0].step is not None:
        return
    part, what = slices[0], _stem(ast.unparse(node.value))
    lower, upper = part.lower, part.upper
    if len(parts) > 1 and parts[0] is not part:
        if lower is None and upper is not None and ast.unparse(upper) == "-1":
            yield "end", what
        if upper is None and lower is not None and ast.unparse(lower) == "1":
            yield "begin", what
    elif lower is not None and upper is not None:  # of a long text
        start, end = ast.unparse(lower), ast.unparse(upper).replace(" ", "")
        plain = start.replace(" ", "")
        if plain.endswith("+1"):
            yield "begin", "%s[%s]" % (what, plain[:-2])
        elif end.startswith(plain + "+"):
            yield "end", "%s[%s]" % (what, plain)


def _stem(name: str) -> str:
    """`logits` and `labels` are shifted against each other in a loss: what is sliced need not be one tensor there."""
    return "" if re.search(r"logits|labels", name) else name
