"""In which order fixes are tried, and when no more of them are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.repairs.fixes import Fix
from shapelens.examples.settings import Settings
from shapelens.repair.search import FileToMend, KnownByPart, Limits, RepairSearch
from shapelens.source.module import parse
from shapelens.source.position_map import TextEdit
from shapelens.source.positions import Span
from shapelens.traces import Trace

NET, LAYERS = "/net.py", "/layers.py"
TEXTS = {NET: "size = 1\n", LAYERS: "width = 2\n"}


def fix(file: str, number: int) -> Fix:
    """Sets the number in a file."""
    at = len(TEXTS[file]) - 2
    return Fix(f"{file} {number}", [TextEdit(Span(1, at, 1, at + 1), str(number))], file)


CANDIDATES = [fix(LAYERS, 4), fix(NET, 3), fix(LAYERS, 5)]
FINDING = Finding("dim", "error", "it does not fit", Span(1, 0, 1, 4), NET, candidates=lambda: CANDIDATES)


class Search:
    """A search for the fixes of the finding, and which texts it has run. working: the fixes with which nothing is wrong."""

    def __init__(self, *working: Fix, own_file_first: bool) -> None:
        self.tried: list[str] = []
        self._working = {each.title for each in working}
        modules = {file: parse(text) for file, text in TEXTS.items()}
        document = FileToMend(NET, modules[NET], Settings(), 1, [FINDING], modules.get)
        self.search = RepairSearch(document, self._attempt, Limits(9.0, 9.0, 9.0, own_file_first))

    async def _attempt(self, texts: Mapping[str, str], examples: Sequence[int] | None, expressions: Mapping[str, str]) -> Trace | None:
        ((file, text),) = texts.items()
        self.tried.append(f"{file} {text.split()[-1]}")
        return Trace(NET) if self.tried[-1] in self._working else None


async def test_where_others_run_later_the_file_itself_is_changed_first_and_no_other_one_once_that_works() -> None:
    made = Search(*CANDIDATES, own_file_first=True)
    mended = await made.search.mended(FINDING)
    assert made.tried == ["/net.py 3"]
    assert (mended.fix, mended.alternatives) == (CANDIDATES[1], [])


async def test_another_file_is_changed_where_nothing_else_works() -> None:
    made = Search(CANDIDATES[2], own_file_first=True)
    assert (await made.search.mended(FINDING)).fix == CANDIDATES[2]
    assert made.tried == ["/net.py 3", "/layers.py 4", "/layers.py 5"]


async def test_otherwise_they_are_tried_as_they_are_listed() -> None:
    made = Search(CANDIDATES[1], own_file_first=False)
    assert (await made.search.mended(FINDING)).fix == CANDIDATES[1]
    assert made.tried == ["/layers.py 4", "/net.py 3", "/layers.py 5"]


async def test_what_a_part_of_the_runs_refuses_is_not_tried_with_all_of_them() -> None:
    part, whole = (Search(CANDIDATES[1], own_file_first=False) for _ in range(2))
    mended = await whole.search.mended(FINDING, KnownByPart(part.search, FINDING, [CANDIDATES[1]]))
    assert mended.fix == CANDIDATES[1]
    assert whole.tried == ["/net.py 3"], "it was known to work with the part"
    assert part.tried == ["/layers.py 4", "/layers.py 5"]
