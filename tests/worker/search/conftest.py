"""Documents, which are forgotten after each test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from worker.search.documents import Document


@pytest.fixture
def document(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Document]]:
    made = []

    def load(text: str) -> Document:
        name = f"document_{abs(hash(request.node.name))}_{len(made)}"
        made.append(name)
        return Document(name, text, tmp_path)

    yield load
    for name in made:
        del sys.modules[name]
