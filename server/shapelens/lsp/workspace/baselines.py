"""Findings of a baseline are faint in the editor: hints, which are no problems."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from shapelens.analysis.findings.baseline import Baseline, FindingKey
from shapelens.analysis.findings.findings import Finding
from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.configuration import Configuration
from shapelens.regular_files import read_regular

logger = logging.getLogger(__name__)

LARGEST_BASELINE = 1 << 26  # bytes


class Baselines:
    """The baselines that the settings of documents name, each read again when its file has changed."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._read: dict[Path, tuple[tuple[int, int], Baseline]] = {}

    def faint(self, document: Document, findings: Sequence[Finding]) -> Sequence[Finding]:
        """The findings of a document's newest text, those that are known as hints."""
        settings = self._configuration.of(document)
        if not settings.baseline or not findings:
            return findings
        path = Path(settings.baseline)
        folder, file = path.absolute().parent, Path(document.path).absolute()
        if not file.is_relative_to(folder):
            return findings
        module = document.module
        keys = [FindingKey.of(each.code, module.scope_at(each.span.start), each.message) for each in findings]
        known = self._baseline(path).are_known(file.relative_to(folder).as_posix(), keys)
        return [replace(each, severity="hint") if is_known else each for each, is_known in zip(findings, known, strict=True)]

    def _baseline(self, path: Path) -> Baseline:
        try:
            stat = path.stat()
            state = stat.st_mtime_ns, stat.st_size
            if path not in self._read or self._read[path][0] != state:
                self._read[path] = state, Baseline()  # What cannot be read is said once.
                self._read[path] = state, Baseline.parse(read_regular(path, LARGEST_BASELINE).decode("utf-8"))
            return self._read[path][1]
        except FileNotFoundError:
            return Baseline()
        except (OSError, ValueError) as error:
            logger.warning("baseline %s: %s", path.name, error)
            return Baseline()
