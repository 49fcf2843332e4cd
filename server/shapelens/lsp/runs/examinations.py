"""Examples of an open file that are run for real when the user asks for that: what `shapelens check --deep` says beside all else.

It takes seconds, on numbers, so it has a worker of its own, and hints never wait for it. An edit ends it, and takes back what it has found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shapelens.batch import Analysed, Batch, Unavailable
from shapelens.examples.choose import Choice
from shapelens.lsp.documents.document import Document
from shapelens.lsp.runs.client import Client
from shapelens.lsp.workspace.workspace import Workspace


@dataclass(frozen=True)
class Examination:
    """Holds what became of it, in one sentence, and how much was found; None where it was not done."""

    message: str
    found: int | None = None


class Examinations:
    """Of each document one at a time: who asks once more has it begin anew."""

    def __init__(self, documents: Mapping[str, Document], workspace: Workspace, client: Client) -> None:
        self._documents = documents
        self._workspace = workspace
        self._client = client
        self._under_way: dict[Document, asyncio.Task[Examination]] = {}

    async def examine(self, document: Document) -> Examination:
        """Run the examples of a document for real and publish what they tell. Cancelled where the client gives up."""
        self.end(document)
        task = self._under_way[document] = asyncio.create_task(self._examine(document))
        self._client.progress(f"Examining {Path(document.path).name} with numbers")
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            if self._under_way.get(document) is task:
                del self._under_way[document]
            if not self._under_way:
                self._client.progress(None)
        return Examination("It was ended, as the file changed or it was asked for once more.") if task.cancelled() else task.result()

    def end(self, document: Document) -> None:
        """The document was edited or closed: what is known of it holds no more."""
        task = self._under_way.pop(document, None)
        if task is not None:
            task.cancel()

    async def stop(self) -> None:
        """End all of them, and wait until their workers are gone."""
        tasks = list(self._under_way.values())
        for document in list(self._under_way):
            self.end(document)
        if tasks:
            await asyncio.wait(tasks)

    async def _examine(self, document: Document) -> Examination:
        analysis = document.analysis
        if analysis is None or analysis.trace is None or analysis.module.text != document.text:
            return Examination("Nothing is known of this text yet: it has to run first.")
        analysed = Analysed(document.path, analysis.module, analysis.settings, Choice(), analysis.trace)
        python, root = self._workspace.worker(document).interpreter, Path(self._workspace.root(document) or Path(document.path).parent)
        unsaved = {each.path: each.text for each in self._documents.values() if each is not document and not each.saved}
        try:
            async with Batch(python, root=root) as batch:
                found = await batch.run_for_real(analysed, unsaved)
        except Unavailable as why:
            return Examination(str(why))
        known = {(each.code, each.span.start.line) for each in document.published_now()}
        found = [each for each in found if (each.code, each.span.start.line) not in known]
        document.note_examined(found)
        self._client.publish(document, document.published_now())
        return Examination(_told(len(found), analysed), len(found))


def _told(found: int, analysed: Analysed) -> str:
    count = f"{found} finding{'' if found == 1 else 's'}" if found else "Nothing was found"
    return "; ".join([count, *(f"not run: {each}" for each in analysed.not_run)]) + "."
