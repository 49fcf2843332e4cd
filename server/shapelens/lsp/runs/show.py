"""The fourth step: what was seen becomes what the editor shows, of the document that ran and of those that its run went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shapelens import protocol
from shapelens.analysis.findings.findings import Finding, example_problems, findings
from shapelens.analysis.traces.programs import classes_of_program, examples_of_program
from shapelens.analysis.traces.splicing import spliced, without_values
from shapelens.analysis.traces.views import reaches, seen_by_program
from shapelens.examples.choose import choose
from shapelens.examples.found_examples import FoundExamples
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_findings import moved_findings, with_known_fixes
from shapelens.lsp.documents.moved_traces import moved_trace
from shapelens.lsp.documents.repeatable_run import RepeatableRun
from shapelens.lsp.runs.background_fixes import BackgroundFixes
from shapelens.lsp.runs.choose import Others
from shapelens.lsp.runs.client import Client
from shapelens.lsp.workspace.configuration import Configuration
from shapelens.lsp.workspace.parsed_files import ParsedFiles


class Presenter:
    """Turns traces into analyses, and shows these. When a stage of a run is shown is not decided here, but by `stages`."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        configuration: Configuration,
        client: Client,
        found: FoundExamples,
        parsed_files: ParsedFiles,
        background_fixes: BackgroundFixes,
    ) -> None:
        self._documents = documents
        self._configuration = configuration
        self._client = client
        self._found = found
        self._parsed_files = parsed_files
        self._fix_search = background_fixes

    def is_current(self, document: Document, analysis: Analysis) -> bool:
        """True if the document is still open, and still has the text that was analysed."""
        return self._documents.get(document.uri) is document and document.version == analysis.version

    # --- from a trace to an analysis ---

    def with_trace(self, document: Document, analysis: Analysis, traced: protocol.Traced) -> Analysis:
        """The analysis with what a run of the document has seen."""
        settings = self._configuration.of(document)
        more = traced.stage in protocol.WHAT_IS_WRONG
        trace = self.remember_found(document, traced)
        if analysis.kept is not None:
            own = analysis.kept.trace
            assert own is not None
            trace = spliced(without_values(own) if more else own, analysis.kept.again, trace)
        # What was kept is in the trace now. Holding on to it would hold all earlier analyses, each by the next one.
        seen = replace(analysis, settings=settings, own=trace, named=traced.stage == "named", kept=None)
        if traced.stage == "partial":  # Nothing is said to be wrong before the run has come to its end.
            return self._merged(document, seen)
        return self.with_importers(document, seen, only_wrong=more)

    def remember_found(self, document: Document, traced: protocol.Traced) -> protocol.Trace:
        """Remember the examples that a run of a file has found, with this text. Returns its trace with what was known of them before."""
        whole, more = traced.stage != "partial", traced.stage in protocol.WHAT_IS_WRONG
        surroundings = document.evidence_around
        return self._found.keep(document.path, document.module, traced.trace, surroundings, whole=whole, remember=not more)

    def with_importers(self, document: Document, analysis: Analysis, *, only_wrong: bool = False) -> Analysis:
        """The analysis with what the runs of importing files saw in the document, and with the findings of all of it.

        only_wrong: the document's own trace holds what is wrong and nothing else, and no more is asked for.
        """
        seen = self._merged(document, analysis, only_wrong=only_wrong)
        return replace(seen, findings=self._findings(document, seen))

    def _merged(self, document: Document, analysis: Analysis, *, only_wrong: bool = False) -> Analysis:
        return replace(analysis, trace=document.importer_traces.merged_with(analysis.own, analysis.module, only_wrong=only_wrong))

    def _findings(self, document: Document, analysis: Analysis) -> list[Finding]:
        choice = choose(analysis.module, document.path, analysis.settings)
        # Of a text that is being typed what was seen before stays; of one that never was parsable this is all there is to say.
        problems = [Finding("syntax", "error", each.message, each.span, document.path) for each in analysis.module.errors]
        found = [*document.failure, *document.program_failure, *problems, *example_problems(document.path, choice)]
        if analysis.trace is not None:
            found += findings(analysis.module, analysis.trace, analysis.settings, self._parsed_files)
        return found

    # --- from an analysis to the editor ---

    def publish(self, document: Document, found: Sequence[Finding]) -> None:
        """Show findings whose positions are of the newest text."""
        self._client.publish(document, self._fix_search.with_fixes_so_far(document, found))

    def publish_moved(self, document: Document, found: Sequence[Finding]) -> None:
        """Show findings whose positions are those of the document's analysis, where they are in the newest text."""
        self.publish(document, moved_findings(found, document.since))

    def show_hints(self, document: Document, analysis: Analysis) -> None:
        """Take hints, hovers and lenses from this analysis from now on."""
        document.show(analysis)
        # Now, so that they are there when they are asked for: Neovim shows none that come after it has drawn again since the refresh.
        _ = analysis.hints
        self._client.refresh()

    def show(self, document: Document, analysis: Analysis) -> None:
        """Show all of an analysis: findings, hints, hovers and lenses."""
        had_something = document.analysis is not None
        document.show(analysis)
        self.publish_moved(document, analysis.findings)
        if had_something or analysis.module.classes:
            self._client.refresh()

    def show_settings(self, document: Document) -> None:
        """Show what was seen as the settings now want it, without running anything. Findings of an older text are left to the next run."""
        shown = document.analysis
        if shown is not None:
            changed = replace(shown, settings=self._configuration.of(document))
            if shown.trace is not None:
                changed = replace(changed, findings=self._findings(document, changed))
            if self.is_current(document, changed):
                self.show(document, changed)
            else:
                self.show_hints(document, changed)

    def show_moved(self, document: Document, analysis: Analysis) -> None:
        """Show a text of which nothing had to run, with the fixes that are known. The analysis has what was seen, moved to that text."""
        before = document.complete
        seen = document.follow_edit(self.with_importers(document, analysis))
        if before is not None:
            self._fix_search.follow(document, before, seen)
        self.publish(document, seen.findings)
        self.show_hints(document, seen)
        self.seek_fixes(document)

    def take_over(self, document: Document, reopened: Document) -> None:
        """Show a document as it was shown where it was `reopened`, with the fixes that are known."""
        fixed, found = document.published_now(), reopened.published_now()
        document.take_over(reopened)
        analysis = document.analysis
        if analysis is not None:
            self.publish(document, with_known_fixes(found, fixed))
            self.show_hints(document, document.add_fixes(analysis, with_known_fixes(analysis.findings, fixed)))

    def show_program(
        self, document: Document, analysis: Analysis, trace: protocol.Trace | None, run: RepeatableRun, *, is_whole: bool = True
    ) -> bool:
        """Show what a document saw as a program, beside what its examples have shown. Whether it says what a class of these is called with,
        so that they should run again. is_whole: whether no more of it is to come.
        """
        document.importer_traces.follow_program(trace, analysis.module, run, is_whole=is_whole)
        shown = document.analysis
        if shown is None or shown.version != analysis.version:
            shown = analysis
        more = examples_of_program(shown.own, trace) if shown.own is not None and trace is not None else []
        seen = self.with_importers(document, shown)
        document.end_program(seen)
        self.publish(document, seen.findings)
        self.show_hints(document, seen)
        return self._learn(document, more, trace, document.path)

    def show_importing_program(
        self, document: Document, analysis: Analysis, trace: protocol.Trace, run: RepeatableRun, state: object
    ) -> bool:
        """Show what a file that imports a document saw of it as a program, where nothing else shows anything. Whether it says what a class
        is called with whose input was guessed, so that it should run again.

        analysis: of the document's text that it saw.
        """
        document.importer_traces.follow_importer(run.run.file, trace, analysis.module, run, state)
        shown = document.analysis
        if shown is None or shown.version != analysis.version or not self.is_current(document, analysis):
            return False
        seen = self.with_importers(document, shown)
        document.end_program(seen)
        self.publish(document, seen.findings)
        self.show_hints(document, seen)
        self.seek_fixes(document)
        more = examples_of_program(shown.own, seen_by_program(trace, document.path)) if shown.own is not None else []
        return self._learn(document, more, trace, run.run.file)

    def _learn(self, document: Document, more: Sequence[protocol.ExampleRun], trace: protocol.Trace | None, program: str) -> bool:
        """Take over what a program calls classes with, and drop what it does not any more. Whether classes have other examples now."""
        called = classes_of_program(trace) if trace is not None else None
        dropped = called is not None and self._found.disown(document.path, program, called)
        return self._found.adopt(document.path, document.module, program, more, document.evidence_around) or dropped

    def show_elsewhere(self, trace: protocol.Trace, others: Others, run: RepeatableRun | None, *, hints: bool) -> None:
        """Show what a run saw in the other documents that it went through: findings at once, `hints` when dims have names."""
        for uri, (version, module) in others.items():
            document = self._documents.get(uri)
            if document is None or document.version != version:
                continue  # The document has changed since, so what imports it runs again.
            if run is not None and reaches(trace, document.path):
                document.importer_traces.add(trace, module, run)
            elif not document.importer_traces.drop(trace.file):
                continue
            if not document.module.errors and (document.analysis is None or document.analysis.version != version):
                continue  # Its own run is still to come and will show this as well; until then its newest text is unknown.
            shown = document.analysis or Analysis(version, module, self._configuration.of(document))
            own = moved_trace(shown.own, shown.module.lines, module.lines) if shown.own is not None else None
            analysis = self.with_importers(document, replace(shown, version=version, module=module, own=own))
            if not document.module.errors:
                self.publish(document, analysis.findings)
            if hints:
                self.show_hints(document, analysis)
                self.seek_fixes(document)
            else:
                self._fix_search.expect(document)

    def seek_fixes(self, document: Document) -> None:
        """Look for fixes of what is shown of a document now that a run of it has ended."""
        analysis = document.analysis
        if analysis is None or not self.is_current(document, analysis):
            self._fix_search.forget(document)
            return
        self._fix_search.want(document, analysis, document.runs_behind(analysis))
