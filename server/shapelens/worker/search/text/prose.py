"""Shapes of parameters in comments and docstrings.

Only what is tied to a parameter counts: the entry that describes it in a docstring, a comment that names it or stands behind it in the
signature.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Dict, List, Optional, Sequence, Tuple

from ....stated.docstring_entries import described
from ....stated.shape_words import StatedShape, first_stated, is_open_rank, opening_shape
from ....stated.syntax_trees import all_parameters, is_docstring
from ..evidence import InputShape
from .type_hints import input_shape, tensor_dtype

_NOT_A_TENSOR = re.compile(
    r"\(\s*`{0,2}\**(?:int|float|bool|str|string|callable|tuple[\[(]?\s?(?:of\s)?int\w*|list[\[(]?\s?(?:of\s)?(?:int|str)\w*)\b"
    r"|\(\s*`?(?:tuple|list|dict)`?\s*[,)]",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"\b(list|tuple|sequence|dict)\w*\b[\s`]*(?:\[|\(|of\b)[\s`]*(?:str,\s*|\w+\s)?(?:torch\.)?\w*[Tt]ensors?", re.IGNORECASE
)
# A ByteTensor is left out: it dates from when masks were made of bytes.
_TENSOR_TYPE = re.compile(r"\b(?:torch\.)?((?:Long|Float|Bool|Int|Double|Half|BFloat16)Tensor)\b")

# A key of a dict whose value is described: `"labels": Tensor of dim [num_target_boxes]`
_KEY = re.compile(r"[\"'`](\w+)[\"'`]\s*(?:\([^()]*\))?\s*:(?=\s*(?:an?\s|the\s)?(?:torch\.)?(?:Float|Long|Bool)?[Tt]ensor)")
_MOST_OF_VALUE = 200  # characters of what is said of one value


def from_docstring(text: str, parameters: Sequence[str], where: str, first: Optional[str]) -> Dict[str, InputShape]:
    """The shapes that a docstring gives. first: the parameter that it calls the input, if there is just one.

    where: how to say where it stands.
    """
    found: Dict[str, InputShape] = {}
    for entry in described(text, parameters, first):
        if entry.name and entry.name not in found:
            shape = _described(entry.text, where)
            if shape is not None:
                found[entry.name] = shape
    return found


def _described(entry: str, where: str) -> Optional[InputShape]:
    by_key = _described_by_key(entry, where)
    if by_key is not None:
        return by_key
    entry = entry[:600]
    if _NOT_A_TENSOR.match(entry.lstrip(" :")):
        return None
    shape = first_stated(entry)
    kind = _TENSOR_TYPE.search(entry)
    dtype = (tensor_dtype(kind[1]) or "") if kind is not None and kind.start() < 60 else ""
    listed = _LISTED.search(entry[: max(shape.start, 60)] if shape is not None else entry.partition("\n\n")[0])
    container = "" if listed is None else {"tuple": "tuple", "dict": "dict"}.get(listed[1].lower(), "list")
    if shape is None:  # `a list of N tensors`: one for each sample.
        is_said = bool(dtype) or container == "list"
        return (
            InputShape(dtype=dtype, where=where, container=container if container == "list" else "", source="docstring")
            if is_said
            else None
        )
    return _input_shape(shape, where, "docstring", dtype, container)


def _described_by_key(entry: str, where: str) -> Optional[InputShape]:
    """Returns the shapes of a dict's values that an entry says behind each key: `"boxes": Tensor of dim [num_boxes, 4]`. None for fewer
    than two."""
    starts = list(_KEY.finditer(entry))
    ends = [match.start() for match in starts[1:]] + [len(entry)]
    said = [(match[1], first_stated(entry[match.end() : end][:_MOST_OF_VALUE])) for match, end in zip(starts, ends)]
    found = {key: _input_shape(shape, where, "docstring") for key, shape in said if shape is not None}
    if len(found) < 2:
        return None
    is_list = re.search(r"\b(?:list|tuple|sequence)s?\b", entry[: starts[0].start()], re.IGNORECASE) is not None
    container = "list" if is_list else "dict"
    return InputShape(where=where, container=container, parts=tuple(found.values()), keys=tuple(found), source="docstring")


def _input_shape(shape: StatedShape, where: str, source: str, dtype: str = "", container: str = "") -> InputShape:
    base = input_shape(shape.dims, dtype)
    alternatives = tuple(other for other in shape.alternatives if not is_open_rank(other))
    return InputShape(base.dims, dtype, where, base.pattern, base.min_rank, alternatives, container, source=source)


def comments_of(function: ast.FunctionDef, lines: Sequence[str]) -> Dict[int, Tuple[str, bool]]:
    """The comments from a function's first line to its last, by line: the text, and whether it has the line for itself."""
    last = function.end_lineno or function.lineno
    if not any("#" in line for line in lines[function.lineno - 1 : last]):
        return {}
    text = "\n".join(lines[function.lineno - 1 : last]) + "\n"
    found: Dict[int, Tuple[str, bool]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[function.lineno - 1 + token.start[0]] = (token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip())
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # what was read until then holds: a method's text alone ends in the middle of an indented block
    return found


def from_comments(
    function: ast.FunctionDef, lines: Sequence[str], parameters: Sequence[str], required: Sequence[str]
) -> Tuple[Dict[str, InputShape], Dict[str, InputShape]]:
    """The shapes that comments give: those in the signature and at the head of the body, and those further down, which may mean less.

    required: the parameters that have no default.
    """
    comments = comments_of(function, lines)
    head: Dict[str, InputShape] = {}
    within: Dict[str, InputShape] = {}
    body = function.body[1:] if is_docstring(function.body[0]) and len(function.body) > 1 else function.body
    reassigned = _reassigned(function)
    for line, (text, alone) in sorted(comments.items()):
        in_signature, at_head = line < function.body[0].lineno, alone and line < body[0].lineno
        here = _parameters_at(function, line, parameters)
        for name in parameters:
            if name in head or name in within or not (in_signature or at_head or (alone and line < reassigned.get(name, line + 2) - 1)):
                continue
            shape = _named(text, name, required)
            if shape is None and in_signature:
                is_its_own = here == [name] or (not here and len(parameters) == 1 and not alone)
                is_first = not alone and here[:1] == [name] and required == [name]
                shape = _unnamed(text, is_its_own=is_its_own) if is_its_own or is_first else None
            if shape is not None:
                (head if in_signature or at_head else within)[name] = _input_shape(shape, f"line {line}", "comment")
    return head, within


def _parameters_at(function: ast.FunctionDef, line: int, parameters: Sequence[str]) -> List[str]:
    return [argument.arg for argument in all_parameters(function) if argument.lineno == line and argument.arg in parameters]


def _unnamed(text: str, *, is_its_own: bool) -> Optional[StatedShape]:
    """The shape that a comment beside a parameter gives without its name. is_its_own: no other parameter stands there."""
    return opening_shape(text) or (_introduced(text) if is_its_own else None)


def _introduced(text: str) -> Optional[StatedShape]:
    return first_stated(text) if re.search(r"\bshape|\bsize|tensor", text) else None


def _named(text: str, name: str, required: Sequence[str]) -> Optional[StatedShape]:
    """The shape that a comment gives the parameter: `x: (B, C)`, `x.shape = [B, C]`, `q (b, n, c), k (b, m, c)`, `input: (B, C)`."""
    names = [re.escape(name)]
    if list(required) == [name]:
        names += ["[Ii]nputs?", "INPUTS?", "[Ii]nput shapes?"]
    pattern = (
        rf"(?:^|[,;|(]|\band|\b[Ii]nput|\bthe|\bshape of|\bsize of)\s*[`'\"]?(?:{'|'.join(names)})[`'\"]?(?:\.shape|\.size\(\)|'s shape)?"
        r"(?![\w.(])(?:\s(?:is|has|have|are|of|with|the|a|in))*\s*"
    )
    for match in re.finditer(pattern, text):
        rest = text[match.end() :]
        shape = opening_shape(rest) if rest[:1] in ":=-~[(∈" or re.match(r"(?:shape|size|dim|tensor|B\b|b\b|N\b|[bB]x)", rest) else None
        if shape is not None:
            return shape
    return None


def _reassigned(function: ast.FunctionDef) -> Dict[str, int]:
    """The first line that assigns each name."""
    found: Dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = min(node.lineno, found.get(node.id, node.lineno))
    return found
