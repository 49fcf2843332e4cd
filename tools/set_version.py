"""Give the project another version, in all places that say it: the server, the extension, and the headings of both changelogs.

python tools/set_version.py 0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each file, and the text around the version in it.
PLACES = (
    ("server/shapelens/__init__.py", r'(?<=__version__ = ")[^"]+'),
    ("vscode-extension/package.json", r'(?<=\n  "version": ")[^"]+'),
    (
        "vscode-extension/package-lock.json",
        r'(?<="name": "shapelens",\n  "version": ")[^"]+|(?<="name": "shapelens",\n      "version": ")[^"]+',
    ),
)
CHANGELOGS = ("CHANGELOG.md", "vscode-extension/CHANGELOG.md")


def versions() -> dict[str, set[str]]:
    """The versions that each place says."""
    found: dict[str, set[str]] = {}
    for file, pattern in PLACES:
        found.setdefault(file, set()).update(re.findall(pattern, (ROOT / file).read_text("utf-8")))
    headings = {file: re.findall(r"^## (\S+)", (ROOT / file).read_text("utf-8"), re.MULTILINE)[:1] for file in CHANGELOGS}
    return {**found, **{file: set(heading) for file, heading in headings.items()}}


def set_version(version: str) -> None:
    """Write the version to all places; a changelog that does not have it gets a heading, below which its changes go."""
    for file, pattern in PLACES:
        text = (ROOT / file).read_text("utf-8")
        (ROOT / file).write_text(re.sub(pattern, version, text), "utf-8")
    for file in CHANGELOGS:
        text = (ROOT / file).read_text("utf-8")
        if f"## {version}\n" not in text:
            (ROOT / file).write_text(re.sub(r"^## ", f"## {version}\n\n## ", text, count=1, flags=re.MULTILINE), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit("usage: python tools/set_version.py MAJOR.MINOR.PATCH")
    set_version(sys.argv[1])
    print("\n".join(f"{file}: {', '.join(found)}" for file, found in versions().items()))
