"""Lists of names of which nobody knows how many there are: the files of a folder that is not here, the classes of a data set."""

from __future__ import annotations

from typing import Any, List

from ...unknown import unknown_sizes

COUNT = unknown_sizes.COUNT  # of the names that going through such a list gives


class UnknownNames(List[str]):
    """A list of an unknown number of names; whoever goes through it gets `COUNT`, a number that is known to be unknown."""

    def __init__(self, name: str, ending: str = "") -> None:
        unknown_sizes.state.met = unknown_sizes.state.lasting = True
        super().__init__(["%s %05d%s" % (name, number, ending) if not ending else "%05d%s" % (number, ending) for number in range(COUNT)])

    def __len__(self) -> int:
        return unknown_sizes.size(lasting=True)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            return super().__getitem__(index % COUNT)
        return super().__getitem__(index)
