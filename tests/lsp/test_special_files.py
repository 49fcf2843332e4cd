"""Names in a workspace that stand for devices and pipes: nobody reads them, nobody waits for them, the hints are as ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")


@pytest.mark.parametrize("kind", ["pipe", "zero"])
async def test_a_server_starts_shows_and_ends_beside_them(tmp_path: Path, recipe: str, kind: str) -> None:
    for name in ("pyproject.toml", "other.py", "book.ipynb", "sub/pyproject.toml", "sub/other.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    editor = Editor(tmp_path)
    await editor.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_CACHE_DIR": str(tmp_path / "cache")})
    uri = editor.open("sub/net.py", "from . import other\n" + recipe.replace("# shapelens: Net()(f32[B:1024, 3, 32, 32])\n", ""))
    await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values())
    problem = f"{tmp_path / 'sub' / 'pyproject.toml'}: not a regular file"
    await editor.until(lambda: any(problem in line for line in editor.log))
    assert await editor.stop() == 0


async def test_a_device_that_is_opened_is_a_text_like_any_other(editor: Editor, recipe: str, broken: str) -> None:
    uri = editor.open_uri("file:///dev/zero", recipe)
    assert "→ [B, 10]" in (await editor.hints_when(uri)).values()
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
