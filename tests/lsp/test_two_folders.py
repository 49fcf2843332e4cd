"""Two workspace folders, each with a virtual environment of its own: what is shown of a file comes from the environment of its folder."""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from pathlib import Path

import psutil

from interpreters import TORCH_PYTHON
from lsp.editor import Editor


def environment(folder: Path, size: int) -> Path:
    """A virtual environment with the tests' torch, and a package that only it has. Its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    paths = "import sys; print(*[path for path in sys.path if 'site-packages' in path], sep=chr(10))"
    (packages / "torch_of_the_tests.pth").write_text(subprocess.check_output([TORCH_PYTHON, "-c", paths], text=True))
    (packages / "sizes_here.py").write_text(f"SIZE = {size}\n")
    return folder / "bin" / "python"


async def test_each_folder_has_its_own_environment(tmp_path: Path, recipe: str, broken: str) -> None:
    editor = Editor(tmp_path)
    editor.folders = [tmp_path / "left", tmp_path / "right"]
    pythons = [environment(folder / ".venv", size) for folder, size in zip(editor.folders, (10, 20), strict=True)]
    await editor.start(env={"SHAPELENS_CACHE_DIR": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": ""})
    text = recipe.replace("import torch\n", "import torch\nfrom sizes_here import SIZE\n", 1).replace(
        "nn.Linear(84, 10)", "nn.Linear(84, SIZE)"
    )
    assert text.count("SIZE") == 2
    uris = [editor.open(f"{folder.name}/net.py", text) for folder in editor.folders]
    for uri, size in zip(uris, (10, 20), strict=True):
        await editor.hints_when(uri, lambda hints, size=size: f"→ [B, {size}]" in hints.values())
    running = {psutil.Process(pid).cmdline()[0] for pid in editor.workers()}
    assert running == {str(python) for python in pythons}
    for uri, size in zip(uris, (10, 20), strict=True):
        editor.set_text(uri, text.replace("16 * 5 * 5", "16 * 6 * 6"))
        assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
        editor.set_text(uri, text)
        await editor.hints_when(uri, lambda hints, size=size: f"→ [B, {size}]" in hints.values())
    server = psutil.Process(editor.pid)
    family = [server, *server.children(recursive=True)]
    assert await editor.stop() == 0
    assert psutil.wait_procs(family, timeout=10)[1] == []


async def test_the_caches_are_cleared_by_a_command(tmp_path: Path, recipe: str, broken: str) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "net.py").write_text(recipe)
    first, editor = Editor(tmp_path), Editor(tmp_path)
    await first.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_CACHE_DIR": str(cache)})
    await first.hints_when(first.open("net.py", recipe))
    assert await first.stop() == 0
    kept = {path for path in cache.rglob("*") if path.is_file()}
    assert kept
    await editor.start("--interpreter", TORCH_PYTHON, env={"SHAPELENS_CACHE_DIR": str(cache)})
    uri = editor.open("net.py", recipe)
    await editor.hints_when(uri)
    before = editor.workers()
    said = await editor.execute("shapelens.emptyCache")
    assert said.endswith(f" MB removed from {cache}")
    editor.set_text(uri, broken)
    assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
    assert set(editor.workers()).isdisjoint(before), "what the worker knows is forgotten as well"
    assert await editor.stop() == 0
