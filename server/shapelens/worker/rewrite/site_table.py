"""The sites of all rewritten files of a process, numbered through: a site's number is its place in the table."""

from __future__ import annotations

from typing import List, Tuple

from .sites import Site


class SiteTable:
    """Sites that are kept for all runs of a process and those that are forked from it, then those of the run under way."""

    def __init__(self) -> None:
        self.sites: List[Site] = []
        self.files: List[Tuple[int, str]] = []  # the first site of each file, and the file; older versions of files too
        self._kept = 0  # Sites and files up to this number are kept, the others belong to a run.

    def keep(self) -> None:
        """All sites that there are now stay when a run is forgotten."""
        self._kept = len(self.sites)

    def forget_run(self) -> None:
        """Drop the sites and files that were added since `keep`."""
        del self.sites[self._kept :]
        while self.files and self.files[-1][0] >= self._kept:
            self.files.pop()
