"""Shapes of parameters as a function's text says them: annotations, comments, docstrings, and what its body does with them.

Of several that speak of one parameter the strongest is taken: an annotation before a comment, a comment before a docstring, all of them
before the body, unless the body contradicts: it is what runs.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Tuple

from ....stated.shape_words import REST, Dims, is_batch
from ....stated.syntax_trees import is_none, positional, with_defaults
from ..evidence import InputShape
from .layer_ranks import layers_of
from .prose import from_comments, from_docstring
from .type_hints import aliases_of, excludes_tensors, from_annotation
from .unpacking import SURE, USUAL, Fact, facts


def input_shapes(
    function: ast.FunctionDef, text_lines: Sequence[str], cls: Optional[ast.ClassDef] = None, module: Optional[ast.Module] = None
) -> Dict[str, InputShape]:
    """The parameters of a method of which the text says something, by name. text_lines: those of the whole file.

    cls: the class that has the method, for its docstring and its layers; module: for the names that the file gives to types, and for the
    layers of the class's bases.
    """
    arguments = positional(function)
    own = arguments[1:] if cls is not None and arguments else arguments
    everything = own + function.args.kwonlyargs
    excluded = {argument.arg for argument in everything if excludes_tensors(argument.annotation)}
    parameters = [argument.arg for argument in everything if argument.arg not in excluded]
    without_default = own[: len(own) - len(function.args.defaults)] if function.args.defaults else own
    required = [argument.arg for argument in without_default if argument.arg not in excluded]
    aliases = aliases_of(module)
    comments, further_down = from_comments(function, text_lines, parameters, required)
    sources: List[Dict[str, InputShape]] = [
        {argument.arg: said for argument in everything for said in [_annotated(argument, aliases)] if said is not None},
        comments,
        *_documented(function, cls, parameters, required),
        further_down,
    ]
    body = facts(function, parameters, layers_of(cls, module))
    found: Dict[str, InputShape] = {}
    for name in parameters:
        shape = _merged([source[name] for source in sources if name in source], body[name])
        if shape is not None:
            found[name] = replace(shape, optional=shape.optional or _defaults_to_none(function, name))
    return _named_alike(found, body)


def _named_alike(found: Dict[str, InputShape], body: Dict[str, List[Fact]]) -> Dict[str, InputShape]:
    """One name for one size: where prose says `batch` and the body unpacks that dim into `b`, every other `b` of the body is `batch`."""
    meant: Dict[str, str] = {}
    for name, shape in found.items():
        for fact in body[name] if shape.dims is not None and not shape.container else ():
            row = _row(fact, len(shape.dims or ()))
            for dim, own in zip(shape.dims or (), row):
                if isinstance(dim, str) and isinstance(own, str) and dim != own:
                    meant.setdefault(own, dim)
    if not meant:
        return found
    taken = {dim for shape in found.values() if shape.source != "body" for dim in shape.dims or ()}
    return {name: _renamed(shape, meant) if not taken.intersection(meant) else shape for name, shape in found.items()}


def _renamed(shape: InputShape, meant: Dict[str, str]) -> InputShape:
    dims = tuple(meant.get(dim, dim) if isinstance(dim, str) else dim for dim in shape.dims) if shape.dims is not None else None
    return replace(shape, dims=dims, pattern=tuple(meant.get(dim, dim) if isinstance(dim, str) else dim for dim in shape.pattern))


def _row(fact: Fact, rank: int) -> Dims:
    """Returns the dims that a fact says of a tensor of that rank; () for another rank."""
    if fact.dims is not None:
        return fact.dims if len(fact.dims) == rank else ()
    return _spread(fact.pattern, rank) if fact.pattern and len(fact.pattern) - 1 <= rank else ()


def display_names(shape: InputShape) -> Tuple[Optional[str], ...]:
    """The author's names that are good names of dims to show, one a dim: None for numbers and for names that are too long."""
    return tuple(dim if isinstance(dim, str) and _is_short(dim) else None for dim in shape.dims or ())


def _is_short(name: str) -> bool:
    return len(name) <= 10 and (name[0].isalpha()) and (is_batch(name) or len(name) <= 8 or name.count("_") == 1)


def _annotated(argument: ast.arg, aliases: Dict[str, ast.expr]) -> Optional[InputShape]:
    said = from_annotation(argument.annotation, aliases)
    return replace(said, where="the annotation", source="annotation") if said is not None else None


