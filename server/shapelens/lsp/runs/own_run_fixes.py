"""The fixes that a document's own run shows to work, which are tried before longer runs: of closed files that use it, of programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapelens.analysis.findings.findings import Finding, findings
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import with_known_fixes
from shapelens.lsp.runs.fix_attempts import FixAttempts, FixTask
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.protocol import Trace
from shapelens.repair.search import FileToMend, KnownByPart, Limits, RepairSearch
from shapelens.source.positions import Span

LIMITS = Limits(seconds_per_finding=3.0, seconds=5.0, seconds_for_others=0.3, own_file_first=True)


class OwnRunFixes:
    """Holds what the search by one text's own run has come to. Later, what is found by all runs is settled here too."""

    def __init__(self, document: Document, task: FixTask, own: Trace, attempts: FixAttempts, parsed_files: ParsedFiles) -> None:
        """own: what the first of the task's runs saw, which is the document's own."""
        module, settings, ran = task.analysis.module, task.analysis.settings, task.runs[0]
        self._shown = findings(module, own, settings, parsed_files)
        tried = FileToMend(document.path, module, settings, len(ran.run.examples), self._shown, parsed_files)
        self._search = RepairSearch(tried, attempts.of(document.path, [ran]), LIMITS)
        self._text = module.text
        self._fixed = list(self._shown)  # with the fixes that work: as far as that run shows, or all where all has been tried
        self._sure = {number for number, run in enumerate(own.examples) if not run.doubtful}

    def worth_mending(self, published: Sequence[Finding]) -> Iterator[Finding]:
        """Yields what the run shows of what is published, and under an example that is not doubtful."""
        keys = {_key(finding) for finding in published}
        return (finding for finding in self._shown if _key(finding) in keys and not self._sure.isdisjoint(finding.examples))

    async def mended(self, finding: Finding) -> Finding:
        """One of these with the fixes that work as far as the run shows. Raises GivenUp when an attempt does."""
        return await self._search.mended(finding)

    def settle(self, finding: Finding) -> bool:
        """More is known of the fixes of a finding. Returns whether some were known before."""
        before = [each for each in self._fixed if _key(each) == _key(finding)]
        self._fixed = [finding if each in before else each for each in self._fixed]
        return any(each.fix is not None for each in before)

    def of(self, finding: Finding) -> KnownByPart | None:
        """Returns what the search has come to for a finding of all runs; None where the document's own run does not show it."""
        for same, fixed in zip(self._shown, self._fixed, strict=True):
            if _key(same) == _key(finding):
                return KnownByPart(self._search, same, [fix for fix in (fixed.fix, *fixed.alternatives) if fix is not None])
        return None

    def put_into(self, found: Sequence[Finding], text: str) -> Sequence[Finding]:
        """Findings of a text with the fixes that are known; as they are where it is another text."""
        return with_known_fixes(found, self._fixed) if text == self._text else found


def _key(finding: Finding) -> tuple[str, Span]:
    return finding.code, finding.span
