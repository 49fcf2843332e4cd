"""Files as they are read: the text of a Python file or a notebook, and the module that it is."""

from __future__ import annotations

import tokenize
from collections.abc import Sequence
from pathlib import Path

from shapelens.notebooks import SUFFIX, NoNotebook, script_as_python
from shapelens.python_sources import about, as_python
from shapelens.regular_files import LARGEST, read_regular
from shapelens.source.module import Module, parse
from shapelens.source.notebook_cells import NotebookCells, read_cells

LARGEST_NOTEBOOK = 256 << 20  # bytes, nearly all of them outputs


class Unreadable(Exception):
    """A path that holds no Python text. The message is one line for the user."""


def read(path: Path) -> str:
    """The text of a Python file, decoded as Python itself does (coding cookie, BOM kept out), its line ends untouched; that of a notebook.

    Raises Unreadable for what does not exist, is a folder, may not be read, or is no text.
    """
    is_notebook = path.suffix == SUFFIX
    kind = "a notebook" if is_notebook else "Python text"
    try:
        content = read_regular(path, LARGEST_NOTEBOOK if is_notebook else LARGEST)
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file") from None
    except IsADirectoryError:
        raise Unreadable(f"{path} is a folder, not a Python file") from None
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from None
    if b"\0" in content:
        raise Unreadable(f"{path} is a binary file, not {kind}")
    try:
        encoding = "utf-8" if is_notebook else tokenize.detect_encoding(iter(content.splitlines(keepends=True)).__next__)[0]
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Unreadable(f"{path} is not {kind}: {getattr(error, 'msg', error)}") from None


def cells_of(path: Path, content: str) -> NotebookCells:
    """A file's module, and what does not parse. Raises Unreadable for a notebook that is none."""
    if path.suffix != SUFFIX:
        module = parse(script_as_python(content))
        return NotebookCells(module, module.errors, content)
    try:
        return read_cells(content)
    except NoNotebook as why:
        raise Unreadable(f"{path} {why}") from None


def parsed_file(file: str, names: Sequence[str] | None = None) -> Module | None:
    """Another file of the project; None where it cannot be read. names: of documentation, only what is about these."""
    try:
        text = as_python(file, read(Path(file)))
        return parse(about(file, text, names) if names is not None else text)
    except Unreadable:
        return None
