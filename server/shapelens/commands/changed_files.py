"""Which files `check --changed` looks at: those that git says have changed, and the files of the project that import them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from shapelens.commands import RefusedRequest
from shapelens.examples.importing_files import ImportingFiles
from shapelens.project_scope import ProjectScope


def changed_since(reference: str, paths: list[Path]) -> set[Path]:
    """The files below the paths that differ from a commit, those that git does not know yet included. Raises RefusedRequest."""
    changed: set[Path] = set()
    for folder in dict.fromkeys(path if path.is_dir() else path.parent for path in paths):
        top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
        if reference.startswith("-"):
            raise RefusedRequest(f"{reference} is not a commit")
        here = str(folder.absolute())
        differing = _git(folder, "diff", "--name-only", "-z", "--diff-filter=d", "--no-ext-diff", f"{reference}^{{commit}}", "--", here)
        new = _git(folder, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", here)
        changed |= {top / name for name in (differing + new).split("\0") if name}
    return {file.resolve() for file in changed}


def with_importing(changed: set[Path], files: list[Path], scope: ProjectScope) -> list[Path]:
    """Those of `files` that have changed, or import what has."""
    importing_files = ImportingFiles(unchanging=True)
    wanted = set(changed)
    for file in changed:
        if file.suffix == ".py" and file.exists():
            root = str(scope.project_root(file))
            wanted |= {Path(each.path).resolve() for each in importing_files.of(str(file), root, scope.settings(file.parent), {})}
    return [file for file in files if file.resolve() in wanted]


def _git(folder: Path, *arguments: str) -> str:
    # Configuration of a repository can name programs; a diff of names and a listing start none.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        raise RefusedRequest("--changed needs git, which is not installed") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise RefusedRequest(f"git: {said[0].removeprefix('fatal: ') if said else 'it failed without a word'}")
    return done.stdout
