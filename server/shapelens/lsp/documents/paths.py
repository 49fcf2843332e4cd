"""Where documents lie on disk."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from pygls import uris

from shapelens.regular_files import read_regular


def path_of(uri: str) -> str:
    """The absolute path of a document. One without a path (unsaved, remote, of another system) gets one that no file has."""
    path = uris.to_fs_path(uri)
    if path is not None and Path(path).is_absolute():
        return path
    name = re.sub(r"[^\w.-]+", "_", uri)[-100:]
    return str(Path(tempfile.gettempdir(), "shapelens-unsaved", name if name.endswith(".py") else name + ".py"))


def on_disk(path: str) -> str | None:
    """The text of a file; None where it has none."""
    try:
        return read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
