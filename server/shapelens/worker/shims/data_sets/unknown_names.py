"""Lists of names of which nobody knows how many there are: the files of a folder that is not here, the classes of a data set."""

from __future__ import annotations

from typing import Any, List

from ...unknown import unknown_sizes


class UnknownName(str):
    """The name of a file that is not here: it ends as the code that asks hopes."""

    def endswith(self, ending: Any, *args: Any) -> bool:
        return True

    def lower(self) -> str:
        return self

    def upper(self) -> str:
        return self


class UnknownNames(List[str]):
    """A list of an unknown number of names; whoever goes through it gets `COUNT`, a number that is known to be unknown."""

    def __init__(self, before: str, ending: str = "") -> None:
        unknown_sizes.note_made(lasting=True)
        super().__init__([UnknownName("%s%05d%s" % (before, number, ending)) for number in range(unknown_sizes.COUNT)])

    def __len__(self) -> int:
        return unknown_sizes.size(lasting=True)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index % unknown_sizes.COUNT if isinstance(index, int) else index)
