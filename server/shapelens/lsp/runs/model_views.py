"""Profiles models as a whole for the view in an editor, once nothing else wants to run.

A request is answered from the newest analysis: at once with what its trace tells, and after a run with the rest. A run of a document goes
first, and ends a profile that is under way: it is made up for.
The newest profile is kept, and the formulas of its memory (`memory_by_size`), so that another optimizer or size is answered at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from shapelens import protocol
from shapelens.analysis.structure.largest_size import largest_size
from shapelens.analysis.structure.memory_by_size import SIZES, MemoryBySize, memory_by_size
from shapelens.analysis.structure.seen_layers import profile_of
from shapelens.analysis.structure.training_memory import OPTIMIZERS, training_memory
from shapelens.analysis.traces.shown import Shown, shown_for
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.lsp.workspace.workspace import Workspace
from shapelens.profiles import PROFILE_EVALUATIONS, MemoryProfile
from shapelens.report.model_document import ModelView
from shapelens.runner import Worker
from shapelens.source.autocast import autocast_of
from shapelens.source.optimizers import optimizer_of
from shapelens.source.positions import Lines

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ModelOptions:
    """Holds what the user has chosen in the view. sizes: of named dims, other than the example's; optimizer: "" for the program's own."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    optimizer: str = ""
    device: str = "cuda"
    autocast: str = ""  # "bfloat16" | "float16" | "none"; "" for the program's own
    example: int = 0  # which one of the class's
    until: str = ""  # what the answer has: "shapes": what a trace tells, if it does; "steps": all but operations and memory; "": all
    only_memory: str = ""  # a named dim: only the memory of a training step is wanted, as other sizes of that dim may be
    limit: int = 0  # bytes: the largest size of that dim that fits them is wanted too; 0 for none


@dataclass(frozen=True)
class ViewedModel:
    """The answer. view: None where there is nothing to show, and `message` says why."""

    version: int  # of the document's text
    view: ModelView | None = None
    message: str = ""
    largest: int | None = None  # the size that was asked for
    without_example: str = ""  # the class that has none


_Others = tuple[str, tuple[tuple[str, int], ...]]  # a dim that changes, and the sizes of the others


@dataclass
class _Profiled:
    """The newest profile, of an analysis and example with some sizes; `formulas` of its memory, by the dim that changes and
    the sizes of the others; None where there is none."""

    analysis: Analysis
    example: tuple[str, str]
    sizes: dict[str, int]
    device: str
    autocast: str
    profile: protocol.ModelProfile
    formulas: dict[_Others, MemoryBySize | None] = field(default_factory=dict)
    largest: dict[tuple[_Others, str, int], int] = field(default_factory=dict)  # sizes, by optimizer and limit too

    def is_of(self, analysis: Analysis, shown: Shown, options: ModelOptions) -> bool:
        """True if it is of this example, with the sizes that it has."""
        example = shown.example.file, shown.example.expression
        chosen = example, options.device, options.autocast
        return self.analysis.shows_the_same(analysis) and (self.example, self.device, self.autocast) == chosen


@dataclass
class _Request:
    document: Document
    class_name: str
    options: ModelOptions
    answer: asyncio.Future[ViewedModel | None]


