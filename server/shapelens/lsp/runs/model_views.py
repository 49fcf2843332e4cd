"""Models as a whole, for the view in an editor: profiled by a run of their own once nothing else is to be run that shows something.

A request is answered from the newest analysis. A run of a document goes first, and ends a profile that is under way: it is made up for.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from shapelens import protocol
from shapelens.analysis.structure.choose import Shown, shown_for
from shapelens.analysis.structure.training_memory import OPTIMIZERS
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.parsed_files import ParsedFiles
from shapelens.lsp.workspace.workspace import Workspace
from shapelens.report.model_document import ModelView
from shapelens.runner import Worker
from shapelens.source.optimizers import optimizer_of
from shapelens.source.positions import Lines


@dataclass(frozen=True)
class ModelOptions:
    """What the user has chosen in the view. sizes: of named dims, other than the example's; optimizer: "" for the program's own."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    optimizer: str = ""
    device: str = "cuda"
    example: int = 0  # which one of the class's


@dataclass(frozen=True)
class ViewedModel:
    """The answer. view: None where there is nothing to show, and `message` says why."""

    version: int  # of the document's text
    view: ModelView | None = None
    message: str = ""


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
        self._requests: dict[Document, _Request] = {}
        self._under_way: tuple[Worker, int] | None = None
        self._interrupted = False

    @property
    def is_wanted(self) -> bool:
        """Whether there is a request to answer."""
        return bool(self._requests)

    def want(self, document: Document, class_name: str, options: ModelOptions) -> asyncio.Future[ViewedModel | None]:
        """Ask for the model of a class. The answer is None where a later request of the same document takes its place."""
        answer: asyncio.Future[ViewedModel | None] = asyncio.get_running_loop().create_future()
        self.forget(document)
        self._requests[document] = _Request(document, class_name, options, answer)
        return answer

    def forget(self, document: Document) -> None:
        """Answer a document's request with None, if there is one."""
        before = self._requests.pop(document, None)
        if before is not None and not before.answer.done():
            before.answer.set_result(None)

    def give_up(self) -> None:
        """Answer all requests with None."""
        for document in list(self._requests):
            self.forget(document)

    def interrupt(self) -> None:
        """Something else wants to run. The request under way stays."""
        self._interrupted = True
        if self._under_way is not None:
            worker, run_id = self._under_way
            worker.cancel(run_id)

    async def answer(self) -> None:
        """Answer the request that came last, unless that is interrupted."""
        document = next(reversed(self._requests))
        request = self._requests[document]
        self._interrupted = False
        found = await self._view(request)
        if self._interrupted or self._requests.get(document) is not request:
            return
        del self._requests[document]
        if not request.answer.done():
            request.answer.set_result(found)

    async def _view(self, request: _Request) -> ViewedModel:
        document, analysis = request.document, request.document.analysis
        if analysis is None or analysis.trace is None:
            return ViewedModel(document.version, message="ShapeLens has not seen this file yet")
        if not request.class_name:
            return ViewedModel(analysis.version, message="there is no nn.Module class in this file")
        shown = shown_for(analysis.trace, request.class_name, request.options.example)
        if shown is None:
            return ViewedModel(analysis.version, message=f"{request.class_name} has no example, and is not called by one")
        profile = await self._profile(document, analysis, shown, request.options)
        optimizer = _optimizer(request.options.optimizer, analysis)

        def lines_of(file: str) -> Lines | None:
            module = analysis.module if file == document.path else self._parsed_files(file)
            return module.lines if module is not None else None

        view = ModelView.of(
            document.path,
            request.class_name,
            shown,
            profile,
            analysis.findings,
            lines_of,
            optimizer,
            request.options.device,
        )
        return ViewedModel(analysis.version, view)

    async def _profile(self, document: Document, analysis: Analysis, shown: Shown, options: ModelOptions) -> protocol.ModelProfile:
        example = shown.example
        file = example.file or document.path
        module = analysis.module if file == document.path else self._parsed_files(file)
        if module is None:
            return protocol.ModelProfile(error=f"{file} cannot be read")
        worker = self._workspace.only_worker(document)
        run = protocol.Run(
            next(self._run_ids),
            file,
            module.text,
            self._workspace.root(document),
            [protocol.ExampleRequest(example.target, example.expression)],
            overlays={each.path: each.text for each in self._documents.values() if each.path != file and not each.saved},
            deadline=2 * analysis.settings.deadline,
            memory_limit=analysis.settings.memory_limit,
            background=True,
            profile=protocol.ProfileRequest(dict(options.sizes), options.device),
        )
        if file != document.path:
            run.overlays[document.path] = analysis.module.text
        found: list[protocol.ModelProfile] = []
        self._under_way = worker, run.run_id
        finished = await worker.submit(run, lambda traced: None, found.append)
        self._under_way = None
        self._interrupted = self._interrupted or finished.outcome == "cancelled"
        return found[0] if found else protocol.ModelProfile(error=finished.detail or finished.outcome)


def _optimizer(chosen: str, analysis: Analysis) -> tuple[str, str]:
    if chosen in OPTIMIZERS:
        return chosen, "option"
    found = optimizer_of(analysis.module.text)
    return (found, "program") if found is not None else ("AdamW", "default")
