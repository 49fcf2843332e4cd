"""Builds the site of the documentation into site/: the README is its first page, docs/ are the others. A warning or a dead link ends it.

Files of the repository that pages link to, pictures and schemas, are copied beside them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "docs"  # `docs_dir` of zensical.toml
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def gather(source: Path = SOURCE) -> None:
    """Copies the pages into a folder of their own, with links that hold there.

    Raises FileNotFoundError for a link to a file that is not there.
    """
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    pages = {ROOT / "README.md": "index.md", ROOT / "server" / "ARCHITECTURE.md": "architecture.md"}
    pages |= {ROOT / f"{name}.md": f"{name.lower()}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")}
    pages |= {ROOT / "vscode-extension" / "CHANGELOG.md": "extension-changelog.md"}
    pages |= {page: page.name for page in sorted((ROOT / "docs").glob("*.md"))}
    for page, name in pages.items():
        text = page.read_text(encoding="utf-8")
        text = _LINK.sub(lambda link, page=page: link[1] + _target(link[2], page, pages, source) + link[3], text)
        (source / name).write_text(text, encoding="utf-8")


def _target(link: str, page: Path, pages: dict[Path, str], source: Path) -> str:
    """Where a link of a page leads to on the site; a file that is no page is copied there."""
    if "://" in link or link.startswith("mailto:"):
        return link
    file = (page.parent / link).resolve()
    if file in pages:
        return pages[file]
    if not file.is_file():
        raise FileNotFoundError(f"{page.relative_to(ROOT)} links to {link}, which is not there")
    copied = source / "files" / file.name
    copied.parent.mkdir(exist_ok=True)
    shutil.copyfile(file, copied)
    return f"files/{file.name}"


def main() -> int:
    """Builds the site. Returns the exit code of the generator: not 0 if it has anything to say."""
    try:
        gather()
    except FileNotFoundError as error:
        sys.stderr.write(f"docs: {error}\n")
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(ROOT / "zensical.toml")]
    return subprocess.run(command, check=False, env={**os.environ, "NO_COLOR": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