def _documented(
    function: ast.FunctionDef, cls: Optional[ast.ClassDef], parameters: Sequence[str], required: Sequence[str]
) -> List[Dict[str, InputShape]]:
    """Returns the shapes in the method's docstring, and in the class's where that speaks of the method's parameters rather than of the
    constructor's."""
    first = required[0] if len(required) == 1 or (required and required[0] in ("input", "inputs")) else None
    constructor = next((one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None) if cls else None
    taken = {one.arg for one in constructor.args.args + constructor.args.kwonlyargs} if constructor is not None else set()
    own, of_class = ast.get_docstring(function), ast.get_docstring(cls) if cls is not None else None
    return [
        from_docstring(own, parameters, "the docstring", first) if own else {},
        from_docstring(of_class, [name for name in parameters if name not in taken], "the docstring", first) if of_class else {},
    ]


def _defaults_to_none(function: ast.FunctionDef, name: str) -> bool:
    return any(argument.arg == name and is_none(default) for argument, default in with_defaults(function))


def _merged(said: Sequence[InputShape], body: Sequence[Fact]) -> Optional[InputShape]:
    """Returns the shape that the sources, strongest first, and the body say together; None where they say nothing."""
    ranks, certain = _ranks(body), [fact for fact in body if fact.strength == SURE]
    least = max([fact.min_rank for fact in certain], default=0)
    possible = [one for one in said if _possible(one, ranks, bool(_ranks(certain)), least)]
    pattern = next((one for one in possible if one.pattern), None)
    shape = _with_dims(possible, body, ranks) or pattern or _of_patterns(possible, body, ranks, least)
    if shape is None:
        return None
    shape = replace(shape, min_rank=max(shape.min_rank, least), dtype=_first([one.dtype for one in said]))
    shape = replace(shape, container=shape.container or _first([one.container for one in said]))
    return replace(shape, optional=any(one.optional for one in said), dims=_filled(shape.dims, possible, body))


def _with_dims(possible: Sequence[InputShape], body: Sequence[Fact], ranks: Sequence[int]) -> Optional[InputShape]:
    """Returns the shape of the strongest source that says dims or parts, with the body's other ranks; else what the body does, if
    anything."""
    shape = next((one for one in possible if one.dims is not None or one.parts), None)
    if shape is None:
        return _of_body(body, ranks) if any(fact.dims is not None and fact.strength >= USUAL for fact in body) else None
    if shape.dims is None or shape.container:
        return shape
    return replace(shape, alternatives=shape.alternatives + _others(body, [rank for rank in ranks if rank != len(shape.dims)]))


def _of_patterns(possible: Sequence[InputShape], body: Sequence[Fact], ranks: Sequence[int], least: int) -> Optional[InputShape]:
    """Returns the shape where nobody says all dims: the first and the last ones, or how many there are at least."""
    pattern = _joined([fact.pattern for fact in body if fact.pattern and fact.strength == SURE])
    if pattern is None and not least and not ranks:
        return possible[0] if possible else None
    shape = possible[0] if possible else InputShape()
    first = next(fact.line for fact in body if fact.dims is not None or fact.pattern or fact.min_rank)
    shape = replace(shape, pattern=pattern or (), alternatives=_others(body, ranks), where=shape.where or f"line {first}")
    return replace(shape, source=shape.source or "body")


def _first(texts: Sequence[str]) -> str:
    return next(filter(None, texts), "")


def _ranks(body: Sequence[Fact]) -> List[int]:
    """The ranks that the body is written for, those that it is sure of before those that stand under a condition."""
    ordered = sorted(body, key=lambda fact: -fact.strength)
    return list(dict.fromkeys(len(fact.dims) for fact in ordered if fact.dims is not None))


def _possible(shape: InputShape, ranks: Sequence[int], sure: bool, least: int) -> bool:
    """True if the body bears out what was said of a shape. What is said of a container is not what the body does with its elements."""
    if shape.container or shape.parts or shape.dims is None:
        return True
    return len(shape.dims) in ranks if sure else len(shape.dims) >= least


def _of_body(body: Sequence[Fact], ranks: Sequence[int]) -> InputShape:
    dims, line = next((fact.dims, fact.line) for fact in body if fact.dims is not None and len(fact.dims) == ranks[0])
    return InputShape(dims, where=f"line {line}", alternatives=_others(body, ranks[1:]), source="body", min_rank=min(ranks))


def _others(body: Sequence[Fact], ranks: Sequence[int]) -> Tuple[Dims, ...]:
    """The dims of other ranks that the body is written for as well."""
    return tuple(_overlaid([fact.dims for fact in body if fact.dims is not None and len(fact.dims) == rank]) for rank in ranks)


def _joined(patterns: Sequence[Dims]) -> Optional[Dims]:
    """One pattern of several: the first dims that they know, and the last ones. None of none."""
    if not patterns:
        return None
    heads = [pattern[: pattern.index(REST)] for pattern in patterns]
    tails = [pattern[pattern.index(REST) + 1 :][::-1] for pattern in patterns]
    return _overlaid(heads) + (REST,) + _overlaid(tails)[::-1]


def _overlaid(rows: Sequence[Dims]) -> Dims:
    longest = max(len(row) for row in rows)
    return tuple(next((row[index] for row in rows if index < len(row) and row[index] is not None), None) for index in range(longest))


def _filled(dims: Optional[Dims], said: Sequence[InputShape], body: Sequence[Fact]) -> Optional[Dims]:
    """The dims, with the names that weaker sources know where the strongest has none."""
    if dims is None:
        return None
    rows = [one.dims for one in said if one.dims is not None] + [fact.dims for fact in body if fact.dims is not None]
    same: List[Dims] = [dims] + [row for row in rows if len(row) == len(dims)]
    known = _overlaid(same + [_row(fact, len(dims)) for fact in body if fact.dims is None])
    return tuple(None if isinstance(dim, str) and not dim.isidentifier() else dim for dim in known)


def _spread(pattern: Dims, rank: int) -> Dims:
    at = pattern.index(REST)
    return pattern[:at] + (None,) * (rank - len(pattern) + 1) + pattern[at + 1 :]
