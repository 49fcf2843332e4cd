"""Files analysed one after the other, without an editor: what the command line and the tests do with a text.

text → source.parse → examples.choose → runner.Worker → analysis → repair. The language server's session takes the same steps, but keeps
what they give between edits; here nothing is kept but the worker.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType

from shapelens import protocol
from shapelens.analysis.display.hints import Hint, hints
from shapelens.analysis.findings.findings import Finding, example_problems, failure, findings, findings_of_real_runs
from shapelens.analysis.structure.device_fit import findings_of_memory
from shapelens.analysis.traces.programs import examples_of_program, guessed_classes, with_found, with_importing_program, with_program
from shapelens.analysis.traces.views import (
    classes_used,
    only_found,
    parts_to_see,
    reaches,
    see_all,
    seen_by_program,
    seen_from,
    unshown,
    with_evidence,
    without_found,
)
from shapelens.dependences import DEEP_TIMES, MOST_BYTES, MOST_PARAMETERS
from shapelens.examples.choose import Choice, choose, without_example
from shapelens.examples.found_examples import FoundExamples
from shapelens.examples.importing_files import ENOUGH, MOST_FOLLOWED, MOST_SEARCHED, ImportingFile, ImportingFiles, models_around
from shapelens.examples.programs import does_something, is_program, likely_programs, may_hold_tensors, speaking_of
from shapelens.examples.settings import Settings
from shapelens.examples.statement_names import with_users
from shapelens.profiles import PROFILE_EVALUATIONS
from shapelens.project_scope import ProjectScope, project_root
from shapelens.protocol import PATIENT_SECONDS, PROGRAM_SECONDS
from shapelens.repair import search
from shapelens.runner import Worker
from shapelens.runner.preload import ahead_of
from shapelens.runner.worker_state import StartFailure
from shapelens.source.files import cells_of, parsed_file
from shapelens.source.module import Module, SyntaxProblem, parse
from shapelens.trace_numbering import merged

LIMITS = search.Limits(seconds_per_finding=10.0, seconds=30.0, seconds_for_others=2.0)
# Outcomes that a run has each time; the others may be due to the machine.
LASTING = ("ok", "exit", "memory")


class Unavailable(Exception):
    """No worker can be started. `action` says what to do about it."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(message)
        self.action = action


@dataclass(frozen=True)
class _Importer:
    """A file that imports another, with its examples. found: what is known of those that nobody gave."""

    path: str
    examples: list[protocol.ExampleRequest]
    found: list[protocol.ExampleRun]


@dataclass(frozen=True)
class _FollowedProgram:
    """A file that imports another, as a program. known: the examples of its classes."""

    path: str
    module: Module
    known: list[protocol.ExampleRun]


@dataclass
class Analysed:
    """Everything that is known about one text. `trace` has no observations where there was no example to run."""

    path: str
    module: Module
    settings: Settings
    choice: Choice
    trace: protocol.Trace
    hints: list[Hint] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    source: str = ""  # the text as its author sees it: of a notebook, also what only IPython understands; line by line that of `module`
    read: set[str] = field(default_factory=set)  # files, by absolute path, that its runs depended on
    hurried: bool = False  # following it as a program was short of time somewhere, and there is more that it may have
    complete: bool = True  # each run came to an end that it will come to again
    not_run: list[str] = field(default_factory=list)  # models that were not run for real where that was wanted, each with the reason


