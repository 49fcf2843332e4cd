"""Words for what Python says of a call or an attribute: which argument is missing, which attribute was meant."""

from __future__ import annotations

import ast
import re

from shapelens.analysis.places import Places
from shapelens.analysis.shapes import dims_text
from shapelens.protocol import Mismatch, Observation, Value
from shapelens.stated.syntax_trees import program_of, unpacked_parts

_MISSING = re.compile(
    r"^(?:(?P<owner>\w+)\.)?(?P<name>\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (?P<which>.*)$"
)
_SURPLUS = re.compile(
    r"^(?:(?P<owner>\w+)\.)?(?P<name>\w+)\(\) takes (?:from (?P<least>\d+) to )?(?P<most>\d+) positional arguments? but (?P<given>\d+)"
)
_UNKNOWN = re.compile(r"^(?:(?P<owner>\w+)\.)?(?P<name>\w+)\(\) got an unexpected keyword argument '(?P<which>\w+)'")
_REFUSED = re.compile(r"^(?P<name>\w+)\(\) received an invalid combination of arguments - got \((?P<given>.*?)\), but expected ", re.DOTALL)
_ATTRIBUTE = re.compile(r"^'(?P<owner>\w+)' object has no attribute '(?P<which>\w+)'")
WITHOUT_SUPER = re.compile(r"\(\) does not call super\(\)\.__init__\(\)$")
TOO_EARLY = re.compile(r"^cannot assign \w+ before Module\.__init__\(\) call")
_MANGLED = re.compile(r"^_[^_]\w*?(?=__)")  # of `super().__in`: Python asks for `_Net__in`
_PATTERN = re.compile(  # of einops
    r"pattern \"(?P<pattern>[^\"]*)\"\.\s+Input tensor shape: (?:torch\.Size\()?(?P<shape>\[[\d, ]*\])\)?\."
    r" Additional info: \{(?P<given>[^}]*)\}\.\s+(?P<why>.*?)\.?$"
)
_UNPACKED = re.compile(r"^(?:too many|not enough) values to unpack \(expected (?P<wanted>\d+)")


def python_words(places: Places, mismatch: Mismatch) -> str:
    """The words; "" where Python's own have to do."""
    message = mismatch.message
    if mismatch.exception == "TypeError":
        return _of_call(message)
    if mismatch.exception == "AttributeError":
        return _of_attribute(mismatch)
    if mismatch.meant:
        return f"{mismatch.exception}: {mismatch.message}{_instead(mismatch)}"
    if mismatch.exception == "EinopsError":
        return _of_pattern(message)
    return _of_unpacking(places, mismatch) if mismatch.exception == "ValueError" else ""


def _of_pattern(message: str) -> str:
    found = _PATTERN.search(message)
    if found is None:
        return ""
    said, shape, why = found["pattern"], found["shape"], found["why"]
    given = found["given"].replace("'", "").replace(": ", " = ")
    if divided := re.search(r"divide axis of length (\d+) in chunks of (\d+)", why):
        size, chunks = divided.groups()
        by = next((each for each in given.split(", ") if each.endswith(f" = {chunks}")), chunks)
        return f'"{said}" of {shape}: {size} does not divide by {by}'
    if ranks := re.search(r"expected (\d+) dims\. Received (\d+)-dim", why):
        return f'"{said}" needs {ranks[1]} dims, {shape} has {ranks[2]}'
    if sizes := re.search(r"mismatch, (\d+) != (\d+)", why):
        return f'"{said}" of {shape}: {sizes[1]} is not {sizes[2]}{given and f" ({given})"}'
    return f'"{said}" of {shape}: {why[:1].lower()}{why[1:]}'


def _of_call(message: str) -> str:
    if found := _MISSING.match(message):
        names = re.findall(r"['\"](\w+)['\"]", found["which"])
        return f"{_function(found)} needs {' and '.join(f'`{name}`' for name in names)}, which this call does not give"
    if found := _UNKNOWN.match(message):
        return f"{_function(found)} has no parameter `{found['which']}`"
    if found := _REFUSED.match(message):
        why = f"cannot be called with ({found['given']})" if found["given"] else "needs arguments, and this call gives none"
        return f"{found['name']}() {why}"
    if (found := _SURPLUS.match(message)) and found["owner"]:
        # `self` is counted in both, and is none of the call's arguments.
        least, most, given = (int(number) - 1 if number else None for number in found.group("least", "most", "given"))
        takes = f"{least} to {most}" if least is not None else str(most)
        return f"{_function(found)} takes {takes} argument{'' if takes == '1' else 's'}, this call gives {given}"
    return ""


def _function(found: re.Match[str]) -> str:
    return f"{found['name']}() of {found['owner']}" if found["owner"] else f"{found['name']}()"


def _instead(mismatch: Mismatch) -> str:
    return f"; did you mean `{mismatch.meant}`?" if mismatch.meant else ""


def _of_attribute(mismatch: Mismatch) -> str:
    if WITHOUT_SUPER.search(mismatch.message):
        return f"{mismatch.message}, which has to come first"
    if TOO_EARLY.match(mismatch.message):
        return f"{mismatch.message}: super().__init__() has to come first"
    found = _ATTRIBUTE.match(mismatch.message)
    if not found:
        return f"AttributeError: {mismatch.message}{_instead(mismatch)}" if mismatch.meant else ""
    which = _MANGLED.sub("", found["which"]) if found["owner"] == "super" else found["which"]
    return f"{found['owner']} has no attribute `{which}`" + _instead(mismatch)


def _of_unpacking(places: Places, mismatch: Mismatch) -> str:
    """`b, c, h = x.shape` of a tensor with another number of dims."""
    found = _UNPACKED.match(mismatch.message)
    place = places.locate(mismatch.span)
    if not found or place is None:
        return ""
    statement = next(iter(program_of(place.module.lines.line(place.span.line).strip()).body), None)
    parts = unpacked_parts(statement) if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.Assign) and parts is not None:
        return f"{ast.unparse(statement.value)} gives {parts} tensor{'' if parts == 1 else 's'}, {found['wanted']} names take them"
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "size" and not value.args:
        value = value.func
    if not isinstance(value, ast.Attribute) or value.attr not in ("shape", "size"):
        return ""
    name = ast.unparse(value.value)
    tensor = _last_value(places, mismatch, name)
    if tensor is None or tensor.shape is None or len(tensor.shape) == int(found["wanted"]):
        return ""
    return f"{name} {dims_text(tensor)} has {len(tensor.shape)} dims, which do not fit the {found['wanted']} names here"


def _last_value(places: Places, mismatch: Mismatch, name: str) -> Value | None:
    """Returns the last value of a name before the mismatch's line."""
    before: list[Observation] = [
        seen
        for seen in places.trace.observations
        if seen.name == name
        and mismatch.span is not None
        and seen.example == mismatch.example
        and (seen.span.file, seen.span.line <= mismatch.span.line) == (mismatch.span.file, True)
    ]
    values = max(before, key=lambda seen: seen.span.line).values if before else []
    return values[-1] if values and values[-1].kind == "tensor" else None
