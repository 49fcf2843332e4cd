"""Lists of names of which nobody knows how many there are: the files of a folder that is not here, the classes of a data set."""

from __future__ import annotations

from typing import Any, List

from ...unknown import unknown_sizes


class UnknownName(str):
    """The name of a file that is not here: it has the extension that the code which asks hopes for. Of what stands before an extension
    (`_mask.png`), every other name of a list has it: code sorts names by that.
    """

    has_any_ending = True

    def endswith(self, ending: Any, *args: Any) -> bool:
        return self.has_any_ending or not isinstance(ending, str) or ending.rpartition(".")[0] == ""

    def lower(self) -> str:
        return self

    def upper(self) -> str:
        return self


class UnknownNames(List[str]):
    """A list of an unknown number of names; whoever goes through it gets `COUNT`, a number that is known to be unknown."""

    def __init__(self, before: str, ending: str = "") -> None:
        unknown_sizes.note_made(lasting=True)
        super().__init__([UnknownName("%s%05d%s" % (before, number, ending)) for number in range(unknown_sizes.COUNT)])
        for name in list(self)[1::2]:
            name.has_any_ending = False  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return unknown_sizes.size(lasting=True)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index % unknown_sizes.COUNT if isinstance(index, int) else index)
