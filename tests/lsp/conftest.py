"""Two servers for the whole folder: one as VS Code speaks to it (utf-16), one for a client that prefers utf-8."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

RECIPE = (Path(__file__).parents[2] / "fixtures" / "recipe" / "recipe.py").read_text()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _utf16_editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("workspace"))
    await editor.start("--interpreter", TORCH_PYTHON)
    yield editor
    assert await editor.stop() == 0


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _utf8_editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("workspace"), "utf-8", "utf-16")
    await editor.start("--interpreter", TORCH_PYTHON)
    yield editor
    assert await editor.stop() == 0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def _watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("workspace"))
    await editor.start("--interpreter", TORCH_PYTHON, "--log-level", "debug")
    yield editor
    assert await editor.stop() == 0


@pytest.fixture
def watched(_watched: Editor) -> Iterator[Editor]:
    """A client with the server's log of its runs, without open documents."""
    yield _watched
    _watched.close_all()


@pytest.fixture
def editor(_utf16_editor: Editor) -> Iterator[Editor]:
    """A client like VS Code, without open documents."""
    yield _utf16_editor
    _utf16_editor.close_all()


@pytest.fixture
def utf8_editor(_utf8_editor: Editor) -> Iterator[Editor]:
    """A client that counts bytes, without open documents."""
    yield _utf8_editor
    _utf8_editor.close_all()


@pytest.fixture
def recipe() -> str:
    """The text of the recipe network, with its directive."""
    return RECIPE


@pytest.fixture
def broken(recipe: str) -> str:
    """The recipe network with a wrong number in fc1."""
    return recipe.replace("16 * 5 * 5", "16 * 6 * 6")
