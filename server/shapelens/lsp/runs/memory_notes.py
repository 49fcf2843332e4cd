"""Says what training steps take of memory, computed once nothing else wants to run: by the hover and the lens of a class, and by a
warning where a step does not fit the device.

Which classes: those whose hover was asked for, and where the settings name the memory of a device all that have an example. A note holds
for one analysis; an edit that makes another one takes it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from shapelens.analysis.shapes import memory_text
from shapelens.analysis.structure.device_fit import findings_of_memory
from shapelens.analysis.traces.shown import shown_for
from shapelens.lsp.documents.analysis import Analysis
from shapelens.lsp.documents.document import Document
from shapelens.lsp.runs.client import Client
from shapelens.lsp.runs.model_views import ModelOptions, ModelViews, ViewedModel
from shapelens.lsp.workspace.parsed_files import ParsedFiles

_WARNINGS = ""  # in the place of a class


@dataclass
class _Notes:
    analysis: Analysis
    wanted: list[str] = field(default_factory=list)  # classes
    by_class: dict[str, tuple[str, str]] = field(default_factory=dict)  # an example, and what is said of it: "" where nothing can be


class MemoryNotes:
    """Notes on the classes of open documents."""

    def __init__(self, documents: Mapping[str, Document], model_views: ModelViews, parsed_files: ParsedFiles, client: Client) -> None:
        self._documents = documents
        self._model_views = model_views
        self._parsed_files = parsed_files
        self._client = client
        self._notes: WeakKeyDictionary[Document, _Notes] = WeakKeyDictionary()

    def of(self, document: Document) -> dict[str, str]:
        """Returns what is said, by example."""
        notes = self._of(document)
        return {example: text for example, text in notes.by_class.values() if text} if notes is not None else {}

    def want(self, document: Document, class_name: str) -> None:
        """Somebody looks at this class."""
        notes = self._of(document)
        if notes is not None and class_name not in notes.wanted:
            notes.wanted.append(class_name)

    def next(self) -> tuple[Document, str] | None:
        """A document and a class whose note is missing; "" for the warnings of the document."""
        for document in self._documents.values():
            notes = self._of(document)
            if notes is None:
                continue
            analysis = notes.analysis
            is_known = analysis.settings.device_memory and analysis.named
            every = [cls.qualname for cls in analysis.module.classes] if is_known else []
            is_over = analysis.named or not analysis.runs_by_itself
            every += [_WARNINGS] if (analysis.settings.device_memory and is_over) or document.without_room else []
            for class_name in [*notes.wanted, *every]:
                if class_name not in notes.by_class:
                    return document, class_name
        return None

    async def add(self, document: Document, class_name: str) -> None:
        """Compute a note, unless that is interrupted, and have it shown."""
        notes = self._of(document)
        if notes is not None and class_name == _WARNINGS:
            await self._warn(document, notes)
            return
        shown = shown_for(notes.analysis.trace, class_name) if notes is not None and notes.analysis.trace is not None else None
        if notes is None or shown is None or shown.path or shown.example.file:
            self.leave_out(document, class_name)
            return
        settings = notes.analysis.settings
        dim = next(iter(shown.example.dims), "") if settings.device_memory else ""
        viewed = await self._model_views.viewed(document, class_name, ModelOptions(only_memory=dim, limit=settings.device_memory))
        if viewed is not None and viewed.version == notes.analysis.version:
            notes.by_class[class_name] = shown.example.expression, _text(viewed, dim, settings.device_memory)
            self._client.refresh()

    async def _warn(self, document: Document, notes: _Notes) -> None:
        analysis = notes.analysis
        assert analysis.trace is not None
        profile = partial(self._model_views.profile, document, analysis)
        work = findings_of_memory(analysis.module, analysis.trace, analysis.settings, self._parsed_files, profile)
        found = await self._model_views.unless_interrupted(work)
        if found is None or analysis.module.text != document.text:
            return
        notes.by_class[_WARNINGS] = "", ""
        if found or document.without_room:
            document.note_without_room(found)
            self._client.publish(document, document.published_now())

    def leave_out(self, document: Document, class_name: str) -> None:
        """Say nothing of a class."""
        notes = self._of(document)
        if notes is not None:
            notes.by_class[class_name] = "", ""

    def _of(self, document: Document) -> _Notes | None:
        analysis = document.analysis
        if analysis is None or analysis.trace is None:
            return None
        notes = self._notes.get(document)
        if notes is None or not notes.analysis.shows_the_same(analysis):
            notes = self._notes[document] = _Notes(analysis)
        notes.analysis = analysis
        return notes


def _text(viewed: ViewedModel, dim: str, limit: int) -> str:
    training = viewed.view.training if viewed.view is not None else None
    if viewed.view is None or training is None or training.error:
        return ""
    text = f"training step {memory_text(training.peak)} ({viewed.view.optimizer})"
    if not dim or viewed.largest is None:
        return text
    return f"{text}, " + (
        f"{dim} ≤ {viewed.largest} fits {memory_text(limit)}" if viewed.largest else f"no {dim} fits {memory_text(limit)}"
    )
