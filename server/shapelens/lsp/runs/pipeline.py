"""Takes the newest text of a document to what the editor shows of it: choose, plan, run, show.

A document without examples is run by open files that import it, or by a few closed ones, before its examples are searched for. A class
that such a file uses has an example of its own only for the branches that the file does not take. A class that its own search shows by a
guess at most (`parts_to_see`) is seen in a model of a file that imports it. In the end programs that import the document are followed for
what is still guessed: the values that they see, and the mistakes that they come to in the document.

Where a search or a program is short of time, the document runs once more with more of it when all else is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from shapelens.analysis.traces.programs import guessed_classes
from shapelens.analysis.traces.views import classes_called, parts_to_see, see_all, unshown
from shapelens.examples.found_examples import FoundExamples
from shapelens.examples.importing_files import ENOUGH, MOST_FOLLOWED, MOST_SEARCHED, models_around
from shapelens.examples.programs import does_something, is_program, likely_programs, may_hold_tensors, speaking_of
from shapelens.examples.statement_names import with_users
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.documents.moved_traces import moved_trace
from shapelens.lsp.documents.paths import same_path, uri_of
from shapelens.lsp.runs.background_fixes import BackgroundFixes
from shapelens.lsp.runs.cached_runs import CachedRuns
from shapelens.lsp.runs.choose import Chooser, Chosen
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.plan import FollowEdit, RunAffected, StayAsShown, plan
from shapelens.lsp.runs.run import Runner
from shapelens.lsp.runs.show import Presenter
from shapelens.lsp.runs.stages import ImporterRun, ImportingProgram, OwnRun, ProgramRun
from shapelens.lsp.workspace.importers import Importers
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.lsp.workspace.workspace import Workspace
from shapelens.protocol import PATIENT_SECONDS, PROGRAM_SECONDS, Search, Trace
from shapelens.python_sources import about
from shapelens.source.module import Module

TYPING_SECONDS = 1.0  # edits that are closer to each other are keystrokes of somebody who types
PAUSE_IN_TYPING = 0.5  # seconds after such an edit


@dataclass(frozen=True)
class RunServices:
    """Holds what all runs of a client share, whatever is shown of them."""

    workspace: Workspace
    cached_runs: CachedRuns
    parsed_files: ParsedFiles
    importers: Importers
    run_ids: itertools.count[int]


class Pipeline:
    """Takes one document at a time through the four steps, and the files that import it where those show it better than a search would."""

    def __init__(
        self, documents: Mapping[str, Document], services: RunServices, client: Client, found: FoundExamples, *, in_background: bool = False
    ) -> None:
        """found: what is known of examples. in_background: its runs leave alone what is ready for those that somebody waits for."""
        workspace, cached_runs, run_ids = services.workspace, services.cached_runs, services.run_ids
        self._documents = documents
        self._in_background = in_background
        self._parsed_files = services.parsed_files
        self._importers = services.importers
        self.found = found
        self.background_fixes = BackgroundFixes(client, cached_runs, self._parsed_files, run_ids)
        self.presenter = Presenter(documents, workspace.configuration, client, found, self._parsed_files, self.background_fixes)
        self.runner = Runner(documents, workspace, client, cached_runs, found, self.background_fixes, run_ids, in_background=in_background)
        self._chooser = Chooser(documents, workspace.configuration, found)
        self._short_of_time: set[str] = set()  # documents whose last search was, or what followed them as programs, by path
        self._patience: dict[str, bool] = {}  # by path, where more time was tried: whether a document's runs have it

    async def take_turn(self, document: Document) -> None:
        """Bring what the editor shows of a document up to date. Returns when that is done, or the turn was ended (`Runner.end_turn`)."""
        self.runner.begin_turn()
        await self.run(document)

    def depends_on_what_was_found(self, document: Document) -> bool:
        """True if more is shown of a document than what its given examples have come to."""
        return bool(self._chooser.choose(document).lacking) or document.importer_traces.is_known_otherwise

    def take_over(self, beside: Pipeline, document: Document, reopened: Document) -> None:
        """Show a document as another pipeline has brought it up, for which it was `reopened`, and know no more of it than that one does."""
        if document.importers is None and reopened.importers is not None:
            document.found_importers(reopened.importers)
        open_files = {each.path for each in self._documents.values()}
        closed_importers = {each.path for each in document.importers or []} - open_files
        self.found.take_over(beside.found, {document.path, *closed_importers})
        self._patience.pop(document.path, None)
        self._patience.update(beside._patience)
        self._short_of_time = (self._short_of_time - {document.path}) | beside._short_of_time
        self.presenter.take_over(document, reopened)
        self.presenter.seek_fixes(document)
        complete = document.complete
        if complete is not None and complete.own is not None:
            self.presenter.show_elsewhere(complete.own, beside._chooser.others(reopened), complete.run, hints=True)

    async def run(self, document: Document, *, whole: bool = False) -> None:
        """Bring what the editor shows of a document up to date, by its whole run or that of what an edit has to do with. Returns when that
        is done, or the run has been cancelled."""
        if document.uri not in self._documents:
            return
        chosen = self._chooser.choose(document)
        document.forget_failure()
        if chosen.lacking and document.importers is None and not whole:
            document.leave_unfinished()  # Files that import this one may show more of it, and are not known yet.
        module = chosen.analysis.module
        planned = plan(document, chosen, lambda: self._chooser.known(document, module, chosen.lacking), whole=whole)
        if isinstance(planned, StayAsShown):
            if document.analysis is not None:
                self.presenter.publish_moved(document, document.analysis.findings)
        elif isinstance(planned, FollowEdit):
            self.presenter.show_moved(document, planned.analysis)
            await self._finish_what_was_left(document)
        elif isinstance(planned, RunAffected):
            await self._run_affected(document, planned)
            await self._finish_what_was_left(document)
        else:
            await self._run_all(document, chosen)
            if self.runner.turn_has_ended:
                document.leave_unfinished()
            else:
                await self._renew_importers(document, chosen.analysis)
        await self._follow_program(document, chosen.analysis)
        await self._follow_importers(document, chosen.analysis)
        await self._take_more_time(document, chosen.analysis)

    async def _follow_program(self, document: Document, analysis: Analysis) -> None:
        """Follow a document as a program once its examples have run, unless that was done for this very text."""
        module, before = analysis.module, document.importer_traces.program_run
        if module.errors or not self.presenter.is_current(document, analysis):
            return
        if not analysis.settings.program or not is_program(module):
            if before is not None:
                self.presenter.show_program(document, analysis, None, before)
            return
        if self.runner.is_running(document) or document.importer_traces.program_holds(module, self._own(document)):
            return
        patient = self._patience.get(document.path, False)
        is_tried = patient and document.path in self._short_of_time
        is_last = document.path in self._patience
        others = self._chooser.others(document)
        results = ProgramRun(self.presenter, document, analysis, others, at_once=not is_tried, is_last=is_last)
        await self._before_longer_runs(document)
        await self.runner.run_program(document, results, PATIENT_SECONDS if patient else PROGRAM_SECONDS)
        if results.was_short_of_time:
            self._short_of_time.add(document.path)
        if results.says_more and self.presenter.is_current(document, analysis):
            await self.run(document, whole=True)

    async def _follow_importers(self, document: Document, analysis: Analysis) -> None:
        """Follow programs that import a document, for what nothing else shows of it, and for classes whose inputs were guessed."""
        module, traces = analysis.module, document.importer_traces
        if module.errors or not analysis.settings.program or not may_hold_tensors(module) or not self._is_done(document, analysis):
            return
        unseen = self._unseen(document, module)
        names = unseen | self._guessed(document)
        importers = await self._importers.of(document, patient=True) if names and self._is_done(document, analysis) else []
        traces.keep_importers([each.path for each in importers])
        says_more = False
        for importer in self._programs_to_follow(document, module):
            path, state = importer.path, self._parsed_files.state_of(importer.path)
            if traces.importer_holds(path, state, module, unseen):
                continue
            classes = [cls.qualname for cls in importer.module.classes]
            given = self._chooser.choose_given(importer)
            # Its steps ask for what its classes are called with.
            if classes and not given.examples and not traces.of({path}) and not does_something(importer.module):
                await self._run_closed_importer(document, importer, given, self._chooser.search(importer, importer.module, classes))
            if not self._is_done(document, analysis):
                return
            others = {uri: other for uri, other in self._chooser.others(importer).items() if not same_path(self._documents[uri].path, path)}
            results = ImportingProgram(self.presenter, document, analysis, given, others, state)
            known = self._chooser.known(importer, importer.module, classes)
            await self._before_longer_runs(document)
            await self.runner.run_importing_program(importer, results, known, document)
            says_more |= results.says_more
            if results.cancelled or not self._is_done(document, analysis):
                return
        if says_more:
            await self.run(document, whole=True)

    async def _before_longer_runs(self, document: Document) -> None:
        """Other files, and programs, may take long to run: before they do, fixes are tried that the document's own run can judge. And they
        wait until typing pauses, as the next keystroke would end them.
        """
        if not (self._in_background or self.runner.turn_has_ended):
            await self.background_fixes.search_by_own_run(document)
            if document.seconds_between_edits < TYPING_SECONDS and document.seconds_since_edit < PAUSE_IN_TYPING:
                await self.runner.wait(PAUSE_IN_TYPING - document.seconds_since_edit)

    def _unseen(self, document: Document, module: Module) -> set[str]:
        """The names of what nothing but a program may show of a document."""
        traces = document.importer_traces
        return unshown(module, traces.merged_with(self._own(document), module, programs=False), traces.classes())

    def _guessed(self, document: Document) -> set[str]:
        own = self._own(document)
        return guessed_classes(own, document.importer_traces.views()) if own is not None else set()

    def _programs_to_follow(self, document: Document, module: Module) -> list[Document]:
        """The programs that import a document and are followed: for what nothing else shows of it, and for classes with guessed inputs."""
        names = self._unseen(document, module) | self._guessed(document)
        return list(itertools.islice(self._importing_programs(document, with_users(module, names)), MOST_FOLLOWED)) if names else []

    async def _take_more_time(self, document: Document, analysis: Analysis) -> None:
        """Run a document once more, with more time, where that was short: when all else is shown, and once for each file.

        Its next runs have as much where that has shown more.
        """
        path = document.path
        if path not in self._short_of_time or path in self._patience or not self._is_done(document, analysis):
            return
        self._patience[path], shown = True, len(document.hints())
        document.importer_traces.mark_program_outdated()
        await self.run(document, whole=True)
        if self._is_done(document, analysis):
            self._short_of_time.discard(path)
            self._patience[path] = len(document.hints()) > shown
        else:  # An edit has ended it, or another document's turn.
            del self._patience[path]

    def _importing_programs(self, document: Document, names: set[str]) -> Iterator[Document]:
        """The files that import a document, speak of one of these names, and may be followed as programs, the likeliest first."""
        paths = [each.path for each in document.importers or []]
        for path in likely_programs(speaking_of([(path, self._parsed_files.text_of(path)) for path in paths], names)):
            importer = self._importer(document, path)
            if importer is not None and is_program(importer.module):
                yield importer

    def _is_done(self, document: Document, analysis: Analysis) -> bool:
        """True if an analysis is of the newest text, which nothing is run for, and no other document waits for its turn."""
        return (
            not self.runner.turn_has_ended
            and self._documents.get(document.uri) is document
            and not self.runner.is_running(document)
            and self.presenter.is_current(document, analysis)
        )

    @staticmethod
    def _own(document: Document) -> Trace | None:
        return document.complete.own if document.complete is not None else None

    def use_example(self, document: Document, class_name: str, expression: str) -> bool:
        """Have a class run with another of the examples that were found for it. Returns whether it is one of them."""
        return self.found.choose(document.path, class_name, expression)

    # --- after an edit ---

    async def _run_affected(self, document: Document, planned: RunAffected) -> None:
        search = self._chooser.search(document, planned.analysis.module, planned.classes)
        results = await self._run_own(document, planned.analysis, search)
        if results.cancelled:
            return
        if planned.kept.trace is None:  # It is not known where in the newest text everything belongs that was kept.
            document.mark_outdated()
            await self.run(document)
            return
        if results.says_less and self.presenter.is_current(document, planned.analysis):
            await self.run(document, whole=True)
        elif results.seen is not None and classes_called(results.seen) != classes_called(planned.before):
            document.leave_unfinished()  # Which classes need an example of their own is another question now.

    async def _finish_what_was_left(self, document: Document) -> None:
        """Run all of a document where an earlier run of all of it was cut short."""
        complete = document.complete
        if complete is not None and complete.unfinished and self.presenter.is_current(document, complete):
            await self.run(document, whole=True)

    # --- all of it ---

    async def _run_all(self, document: Document, chosen: Chosen) -> None:
        """Run a document's own examples, and search for those that it lacks; before or after that, the files that import it."""
        analysis, lacking, given = chosen.analysis, chosen.lacking, bool(chosen.analysis.examples)
        if analysis.module.errors:
            self.presenter.show(document, self.presenter.with_importers(document, analysis))
            return
        if not given:
            if lacking and await self._importers.of(document):
                await self._run_open_importers(document)
                if not self.presenter.is_current(document, analysis) or not await self._show_by_importers(document, analysis):
                    return
            if not lacking:
                self.presenter.show(document, self.presenter.with_importers(document, analysis))
                self.presenter.seek_fixes(document)
                return
        importers = document.importers or []
        search = self._chooser.search(document, analysis.module, lacking)
        if search is not None and self._patience.get(document.path):
            search = replace(search, known=[known for known in search.known if known.proven], seconds=PATIENT_SECONDS)
        results = await self._run_own(document, analysis, search)
        if results.cancelled or not lacking:
            return
        has_found_more = await self._importers.of(document, patient=True) != importers
        if given:
            await self._run_closed_importers(document)
        elif has_found_more and self.presenter.is_current(document, analysis):
            await self.run(document, whole=True)  # These files may show more of it.
        else:
            await self._search_closed_importers(document)

    async def _run_own(self, document: Document, analysis: Analysis, search: Search | None) -> OwnRun:
        results = OwnRun(self.presenter, document, analysis, self._chooser.others(document), search)
        await self.runner.run(document, results, search)
        if results.was_short_of_time:
            self._short_of_time.add(document.path)
        self.presenter.seek_fixes(document)
        return results

    # --- the files that import it ---

    async def _run_open_importers(self, document: Document) -> None:
        """Run open documents with examples that import this one, unless it is known what they see of it: that says more than a search."""
        for importer in document.importers or []:
            other = next((each for each in self._documents.values() if same_path(each.path, importer.path)), None)
            if other is None or not importer.has_example or document.importer_traces.of({other.path}):
                continue
            version = other.version
            if not document.consult(other, version):
                continue
            await self.run(other)
            if self.runner.turn_has_ended:
                document.forget_consulted(other, version)
                return

    async def _show_by_importers(self, document: Document, analysis: Analysis) -> bool:
        """Show a document without examples as files that import it use it; whether to go on, and search for examples of its own."""
        if not any(importer.has_example for importer in document.importers or []) and not document.importer_traces.runs():
            return True
        shown = document.analysis
        own = moved_trace(shown.own, shown.module.lines, analysis.module.lines) if shown is not None and shown.own is not None else None
        self.presenter.show(document, self.presenter.with_importers(document, replace(analysis, own=own)))
        return await self._run_closed_importers(document)

    async def _run_closed_importers(self, document: Document) -> bool:
        """Run files that import this one and have examples, where none of its own shows all its classes and no open file does.

        Returns whether there is time left for more: no run was cancelled.
        """
        open_files = {each.path for each in self._documents.values()}
        own = [document.analysis.own] if document.analysis is not None and document.analysis.own is not None else []
        if not document.module.classes or see_all(document.module, [*own, *document.importer_traces.of(open_files)]):
            return True
        reached = 0
        for each in document.importers or []:
            may_run = reached < ENOUGH and (each.has_example or self.found.has_some(each.path))
            importer = self._closed_importer(document, each.path) if may_run else None
            if importer is not None:
                analysis = self._chooser.choose_given(importer)
                search = self._chooser.search_around(importer) if not analysis.examples else None
                results = await self._run_closed_importer(document, importer, analysis, search)
                if results is not None and results.cancelled:
                    return False
                reached += results is not None and results.reaches(document)
        return True

    async def _search_closed_importers(self, document: Document) -> None:
        """Look for models of files that import this one which are made of its classes, as far as no example of its own is found for these:
        what a part is given is often said where it is used only."""
        searched = set[str]()
        while len(searched) < MOST_SEARCHED:
            own, traces = document.analysis.own if document.analysis is not None else None, document.importer_traces
            outdated = traces.outdated(document.module)
            parts = parts_to_see(document.module, own, traces.classes(but=outdated))
            around = models_around(document.importers or [], self._parsed_files, parts)
            next_one = next((each for each in around if each.importer.path not in searched), None)
            if next_one is None:
                return
            each = next_one.importer
            searched.add(each.path)
            importer = self._closed_importer(document, each.path)
            search = self._chooser.search_around(importer, next_one.classes) if importer is not None else None
            if importer is None or search is None:
                continue
            is_new = document.consult(each.path, each.state)
            if is_new or each.path in outdated:
                results = await self._run_closed_importer(document, importer, self._chooser.choose_given(importer), search)
                if results is not None and results.cancelled:
                    document.forget_consulted(each.path, each.state)
                if results is None or results.cancelled:
                    return

    async def _renew_importers(self, document: Document, analysis: Analysis) -> None:
        """Run closed files again that have gone through a document's older code, for functions, and for classes whose inputs were guessed.
        Of other files the own examples show all by now, as when they are opened. What no run has renewed is forgotten.
        """
        if analysis.module.errors or not self.presenter.is_current(document, analysis):
            return
        open_files = [each.path for each in self._documents.values()]
        traces = document.importer_traces
        followed = {each.path for each in self._programs_to_follow(document, analysis.module)} if analysis.module.classes else None
        for number, path in enumerate(traces.outdated(analysis.module, open_files)):
            is_renewed = number < ENOUGH and (followed is None or path in followed)
            importer = self._closed_importer(document, path) if is_renewed else None
            given = self._chooser.choose_given(importer) if importer is not None else None
            if importer is not None and given is not None:
                search = self._chooser.search_around(importer) if not given.examples else None
                results = await self._run_closed_importer(document, importer, given, search)
                is_over = self.runner.turn_has_ended or (results is not None and results.cancelled)
                if is_over or not self.presenter.is_current(document, analysis):
                    return
        outdated = traces.outdated(analysis.module, open_files)
        for path in outdated:
            traces.drop(path)
        if outdated and document.analysis is not None:
            self.presenter.show(document, self.presenter.with_importers(document, document.analysis))

    def _closed_importer(self, document: Document, path: str) -> Document | None:
        """A file that imports a document, as a document that nobody has opened; None where somebody has, or it cannot be run."""
        is_open = any(same_path(path, other.path) for other in self._documents.values())
        return None if is_open else self._importer(document, path)

    def _importer(self, document: Document, path: str) -> Document | None:
        """A file that imports a document as a document beside those that are open; None where it cannot be run."""
        module = self._parsed_files(path)
        if module is None or module.errors:
            return None
        importer = Document(uri_of(path), 0, about(path, module.text, document.module.definitions))
        importer.found_importers([each for each in document.importers or [] if each.path != path])  # They are nearly the same.
        return importer

    async def _run_closed_importer(
        self, document: Document, importer: Document, analysis: Analysis, search: Search | None
    ) -> ImporterRun | None:
        """Run a file that is not open for a document that it imports; None where there is nothing to run, or nobody to see it."""
        if self._documents.get(document.uri) is not document or not (analysis.examples or search):
            return None
        results = ImporterRun(self.presenter, importer, analysis, self._chooser.others(importer))
        await self._before_longer_runs(document)
        await self.runner.run_importer(importer, results, search, document)
        self.presenter.seek_fixes(document)
        return results
