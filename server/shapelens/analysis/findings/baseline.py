"""Findings that a project already had when it began to use ShapeLens: known, and so no failure.

A known finding is told by its file, its code, the function that it stands in and its message without the numbers, so that it stays known
when lines move and sizes change. A baseline counts them: a second one of the same kind in the same function is new.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

VERSION = 1  # of the file; it changes when a field changes its meaning or goes

_NUMBER = re.compile(r"\b\d+(?:[·.,]\d+)*")


@dataclass(frozen=True, order=True)
class FindingKey:
    """The key that tells a finding from the others of its file. scope: the function or class around it by qualified name, "" outside of
    any."""

    code: str
    scope: str
    message: str

    @staticmethod
    def of(code: str, scope: str, message: str) -> FindingKey:
        """The key of a finding with this message, whose numbers may change."""
        return FindingKey(code, scope, _NUMBER.sub("#", " ".join(message.split())))


@dataclass(frozen=True)
class Baseline:
    """The known findings by file (its path from the folder that the baseline lies in, with "/"), each with how often it is there."""

    files: Mapping[str, Counter[FindingKey]] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> Baseline:
        """The baseline that a file holds. Raises ValueError, which says what is wrong with the text."""
        try:
            content = json.loads(text)
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"it is no JSON ({error})") from None
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise ValueError(f"it is no baseline of version {VERSION}")
        try:
            return Baseline({file: _counted(entries) for file, entries in content["findings"].items()})
        except (KeyError, TypeError, AttributeError, ValueError):
            raise ValueError("it is no baseline that shapelens wrote") from None

    def text(self) -> str:
        """The file's text: the same findings give the same text."""
        findings = {
            file: [{"code": key.code, "scope": key.scope, "message": key.message, "count": count} for key, count in sorted(counted.items())]
            for file, counted in sorted(self.files.items())
            if counted
        }
        return json.dumps({"version": VERSION, "findings": findings}, ensure_ascii=False, indent=2) + "\n"

    def __len__(self) -> int:
        return sum(counted.total() for counted in self.files.values())

    def are_known(self, file: str, keys: Sequence[FindingKey]) -> list[bool]:
        """For each finding of a file whether it is known; of more than there were, the last ones are new."""
        left = Counter(self.files.get(file, Counter()))
        known = []
        for key in keys:
            known.append(left[key] > 0)
            left[key] -= 1
        return known

    def with_file(self, file: str, keys: Sequence[FindingKey]) -> Baseline:
        """The baseline in which a file has these findings."""
        return Baseline({**self.files, file: Counter(keys)})

    def pruned(self, file: str, keys: Sequence[FindingKey]) -> Baseline:
        """The baseline without what a file, which has these findings, no longer has."""
        return self.with_file(file, list((self.files.get(file, Counter()) & Counter(keys)).elements()))

    def without_files(self, gone: Sequence[str]) -> Baseline:
        """The baseline without files that are no longer there."""
        return Baseline({file: counted for file, counted in self.files.items() if file not in gone})


def _counted(entries: list[dict[str, Any]]) -> Counter[FindingKey]:
    counted: Counter[FindingKey] = Counter()
    for entry in entries:
        counted[FindingKey(str(entry["code"]), str(entry["scope"]), str(entry["message"]))] += int(entry["count"])
    return counted
