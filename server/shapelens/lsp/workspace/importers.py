"""Looks for the files that import a document, in threads, as a large project has thousands: how they use its classes is evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from shapelens.examples.importing_files import ImportingFile, ImportingFiles
from shapelens.lsp.documents.document import Document
from shapelens.lsp.workspace.workspace import Workspace

# Once its worker is ready, a run does not wait for longer than this for the files to be found; their evidence then comes with the next one.
LOOK_FOR_USERS = 0.15
# Whatever a new client asks first comes before the files that nobody has opened.
LOOK_AROUND_AFTER = 0.5


class Importers:
    """Knows which files import a document, for as long as no file is opened, closed or saved."""

    def __init__(self, documents: Mapping[str, Document], workspace: Workspace) -> None:
        self._documents = documents
        self._workspace = workspace
        self._importing_files = ImportingFiles()
        self._looking: WeakKeyDictionary[Document, asyncio.Task[list[ImportingFile]]] = WeakKeyDictionary()
        self._looking_around: asyncio.Task[None] | None = None

    def look_around(self, folders: list[str]) -> None:
        """Read the imports of all files in some folders ahead of time."""

        async def look() -> None:
            await asyncio.sleep(LOOK_AROUND_AFTER)
            for folder in folders:
                await asyncio.to_thread(self._importing_files.look_around, folder)

        self._looking_around = asyncio.create_task(look())

    async def of(self, document: Document, *, patient: bool = False) -> list[ImportingFile]:
        """The files that import a document; none as yet if they are not found in time, unless one is `patient`."""
        if document.importers is None:
            worker = self._workspace.only_worker(document)
            looking = self._looking.get(document)
            if looking is None or looking.done():
                texts = {each.path: each.text for each in self._documents.values() if not each.saved}
                names = [cls.name for cls in document.module.classes]
                settings = self._workspace.configuration.of(document)
                folder = self._workspace.root(document) or str(Path(document.path).parent)
                looking = asyncio.create_task(asyncio.to_thread(self._importing_files.of, document.path, folder, settings, texts, names))
                self._looking[document] = looking
            if not patient:
                ready = asyncio.ensure_future(worker.until_ready())
                await asyncio.wait({looking, ready}, return_when=asyncio.FIRST_COMPLETED)
                ready.cancel()
            await asyncio.wait({looking}, timeout=None if patient else LOOK_FOR_USERS)
            if looking.done():
                self._looking.pop(document, None)
                document.found_importers(looking.result())
        return document.importers or []
