"""The baseline of a check: read from its file, compared with what was found, and written again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shapelens.analysis.findings.baseline import Baseline, FindingKey
from shapelens.checking import CheckedFile
from shapelens.commands import RefusedRequest
from shapelens.examples.settings import Settings
from shapelens.regular_files import read_regular
from shapelens.report.findings.report import key_of, shown_path

LARGEST_BASELINE = 1 << 26  # bytes


class KnownFindings:
    """The baseline, and what the files of this check have."""

    def __init__(self, path: Path | None, baseline: Baseline) -> None:
        self.path = path
        self._baseline = baseline
        self._found: dict[str, Sequence[FindingKey]] = {}  # by file
        self._sure: set[str] = set()  # files of which everything was seen

    @staticmethod
    def read(path: Path | None, settings: Settings, *, needed: bool = False) -> KnownFindings:
        """The baseline at a path, else at the one of the settings.

        Raises RefusedRequest where it cannot be read, or there is none and one is needed.
        """
        if path is None and settings.baseline:
            path = Path(settings.baseline)
        if path is None:
            if needed:
                raise RefusedRequest("there is no baseline: name its file with --baseline, or in the setting baseline")
            return KnownFindings(None, Baseline())
        try:
            return KnownFindings(path, Baseline.parse(read_regular(path, LARGEST_BASELINE).decode("utf-8")))
        except FileNotFoundError:
            if needed:
                return KnownFindings(path, Baseline())
            raise RefusedRequest(f"{path}: no such file; --update-baseline writes it") from None
        except OSError as error:
            raise RefusedRequest(f"{path}: {error.strerror or error}") from None
        except ValueError as error:
            raise RefusedRequest(f"{path}: {error}") from None

    def of(self, path: Path, checked: CheckedFile) -> list[bool]:
        """For each finding of a file whether it is known."""
        if self.path is None:
            return [False] * len(checked.findings)
        file = self._name(path)
        keys = [key_of(finding) for finding in checked.findings]
        self._found[file] = keys
        if checked.complete:
            self._sure.add(file)
        return self._baseline.are_known(file, keys)

    def write(self) -> str:
        """Make what was found the baseline; how much that is, in words. Files that were not looked at stay as they were."""
        baseline = self._baseline
        for file, keys in self._found.items():
            baseline = baseline.with_file(file, keys)
        self._save(baseline)
        return _findings_text(len(baseline))

    def shrink(self, *, prune: bool, in_ci: bool) -> str:
        """Take out what is gone; what to say of it, "" where nothing is. In a pipeline the file changes only if `prune` says so."""
        if self.path is None:
            return ""
        baseline = self._baseline
        for file in self._sure:
            baseline = baseline.pruned(file, self._found[file])
        if prune:
            folder = self.path.absolute().parent
            baseline = baseline.without_files([file for file in baseline.files if not (folder / file).exists()])
        gone = len(self._baseline) - len(baseline)
        if not gone:
            return ""
        if in_ci and not prune:
            return f"{_findings_text(gone)} of the baseline {'is' if gone == 1 else 'are'} gone: `shapelens check --prune` takes them out"
        self._save(baseline)
        return f"{_findings_text(gone)} that {'is' if gone == 1 else 'are'} gone {'was' if gone == 1 else 'were'} taken out of {self.path}"

    def _save(self, baseline: Baseline) -> None:
        assert self.path is not None
        try:
            self.path.write_text(baseline.text(), encoding="utf-8")
        except OSError as error:
            raise RefusedRequest(f"{self.path}: {error.strerror or error}") from None

    def _name(self, path: Path) -> str:
        assert self.path is not None
        return shown_path(path, self.path.absolute().parent)


def _findings_text(count: int) -> str:
    return f"{count} finding{'' if count == 1 else 's'}"
