"""Where documents lie on disk."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from pygls import uris

from shapelens.regular_files import read_regular

# What paths are on this system: drives and names of Windows are the same in either case, and "/" is as good as "\\" there.
FLAVOUR: type[PurePath] = PureWindowsPath if os.name == "nt" else PurePosixPath


def path_of(uri: str, flavour: type[PurePath] = FLAVOUR) -> str:
    """The absolute path of a document. One without a path (unsaved, remote, of another system) gets one that no file has.

    `file:///C:/a.py` and `file:///c%3A/a.py` are one path on Windows, `file://host/share/a.py` is `\\\\host\\share\\a.py`.
    """
    path = uris.to_fs_path(uri)
    if path is not None and flavour(path).is_absolute():
        return str(flavour(path)) if flavour is PureWindowsPath else path
    name = re.sub(r"[^\w.-]+", "_", uri)[-100:]
    return str(Path(tempfile.gettempdir(), "shapelens-unsaved", name if name.endswith(".py") else name + ".py"))


def uri_of(path: str) -> str:
    """Returns the URI of an absolute path."""
    return str(uris.from_fs_path(path))


def same_path(path: str, other: str, flavour: type[PurePath] = FLAVOUR) -> bool:
    """True if two absolute paths name one file, as far as their text tells."""
    return path == other or (flavour is PureWindowsPath and flavour(path) == flavour(other))


def on_disk(path: str) -> str | None:
    """The text of a file; None where it has none."""
    try:
        return read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