class ModelViews:
    """Answers one request after the other. Of each document the newest is answered, older ones with None."""

    def __init__(
        self, documents: Mapping[str, Document], workspace: Workspace, parsed_files: ParsedFiles, run_ids: itertools.count[int]
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._parsed_files = parsed_files
        self._run_ids = run_ids
        self._requests: dict[tuple[Document, bool], _Request] = {}  # by whether only memory is wanted
        self._under_way: tuple[Worker, int] | None = None
        self._interrupted = False
        self._latest: _Profiled | None = None

    @property
    def is_wanted(self) -> bool:
        """True if there is a request to answer."""
        return bool(self._requests)

    def want(self, document: Document, class_name: str, options: ModelOptions) -> asyncio.Future[ViewedModel | None]:
        """Ask for the model of a class. The answer is None where a later request of the same document takes its place."""
        answer: asyncio.Future[ViewedModel | None] = asyncio.get_running_loop().create_future()
        seen = self._seen(document, class_name, options) if options.until == "shapes" else None
        if seen is not None:
            answer.set_result(seen)
            return answer
        key = document, bool(options.only_memory)
        self._forget(key)
        self._requests[key] = _Request(document, class_name, options, answer)
        return answer

    def forget(self, document: Document) -> None:
        """Answer a document's requests with None, if there are any."""
        for only_memory in (False, True):
            self._forget((document, only_memory))

    def _forget(self, key: tuple[Document, bool]) -> None:
        before = self._requests.pop(key, None)
        if before is not None and not before.answer.done():
            before.answer.set_result(None)

    def give_up(self) -> None:
        """Answer all requests with None."""
        for key in list(self._requests):
            self._forget(key)

    def interrupt(self) -> None:
        """Something else wants to run. The request under way stays."""
        self._interrupted = True
        if self._under_way is not None:
            worker, run_id = self._under_way
            worker.cancel(run_id)

    async def answer(self) -> None:
        """Answer the request that came last, unless that is interrupted."""
        key, request = next(reversed(self._requests.items()))
        self._interrupted = False
        found = await self._view(request)
        if self._interrupted or self._requests.get(key) is not request:
            return
        del self._requests[key]
        if not request.answer.done():
            request.answer.set_result(found)

    async def viewed(self, document: Document, class_name: str, options: ModelOptions) -> ViewedModel | None:
        """Returns what a request would be answered with; None where something else wants to run. For those that nobody waits for."""
        return await self.unless_interrupted(
            self._view(_Request(document, class_name, options, asyncio.get_running_loop().create_future()))
        )

    async def unless_interrupted(self, work: Awaitable[_Result]) -> _Result | None:
        """Returns what profiles give that nobody waits for; None where something else wants to run."""
        self._interrupted = False
        found = await work
        return None if self._interrupted else found

    def _seen(self, document: Document, class_name: str, options: ModelOptions) -> ViewedModel | None:
        """Returns what is known of a class without a run; None where that is not enough to show it."""
        analysis = document.analysis
        shown = shown_for(analysis.trace, class_name, options.example) if analysis is not None and analysis.trace is not None else None
        if analysis is None or analysis.trace is None or shown is None or not options.sizes.items() <= shown.example.dims.items():
            return None
        latest = self._latest
        if latest is not None and latest.is_of(analysis, shown, options) and latest.sizes == options.sizes:
            return self._viewed(document, class_name, options, analysis, shown, latest.profile)
        found = profile_of(analysis.trace, shown)
        return self._viewed(document, class_name, options, analysis, shown, found, has_graph=False) if found is not None else None

    async def _view(self, request: _Request) -> ViewedModel:
        document, analysis = request.document, request.document.analysis
        if analysis is None or analysis.trace is None:
            return ViewedModel(document.version, message="ShapeLens has not seen this file yet")
        if not request.class_name:
            return ViewedModel(analysis.version, message="there is no nn.Module class in this file")
        shown = shown_for(analysis.trace, request.class_name, request.options.example)
        if shown is None:
            if request.class_name not in {name for each in analysis.module.classes for name in (each.name, each.qualname)}:
                return ViewedModel(analysis.version, message=f"{request.class_name} is not known to be an nn.Module class")
            message = f"{request.class_name} has no example, and is not called by one"
            return ViewedModel(analysis.version, message=message, without_example=request.class_name)
        if request.options.only_memory:
            return await self._memory(request, analysis, shown)
        profile = await self._profile(document, analysis, shown, request)
        return self._viewed(document, request.class_name, request.options, analysis, shown, profile)

    def _viewed(
        self,
        document: Document,
        class_name: str,
        options: ModelOptions,
        analysis: Analysis,
        shown: Shown,
        profile: protocol.ModelProfile,
        *,
        has_graph: bool = True,
    ) -> ViewedModel:
        optimizer = self._optimizer(options, analysis, shown)

        def lines_of(file: str) -> Lines | None:
            module = analysis.module if file == document.path else self._parsed_files(file)
            return module.lines if module is not None else None

        view = ModelView.of(
            document.path,
            class_name,
            shown,
            profile,
            analysis.findings,
            lines_of,
            optimizer,
            options.device,
            self._autocast(options, analysis, shown),
            has_graph=has_graph,
        )
        return ViewedModel(analysis.version, view)

    async def _memory(self, request: _Request, analysis: Analysis, shown: Shown) -> ViewedModel:
        """The memory of a training step, and of nothing else, for other sizes of a dim: by its formula, or else by a run."""
        document, options, dim = request.document, request.options, request.options.only_memory
        if self._latest is None or not self._latest.is_of(analysis, shown, options):
            await self._profile(document, analysis, shown, request)
        latest = self._latest
        if latest is None or latest.profile.training is None or latest.profile.training.error or dim not in latest.profile.dims:
            return ViewedModel(analysis.version, message="its training step cannot be run")
        sizes = {**latest.profile.dims, **options.sizes}
        others = dim, tuple(sorted((name, size) for name, size in sizes.items() if name != dim))
        if others not in latest.formulas:
            first = max(2, latest.profile.dims[dim])  # A size of one may be broadcast.
            found = []
            for size in range(first, first + SIZES):
                memory = (await self._run(document, analysis, shown, {**sizes, dim: size}, options, memory_only=True)).training
                if self._interrupted:
                    return ViewedModel(analysis.version)  # Made up for.
                if memory is None or memory.error:
                    break
                found.append(memory)
            latest.formulas[others] = memory_by_size(first, found)
        optimizer = self._optimizer(options, analysis, shown)[0]

        async def run_at(size: int) -> MemoryProfile | None:
            return (await self._run(document, analysis, shown, {**sizes, dim: size}, options, memory_only=True)).training

        async def memory_at(size: int) -> MemoryProfile | None:
            formula = latest.formulas[others]
            known = formula.at(size) if formula is not None else None
            return known if known is not None else await run_at(size)

        def peak_of(memory: MemoryProfile | None) -> int | None:
            return None if memory is None or memory.error else training_memory(memory, optimizer, options.device).peak

        async def peak_at(size: int) -> int | None:
            return peak_of(await memory_at(size))

        async def is_right(size: int) -> bool:
            formula = latest.formulas[others]
            return formula is None or formula.at(size) is None or peak_of(formula.at(size)) == peak_of(await run_at(size))

        asked = others, optimizer, options.limit
        if options.limit and asked not in latest.largest:
            size = latest.profile.dims[dim]
            peak = training_memory(latest.profile.training, optimizer, options.device).peak
            largest = await largest_size(options.limit, size, peak, peak_at)
            if not (await is_right(largest) and await is_right(largest + 1)):
                latest.formulas[others] = None  # The model goes another way with sizes that are far from those of the formula.
                largest = await largest_size(options.limit, size, peak, peak_at)
            if self._interrupted:
                return ViewedModel(analysis.version)  # Made up for.
            latest.largest[asked] = largest
        training = await memory_at(sizes[dim])
        return replace(
            self._viewed(
                document, request.class_name, options, analysis, shown, replace(latest.profile, training=training, inference=None)
            ),
            largest=latest.largest.get(asked),
        )

    async def _profile(self, document: Document, analysis: Analysis, shown: Shown, request: _Request) -> protocol.ModelProfile:
        options, latest = request.options, self._latest
        if latest is not None and latest.is_of(analysis, shown, options) and latest.sizes == options.sizes:
            return latest.profile

        def first(profile: protocol.ModelProfile) -> None:
            if options.until and not profile.is_complete and not request.answer.done():
                request.answer.set_result(self._viewed(document, request.class_name, options, analysis, shown, profile))

        found = await self._run(document, analysis, shown, options.sizes, options, first=first)
        if not self._interrupted:
            self._latest = _Profiled(
                analysis, (shown.example.file, shown.example.expression), dict(options.sizes), options.device, options.autocast, found
            )
        return found

    async def _run(
        self,
        document: Document,
        analysis: Analysis,
        shown: Shown,
        sizes: Mapping[str, int],
        options: ModelOptions,
        *,
        memory_only: bool = False,
        first: Callable[[protocol.ModelProfile], None] = lambda profile: None,
    ) -> protocol.ModelProfile:
        request = protocol.ProfileRequest(dict(sizes), options.device, self._autocast(options, analysis, shown)[0], memory_only)
        return await self.profile(document, analysis, shown.example, request, first)

    async def profile(
        self,
        document: Document,
        analysis: Analysis,
        example: protocol.ExampleRun,
        request: protocol.ProfileRequest,
        first: Callable[[protocol.ModelProfile], None] = lambda profile: None,
    ) -> protocol.ModelProfile:
        """The model of an example as a whole; `first` is told what is known of it before the rest. An error where it is interrupted."""
        file = example.file or document.path
        module = analysis.module if file == document.path else self._parsed_files(file)
        if module is None:
            return protocol.ModelProfile(error=f"{file} cannot be read")
        if self._interrupted:
            return protocol.ModelProfile(error="something else wants to run")
        worker = self._workspace.only_worker(document)
        run = protocol.Run(
            next(self._run_ids),
            file,
            module.text,
            self._workspace.root(document),
            [protocol.ExampleRequest(example.target, example.expression)],
            overlays={each.path: each.text for each in self._documents.values() if each.path != file and not each.saved},
            deadline=PROFILE_EVALUATIONS * analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
            allow=analysis.settings.allow,
            background=True,
            profile=request,
        )
        if file != document.path:
            run.overlays[document.path] = analysis.module.text
        found: list[protocol.ModelProfile] = []

        def profiled(profile: protocol.ModelProfile) -> None:
            found.append(profile)
            first(profile)

        self._under_way = worker, run.run_id
        finished = await worker.submit(run, lambda traced: None, profiled)
        self._under_way = None
        self._interrupted = self._interrupted or finished.outcome == "cancelled"
        reason = finished.detail or finished.outcome
        return found[-1].cut_short(reason) if found else protocol.ModelProfile(error=reason)

    def _optimizer(self, options: ModelOptions, analysis: Analysis, shown: Shown) -> tuple[str, str]:
        if options.optimizer in OPTIMIZERS:
            return options.optimizer, "option"
        return self._of_program(optimizer_of, analysis, shown, "AdamW")

    def _autocast(self, options: ModelOptions, analysis: Analysis, shown: Shown) -> tuple[str, str]:
        """Returns what the model is called under, "" for no autocast, and who says so."""
        if options.autocast:
            return "" if options.autocast == "none" else options.autocast, "option"
        return self._of_program(autocast_of, analysis, shown, "")

    def _of_program(self, read: Callable[[str], str | None], analysis: Analysis, shown: Shown, otherwise: str) -> tuple[str, str]:
        """Returns what is read in the text of the document, or of the file that calls the model."""
        call = shown.example.call
        for module in (analysis.module, self._parsed_files(call.file) if call is not None else None):
            found = read(module.text) if module is not None else None
            if found is not None:
                return found, "program"
        return otherwise, "default"
