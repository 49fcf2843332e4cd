"""`shapelens summary FILE[::CLASS] --checkpoint FILE`: the state of a model beside what a file of weights holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shapelens.analysis.evidence import guessed_arguments
from shapelens.analysis.explanations.checkpoint_messages import checkpoint_words
from shapelens.analysis.places import Places
from shapelens.analysis.shapes import plural, shape_text
from shapelens.commands import RefusedRequest
from shapelens.commands.profiled import ProfiledClass, Wanted, profiled
from shapelens.commands.summary import print_whole
from shapelens.profiles import CheckpointSeen, StatePair
from shapelens.protocol import Trace, Value
from shapelens.report.text import digits
from shapelens.source.files import parsed_file

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_SAID = {"fits": "", "own": "left to the model's own code"}
_COUNTED = {"fits": "fit", "differs": "differ", "missing": "missing", "unexpected": "unexpected", "own": "left to the model's own code"}
_ENDS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".index.json")


async def checkpoint(wanted: Wanted) -> int:
    """Print each tensor of a class's state beside the file's; 1 where `load_state_dict` refuses the file. Raises what `profiled` does."""

    async def print_it(found: ProfiledClass) -> int:
        file = Path(wanted.checkpoint or "")
        profile = found.view.profile
        seen = profile.checkpoint
        if seen is None:
            raise RefusedRequest(f"{found.view.class_name} cannot be built: {profile.error or 'its example makes no model of it'}")
        if seen.error:
            raise RefusedRequest(f"--checkpoint {wanted.checkpoint} {seen.error}{_instead(file)}")
        _print(found, seen, file.name)
        return 1 if seen.mismatch is not None else 0

    return await profiled(wanted, print_it)


def _instead(file: Path) -> str:
    """The files of weights in a folder."""
    if not file.is_dir():
        return ""
    names = sorted(each.name for each in file.iterdir() if each.name.endswith(_ENDS))
    indices = [name for name in names if name.endswith(".index.json")]
    return f"; in it is {', '.join((indices or names)[:4])}" if names else ", and no file of weights is in it"


def _print(found: ProfiledClass, seen: CheckpointSeen, name: str) -> None:
    view = found.view
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{view.class_name}  ", "bold") + Text(view.shown.example.expression, "dim"))
    inside = "".join(f'["{key}"]' for key in seen.inside)
    count = len([pair for pair in seen.pairs if pair.there is not None])
    console.print(digits(f"{name}{inside}  {plural(count, 'tensor')}", console), style="dim", markup=False)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("Tensor", view.class_name, name, ""):
        table.add_column(Text(heading), no_wrap=True)
    for row in _rows(seen.pairs):
        style = "" if row.status in _SAID else "red"
        table.add_row(*[Text(cell, style) for cell in (row.name, _text(row.here), _text(row.there), row.words)])
    print_whole(table, console)
    if view.profile.error:
        console.print(Text(f"the example failed: {view.profile.error}", "red"))
    console.print(digits(_counts(seen.pairs), console), markup=False)
    for guessed in guessed_arguments(view.shown.example):
        console.print(f"Guessed  {guessed}; --example gives others", markup=False)
    if seen.mismatch is not None:
        trace = Trace(found.analysed.path, layers=seen.layers)
        places = Places(found.analysed.module, trace, parsed_file)
        console.print(Text(f"✗ {checkpoint_words(places, seen.mismatch)}", "red"))


@dataclass(frozen=True)
class _Row:
    """Tensors of one name but for the numbers in it, with the same shapes."""

    name: str
    here: Value | None
    there: Value | None
    status: str
    words: str


def _rows(pairs: Sequence[StatePair]) -> Iterable[_Row]:
    """The pairs; those of modules that differ in their number alone as one, `blocks.*.fc.weight ×12`."""
    groups: dict[tuple[str, ...], list[StatePair]] = {}
    for pair, name in zip(pairs, _with_stars(pairs), strict=True):
        groups.setdefault((name, pair.status, _text(pair.here), _text(pair.there)), []).append(pair)
    for (name, status, *_), group in groups.items():
        first, many = group[0], len(group) > 1
        words = _SAID.get(status, status)
        if first.name_there:
            as_there = f"as {_NUMBER.sub('*', first.name_there) if many else first.name_there}"
            words = f"{as_there}, {words}" if words else as_there
        yield _Row(f"{name} ×{len(group)}" if many else first.name, first.here, first.there, status, words)


def _with_stars(pairs: Sequence[StatePair]) -> Iterable[str]:
    """The names, with a star for the number of a module beside which is another that holds the same."""
    held: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for pair in pairs:
        parts = tuple(pair.name.split("."))
        for place in _numbers(parts):
            inner = (".".join(parts[place + 1 :]), pair.status, _text(pair.here), _text(pair.there))
            held.setdefault(parts[: place + 1], []).append(inner)
    holding = {module: tuple(sorted(inner)) for module, inner in held.items()}
    alike = Counter((module[:-1], inner) for module, inner in holding.items())
    for pair in pairs:
        parts = tuple(pair.name.split("."))
        starred = {place for place in _numbers(parts) if alike[parts[:place], holding[parts[: place + 1]]] > 1}
        yield ".".join("*" if place in starred else part for place, part in enumerate(parts))


def _numbers(parts: Sequence[str]) -> Iterable[int]:
    return (place for place, part in enumerate(parts) if part.isdigit())


def _text(value: Value | None) -> str:
    return shape_text(value, "numbers", ints=True) if value is not None else ""


def _counts(pairs: Sequence[StatePair]) -> str:
    """`60 fit, 2 differ, 1 missing`"""
    counts = [(len([pair for pair in pairs if pair.status == status]), words) for status, words in _COUNTED.items()]
    text = ", ".join(f"{count} {words}" for count, words in counts if count)
    converted = [pair for pair in pairs if pair.status == "fits" and pair.here and pair.there and pair.here.dtype != pair.there.dtype]
    return text + (f" ({len(converted)} of another dtype, which is converted)" if converted else "")