class Batch:
    """Analyses any number of texts with one worker. Used as `async with Batch(...) as batch`."""

    def __init__(
        self,
        python: str | None = None,
        *,
        root: Path,
        fork: bool | None = None,
        scope: ProjectScope | None = None,
        importing_files: ImportingFiles | None = None,
    ) -> None:
        """`python`: the interpreter that has torch, None to find it; `root`: the folder that it is found for.

        `scope` and `importing_files` may be shared with other batches.
        """
        self.root = root
        self.output: list[str] = []  # what user code printed and the worker logged
        self.scope = scope or ProjectScope()
        self.notice = self.scope.notice(root, python)
        self.interpreter = self.scope.interpreter(root, python).python
        self.worker = Worker(self.interpreter, root=str(root), fork=fork, on_output=self.output.append)
        self._importing_files = importing_files or ImportingFiles(unchanging=True)
        self._read: set[str] = set()
        self._programs_that_fail: list[_FollowedProgram] = []  # that came to a mistake in the file that they were followed for
        self._complete = True
        self._hurried = False
        self._seconds = PATIENT_SECONDS
        self._worked = 0.0
        self._run_ids = itertools.count(1)

    async def __aenter__(self) -> Batch:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.worker.stop()

    async def start(self) -> protocol.Hello:
        """Returns the worker's greeting. Raises Unavailable where no worker can be started."""
        hello = await self.worker.start()
        if isinstance(hello, StartFailure):
            raise Unavailable(hello.message, hello.action)
        return hello

    async def analyse(
        self,
        path: Path,
        text: str,
        *,
        examples: list[str] | None = None,
        only: str | None = None,
        importers: bool = True,
        programs: bool = True,
        fixes: bool = True,
        brief: bool = False,
        before: Analysed | None = None,
        patient: bool = True,
        deep: bool = False,
        memory: bool = False,
    ) -> Analysed:
        """Hints and findings of one text. `examples` replace all others; `only` keeps those of one class. Raises Unavailable.

        A class that no example belongs to is run with one that is found for it. `importers`: before that, it is seen from the examples of
        files that import the text's.
        `programs`: those that import the text's file are followed in the end for what they show of it.
        `fixes`: findings come with those fixes that were tried and work. `brief`: nothing but findings is wanted.
        `before`: the file as it was before an edit, whose examples stay, as in an editor.
        `patient`: False where somebody waits: the search and the program may take no longer than in an editor.
        `deep`: models are run for real besides, which tells what depends on what.
        `memory`: training steps that do not fit the memory of the device are findings, where the settings say that.
        """
        self._read, self._complete, self._hurried = set(), True, False
        self._programs_that_fail = []
        self._seconds = PATIENT_SECONDS if patient else PROGRAM_SECONDS
        fixes, programs = fixes and not brief, programs and importers and not examples and only is None
        analysed = await self._analyse(
            path, text, examples or [], only, before, importers=importers, programs=programs, fixes=fixes, brief=brief
        )
        if deep and not analysed.module.errors:
            known = {(each.code, each.span.start.line) for each in analysed.findings}
            analysed.findings += [each for each in await self.run_for_real(analysed) if (each.code, each.span.start.line) not in known]
        if memory and not analysed.module.errors:
            profile = partial(self.profile, analysed)
            analysed.findings += await findings_of_memory(analysed.module, analysed.trace, analysed.settings, parsed_file, profile)
        analysed.findings.sort(key=lambda finding: finding.span.start)
        analysed.read, analysed.complete, analysed.hurried = self._read, self._complete, self._hurried
        return analysed

    async def _analyse(
        self,
        path: Path,
        text: str,
        examples: list[str],
        only: str | None,
        before: Analysed | None,
        *,
        importers: bool,
        programs: bool,
        fixes: bool,
        brief: bool,
    ) -> Analysed:
        analysed = self._opened(path, text, examples, only)
        file, module, settings, choice = analysed.path, analysed.module, analysed.settings, analysed.choice
        if module.errors:
            return analysed
        importers = importers and not examples
        lacking = _lacking(module, choice, only) if not examples else []
        program = self._seconds_of_program(analysed) if not examples and only is None else 0.0
        views = await self._seen_from_importers(file, {file: module.text}, settings) if importers and not choice.examples else []
        own = await self._with_examples(analysed, lacking, views, before, brief=brief)
        if importers and choice.examples and not only and not see_all(module, [own]):
            views = await self._seen_from_importers(file, {file: module.text}, settings)
        models: list[_Importer] = []
        if importers and lacking and not choice.examples and only is None:
            models = await self._models_in_importers(analysed, own, views)
        used = _used_in(views)
        found, own = only_found(own, used), without_found(own, used)
        shown = [own, *views]
        if program:
            own, shown = await self._with_own_program(analysed, shown, lacking, program, brief=brief)
        if programs and settings.program and may_hold_tensors(module):
            shown = await self._with_importing_programs(analysed, shown, lacking)
            own = shown[0]
        analysed.trace = merged(file, with_found(shown, found))
        if analysed.trace.examples or analysed.trace.mismatches:  # Where no class could be defined, there is nothing to find examples for.
            analysed.hints = hints(module, analysed.trace, settings) if not brief else []
            analysed.findings += await self._found(analysed, own, models if views else None, program=program, fixes=fixes)
        return analysed

    def _opened(self, path: Path, text: str, examples: list[str], only: str | None) -> Analysed:
        """A text before anything of it runs, with the examples that are given for it and what is wrong with it as it stands."""
        file = str(path.absolute())
        settings = self.scope.settings(path.absolute().parent)
        source = cells_of(path, text)
        choice = choose(source.module, file, settings, examples)
        if only is not None and not examples:
            choice.examples[:] = [example for example in choice.examples if example.target == only]
        analysed = Analysed(file, source.module, settings, choice, protocol.Trace(file), source=source.source)
        analysed.findings = _of_text(file, source.problems, choice)
        return analysed

    def _seconds_of_program(self, analysed: Analysed) -> float:
        """Returns the time that a file may run as the program that it is; 0 for a file that is none."""
        return self._seconds if analysed.settings.program and is_program(analysed.module) else 0.0

    async def _with_examples(
        self, analysed: Analysed, lacking: Sequence[str], views: Sequence[protocol.Trace], before: Analysed | None, *, brief: bool
    ) -> protocol.Trace:
        """Returns the trace of a file with its given examples, and with those found for the classes that lack one. A run that failed as a
        whole becomes a finding."""
        file, module, settings, choice = analysed.path, analysed.module, analysed.settings, analysed.choice
        if not choice.examples and not lacking:
            return protocol.Trace(file)
        used = _used_in(views)
        later = [name for name in lacking if name.rpartition(".")[2] in used]
        known = _known_before(before, module, lacking) if before is not None else []
        importing = self._importers(file, settings, module) if lacking else []
        wanted = protocol.Search(known, importing, list(lacking), self._seconds, later) if lacking else None
        own, finished = await self._run(file, module, choice.requests, settings, search=wanted, brief=brief)
        if finished.outcome != "ok" and not any(run.error_kind == finished.outcome for run in own.examples):
            analysed.findings += failure(module, file, finished, settings, given=bool(choice.examples))
        return own

    async def _with_own_program(
        self, analysed: Analysed, shown: list[protocol.Trace], lacking: Sequence[str], seconds: float, *, brief: bool
    ) -> tuple[protocol.Trace, list[protocol.Trace]]:
        """Returns the trace of a file's own examples, with the calls of its program; then all traces of it, with its program's too."""
        file, module, settings, own = analysed.path, analysed.module, analysed.settings, shown[0]
        followed, finished = await self._run(file, module, [], settings, brief=brief, program=seconds, known=own.examples)
        if finished.outcome == "crash":
            analysed.findings += failure(module, file, finished, settings, given=False)
        if more := examples_of_program(own, followed):
            own = await self._with_examples_of_program(analysed, own, more, lacking)
        return own, with_program([own, *shown[1:]], followed)

    async def _with_examples_of_program(
        self, analysed: Analysed, own: protocol.Trace, more: Sequence[protocol.ExampleRun], lacking: Sequence[str]
    ) -> protocol.Trace:
        """Returns the trace of a file's examples, with the program's own calls of the classes that it calls."""
        of_program = {run.target: run for run in more}
        runs = [of_program.get(run.target, run) for run in own.examples if run.evidence]
        known = [protocol.Known(run.target, run.expression, run.evidence, run.where, proven=True, call=run.call) for run in runs]
        search = protocol.Search(known, self._importers(analysed.path, analysed.settings, analysed.module), list(lacking), PATIENT_SECONDS)
        trace, finished = await self._run(analysed.path, analysed.module, analysed.choice.requests, analysed.settings, search=search)
        return trace if finished.outcome == "ok" else own

    async def _with_importing_programs(
        self, analysed: Analysed, shown: list[protocol.Trace], lacking: Sequence[str]
    ) -> list[protocol.Trace]:
        """Returns the traces of a file, its own examples first. Programs that import it add their values where no other trace has any.
        Classes with guessed inputs get the calls of these programs."""
        file, module, settings = analysed.path, analysed.module, analysed.settings
        names = with_users(module, unshown(module, merged(file, shown)) | guessed_classes(shown[0], shown[1:]))
        importers = self._importers(file, settings, module) if names else []
        modules = {path: parsed for path in importers if (parsed := parsed_file(path, module.definitions)) is not None}
        likely = likely_programs(speaking_of([(path, parsed.text) for path, parsed in modules.items()], names))
        for path in [path for path in likely if is_program(modules[path]) and not modules[path].errors][:MOST_FOLLOWED]:
            importer = modules[path]
            texts, known = {file: module.text}, list[protocol.ExampleRun]()
            classes = without_example(importer, choose(importer, path, settings))
            if classes and not does_something(importer):
                search = protocol.Search([], self._importers(path, settings, importer), list(classes), PATIENT_SECONDS)
                trace, _ = await self._run(path, importer, [], settings, texts, search=search)
                known = trace.examples
            program = _FollowedProgram(path, importer, known)
            view = await self._seen_by_program(program, file, texts, settings)
            if view.mismatches:
                self._programs_that_fail.append(program)
            if more := examples_of_program(shown[0], view):
                shown[0] = await self._with_examples_of_program(analysed, shown[0], more, lacking)
            shown = with_importing_program(shown, view)
        return shown

    async def _seen_by_program(self, program: _FollowedProgram, file: str, texts: Mapping[str, str], settings: Settings) -> protocol.Trace:
        module = parse(texts[program.path]) if program.path in texts else program.module
        known = program.known
        seen, _ = await self._run(program.path, module, [], settings, texts, program=PATIENT_SECONDS, known=known, followed_for=file)
        return seen_by_program(seen, file)

    async def _found(
        self, analysed: Analysed, own: protocol.Trace, models: list[_Importer] | None, *, program: float, fixes: bool
    ) -> list[Finding]:
        """The findings of what was run, with the fixes that work where these are wanted and the text parses as a whole.

        `models`: the importing files with models that were found; None where no importing file shows anything.
        """
        file, module, settings = analysed.path, analysed.module, analysed.settings
        found = findings(module, analysed.trace, settings, parsed_file)
        if not fixes or any(finding.code != "syntax" for finding in analysed.findings):
            return found
        # What other files' examples show cannot be run by their number.
        count = 0 if models is not None or program or self._programs_that_fail else len(own.examples)
        attempts = self._attempts(analysed, own, models, program=program)
        clock = self._seconds_worked if self._seconds == PATIENT_SECONDS else time.monotonic
        return await search.with_fixes(search.FileToMend(file, module, settings, count, found, parsed_file), attempts, LIMITS, clock)

    def _seconds_worked(self) -> float:
        """Seconds of work of all runs until now: on a busy machine as many fixes are found as on an idle one."""
        return self._worked

    async def profile(self, analysed: Analysed, run: protocol.ExampleRun, request: protocol.ProfileRequest) -> protocol.ModelProfile:
        """The model of an example of what was analysed, as a whole. Raises Unavailable; a run that does not end well is an error in it."""
        file = run.file or analysed.path
        module = analysed.module if file == analysed.path else parsed_file(file)
        found: list[protocol.ModelProfile] = []
        if module is not None:
            examples = [protocol.ExampleRequest(run.target, run.expression)]
            overlays = {analysed.path: analysed.module.text} if file != analysed.path else {}
            _, finished = await self._run(file, module, examples, analysed.settings, overlays, profile=request, on_profile=found.append)
            if not found:
                return protocol.ModelProfile(error=finished.detail or finished.outcome)
            return found[-1].cut_short(finished.detail or finished.outcome)
        return protocol.ModelProfile(error=f"{file} cannot be read")

    async def run_for_real(self, analysed: Analysed, unsaved: Mapping[str, str] | None = None) -> list[Finding]:
        """Returns the findings of real runs of the models in a file's examples. unsaved: texts of other files. Raises Unavailable."""
        trace, reports = analysed.trace, list[protocol.DeepReport]()
        failed = {mismatch.example for mismatch in trace.mismatches}
        said = set[tuple[str, str]]()
        for number, run in enumerate(trace.examples):
            is_of_class = not run.evidence or analysed.module.class_named(run.target) is not None
            if run.error is not None or run.doubtful or number in failed or not is_of_class or run.parameter_count is None:
                continue
            if (run.file, run.expression) in said:
                continue
            said.add((run.file, run.expression))
            report = await self.examine(analysed, run, unsaved)
            reports.append(report)
            if report.skipped:
                analysed.not_run.append(f"{run.target or run.expression}: {report.skipped}")
        return findings_of_real_runs(analysed.module, trace, analysed.settings, parsed_file, reports)

    async def examine(self, analysed: Analysed, run: protocol.ExampleRun, unsaved: Mapping[str, str] | None = None) -> protocol.DeepReport:
        """Returns the dependences in the model of an example of an analysed file. Raises Unavailable."""
        if (run.parameter_count or 0) > MOST_PARAMETERS or (run.bytes or 0) > MOST_BYTES:
            count = round((run.parameter_count or 0) / 1e6)
            return protocol.DeepReport(skipped=f"it has {count} million parameters, more than {MOST_PARAMETERS // 10**6} million")
        file = run.file or analysed.path
        module = analysed.module if file == analysed.path else parsed_file(file)
        if module is None:
            return protocol.DeepReport(skipped=f"{file} cannot be read")
        found: list[protocol.DeepReport] = []
        examples = [protocol.ExampleRequest(run.target, run.expression)]
        overlays = {path: text for path, text in {**(unsaved or {}), analysed.path: analysed.module.text}.items() if path != file}
        request = protocol.DeepRequest(run.dims, not run.evidence or run.call is not None)
        _, finished = await self._run(file, module, examples, analysed.settings, overlays, deep=request, on_report=found.append)
        return found[-1] if found else protocol.DeepReport(skipped=finished.detail or finished.outcome)

    async def with_other_sizes(self, analysed: Analysed, run: protocol.ExampleRun, expressions: Sequence[str]) -> protocol.Trace:
        """Returns the trace of expressions that stand for an example of the analysed file, in the imported files of the project too."""
        texts = {file: module.text for file in analysed.trace.files if (module := parsed_file(file)) is not None}
        requests = [protocol.ExampleRequest(run.target, expression) for expression in expressions]
        settings = replace(analysed.settings, deadline=analysed.settings.deadline * len(requests))
        trace, _ = await self._run(analysed.path, analysed.module, requests, settings, texts, named=False)
        return trace

    def _attempts(self, analysed: Analysed, own: protocol.Trace, models: list[_Importer] | None, *, program: float) -> search.Attempt:
        """`models`: the importing files with models that were found; None where no importing file shows anything."""
        file, settings = analysed.path, analysed.settings

        async def attempt(texts: Mapping[str, str], numbers: Sequence[int] | None, expressions: Mapping[str, str]) -> protocol.Trace | None:
            module = parse(texts[file], analysed.module) if file in texts else analysed.module
            every = [replace(run, expression=expressions.get(run.expression, run.expression)) for run in own.examples]
            runs = every if numbers is None else [every[number] for number in numbers]
            requests = [protocol.ExampleRequest(run.target, run.expression) for run in runs if not run.doubtful]
            trace = protocol.Trace(file)
            if requests:
                trace, finished = await self._run(file, module, requests, settings, texts, named=False)
                if finished.outcome != "ok":
                    return None
                trace = with_evidence(trace, runs)
            views = []
            if models is not None:
                views = await self._seen_from_importers(file, {file: module.text, **texts}, settings)
                views += await self._seen_from(file, {file: module.text, **texts}, settings, models)
            shown = [trace, *views]
            if program:
                followed, finished = await self._run(file, module, [], settings, texts, program=program, known=every)
                if finished.outcome != "ok":
                    return None
                shown = with_program(shown, followed)
            for each in self._programs_that_fail:
                shown = with_importing_program(shown, await self._seen_by_program(each, file, {file: module.text, **texts}, settings))
            return merged(file, shown)

        return attempt

    def _importers(self, file: str, settings: Settings, module: Module) -> list[str]:
        """The files of the project that import this one, by path."""
        return [each.path for each in self._importing(file, settings, module)]

    def _importing(self, file: str, settings: Settings, module: Module) -> list[ImportingFile]:
        return self._importing_files.of(file, str(project_root(Path(file))), settings, {}, [cls.name for cls in module.classes])

    async def _seen_from_importers(self, file: str, texts: Mapping[str, str], settings: Settings) -> list[protocol.Trace]:
        """Returns the traces of this file from runs of files that import it and have examples."""
        known = self._importing_files.of(file, str(project_root(Path(file))), settings, {})
        importers = []
        for importer in [each.path for each in known if each.has_example]:
            module = parse(texts[importer]) if importer in texts else parsed_file(importer)
            choice = choose(module, importer, settings) if module is not None and not module.errors else None
            importers += [_Importer(importer, choice.requests, [])] if choice is not None and choice.examples else []
        return await self._seen_from(file, texts, settings, importers)

    async def _seen_from(
        self, file: str, texts: Mapping[str, str], settings: Settings, importers: Sequence[_Importer]
    ) -> list[protocol.Trace]:
        views: list[protocol.Trace] = []
        for importer in importers:
            module = parse(texts[importer.path]) if importer.path in texts else parsed_file(importer.path)
            if module is not None and len(views) < ENOUGH:
                trace, _ = await self._run(importer.path, module, importer.examples, settings, texts)
                views += [seen_from(with_evidence(trace, importer.found), file)] if reaches(trace, file) else []
        return views

    async def _models_in_importers(self, analysed: Analysed, own: protocol.Trace, views: list[protocol.Trace]) -> list[_Importer]:
        """The files that import this one and have a model that is made of those of its classes which nothing shows. What the models see of
        the file is added to `views`."""
        file, settings = analysed.path, analysed.settings
        parts = parts_to_see(analysed.module, own, _used_in(views))
        found: list[_Importer] = []
        importers = self._importing(file, settings, analysed.module) if parts else []
        searched = set[str]()
        while around := next((each for each in models_around(importers, parsed_file, parts) if each.importer.path not in searched), None):
            path = around.importer.path
            searched.add(path)
            module = parsed_file(path)
            if module is None or len(searched) > MOST_SEARCHED:
                break
            users = [other.path for other in importers if other is not around.importer]
            search = protocol.Search([], users, around.classes, PATIENT_SECONDS)
            trace, _ = await self._run(path, module, [], settings, {file: analysed.module.text}, search=search)
            view = seen_from(trace, file)
            if parts & classes_used(view):
                requests = [protocol.ExampleRequest(run.target, run.expression) for run in view.examples]
                found.append(_Importer(path, requests, view.examples))
                views.append(view)
                parts -= classes_used(view)
        return found

    async def _run(
        self,
        file: str,
        module: Module,
        examples: list[protocol.ExampleRequest],
        settings: Settings,
        overlays: Mapping[str, str] | None = None,
        *,
        named: bool = True,
        brief: bool = False,
        program: float = 0.0,
        known: Sequence[protocol.ExampleRun] = (),
        followed_for: str = "",
        search: protocol.Search | None = None,
        profile: protocol.ProfileRequest | None = None,
        on_profile: Callable[[protocol.ModelProfile], None] = lambda profile: None,
        deep: protocol.DeepRequest | None = None,
        on_report: Callable[[protocol.DeepReport], None] = lambda report: None,
    ) -> tuple[protocol.Trace, protocol.Finished]:
        await self.start()
        # The time that libraries take to load is not the model's, and must not count against its deadline.
        self.worker.preload(ahead_of(module, str(project_root(Path(file))), file), settings.allow)
        newest = protocol.Trace(file)

        def keep(traced: protocol.Traced) -> None:
            nonlocal newest
            newest = traced.trace

        run = protocol.Run(
            next(self._run_ids),
            file,
            module.text,
            str(project_root(Path(file))),
            examples,
            overlays=dict(overlays or {}),
            observe=list(overlays or {}),
            typed=False,
            named=named,
            brief=brief,
            deadline=settings.deadline * (DEEP_TIMES if deep is not None else PROFILE_EVALUATIONS if profile is not None else 1),
            memory_limit=settings.memory_limit,
            allow=settings.allow,
            search=search,
            program=program,
            followed_for=followed_for,
            known=[protocol.ExampleRequest(each.target, each.expression, bool(each.evidence)) for each in known if each.error is None],
            profile=profile,
            deep=deep,
        )
        start = time.monotonic()
        try:
            finished = await self.worker.submit(run, keep, on_profile, on_report)
        except asyncio.CancelledError:
            self.worker.cancel(run.run_id)  # Nobody waits for it any more.
            raise
        if finished.outcome == "unavailable":
            raise Unavailable(finished.detail, "")
        self._worked += finished.seconds or time.monotonic() - start
        self._read.update(newest.files, finished.read, [file], search.users if search is not None else [])
        self._complete = self._complete and finished.outcome in LASTING
        self._hurried = self._hurried or finished.hurried
        return newest, finished


def _used_in(views: Sequence[protocol.Trace]) -> set[str]:
    """The classes that importing files are seen to use."""
    return {name for view in views for name in classes_used(view)}


def _lacking(module: Module, choice: Choice, only: str | None) -> list[str]:
    """The classes that no example is given for, or the one of them that is asked for."""
    return [name for name in without_example(module, choice) if only in (None, name, name.rpartition(".")[2])]


def _known_before(before: Analysed, module: Module, classes: Sequence[str]) -> list[protocol.Known]:
    """The examples of these classes before an edit, as far as the text that speaks for them still is the same."""
    found = FoundExamples(lambda file: None)
    found.keep(before.path, before.module, before.trace)
    return found.known(before.path, module, classes)


def _of_text(file: str, problems: Sequence[SyntaxProblem], choice: Choice) -> list[Finding]:
    """Returns the findings of a text before anything runs."""
    return [Finding("syntax", "error", each.message, each.span, file) for each in problems] + example_problems(file, choice)
