"""The places of a module whose values are recorded, and what rewritten code calls there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Optional, Tuple

VALUE = "__shapelens_value__"  # (k, value) -> value
SCALAR = "__shapelens_scalar__"  # (k, value) -> value: like VALUE, where a number counts too
NAMES = "__shapelens_names__"  # (k, *values) -> True: values of sites k, k + 1, ..., numbers among them
BOUND = "__shapelens_bound__"  # (k, *values) -> True: like NAMES, where numbers do not count
READ = "__shapelens_read__"  # (k, function): the value of site k is what the function returns, if it can be had
ASSUMED = "__shapelens_assumed__"  # (value, holds) -> value, or `holds` where its truth depends on data
TURNS = "__shapelens_turns__"  # (range) -> range, a short one where its length depends on data
FIRST_TURNS = (
    "__shapelens_first_turns__"  # (iterable, line, or 0 where all turns have reports) -> the items that a `for` takes with reports
)
FURTHER_TURNS = "__shapelens_further_turns__"  # (line) -> the items that the `for` of that line takes after those, without reports
COMPREHENDED = "__shapelens_comprehended__"  # (items, with reports, without) -> what a comprehension makes of items by these two functions
GENERATED = "__shapelens_generated__"  # (items, with reports, without) -> the same of a generator expression
MODEL_TURNS = "__shapelens_model_turns__"  # (iterable) -> the items that a `for` in a method of a model takes
UNKNOWN_AT = "__shapelens_unknown_at__"  # (k): nothing is known of the value of site k, as its statement failed
WINDOW = "__shapelens_window__"  # (lower, upper, upper - lower) -> slice, the first one of its length where its bounds depend on data
TURN = "__shapelens_turn__"  # (line, whether its condition holds) -> whether a `while` goes on, as far as that is not up to its condition

# What takes the place of Python's own functions: their result is not known where one of their arguments is not.
NUMBERS = {"int": "__shapelens_int__", "max": "__shapelens_max__", "min": "__shapelens_min__"}

UNWATCHED = "unwatched"

NodePlace = Tuple[int, int, int, int]  # line, column, end line, end column; columns in UTF-8 bytes


@dataclass
class Site:
    """A place whose values are recorded."""

    place: NodePlace
    kind: str  # "parameter" | "assign" | "return" | "expression"; "entry": only says that a function ran, and holds no values
    name: str  # of a return: "return" or "yield"; of an entry UNWATCHED where nothing tells whether the function runs
    function: str  # "" at module level
    statement: Optional[NodePlace] = None
    is_call: bool = False  # the expression is a call: where it returns a new module, that is the module's constructor
    operation: bool = False  # the expression computes (call, operator, subscript), so that it can fail
    size: bool = False  # a number there follows from a shape, as far as the text tells
    tensor: bool = False  # of a program: the value is computed of tensors, as far as the text tells
    defining: bool = False  # at module level or in the body of a class there: it runs once, not with each example


def place_of(node: ast.AST) -> NodePlace:
    """Where a node stands."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
