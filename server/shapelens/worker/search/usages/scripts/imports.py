"""The document's names as a file that imports the document has them."""

from __future__ import annotations

import ast
import os
from typing import Dict, List, Sequence

from .module_names import ModuleNames

MOST_PARENTS = 6  # folders above the document that may be packages of it


def known_names(tree: ast.Module, document: ModuleNames, file: str, importer: str) -> Dict[str, str]:
    """The document's names by what the file with this tree calls them: {"N": "Net", "net.Net": "Net"}.

    file, importer: the paths of the document and of the file with this tree. A package hands on what its modules define, so that a class
    which is imported from a folder above the document counts too.
    """
    parts = os.path.splitext(os.path.abspath(file))[0].split(os.sep)
    if parts[-1] == "__init__":
        parts.pop()
    public = [name for name in (*document.classes, *document.functions, *document.assigned) if not name.startswith("__")]
    found: Dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _means_another(alias.name.split("."), 0, importer, file):
                    continue
                if _is_module(alias.name.split("."), parts):
                    _all(alias.asname or alias.name, public, found)
                elif _is_package(alias.name.split("."), parts):
                    _all(alias.asname or alias.name, list(document.classes), found)
        elif isinstance(node, ast.ImportFrom) and not _means_another((node.module or "").split("."), node.level, importer, file):
            _from(node, parts, document, public, found)
    return found


def _means_another(name: Sequence[str], level: int, importer: str, file: str) -> bool:
    """True if a module or package of this name lies beside the file that imports it, and is not the document nor around it.

    Python looks beside a script first: `from models import Net` means its own `models.py`, whatever others the project has.
    """
    folder = os.path.dirname(os.path.abspath(importer))
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    path, document = os.path.join(folder, *name), os.path.abspath(file)
    if not level and not os.path.isfile(path + ".py") and not os.path.isdir(path):
        return False
    return path + ".py" != document and not document.startswith(os.path.join(path, ""))


def _from(node: ast.ImportFrom, parts: Sequence[str], document: ModuleNames, public: List[str], found: Dict[str, str]) -> None:
    source = node.module.split(".") if node.module else []
    is_module = bool(source) and _is_module(source, parts)
    is_package = _is_package(source, parts) if source else node.level > 0
    for alias in node.names:
        name = alias.asname or alias.name
        if alias.name == "*" and (is_module or is_package):
            found.update((one, one) for one in (public if is_module else document.classes))
        elif is_module and alias.name in document:
            found[name] = alias.name
        elif is_package and alias.name == parts[-1] and alias.name not in document:
            _all(name, public, found)
        elif is_package and (alias.name in document.classes or alias.name in document.functions):
            found[name] = alias.name


def _all(prefix: str, names: Sequence[str], found: Dict[str, str]) -> None:
    found.update(("%s.%s" % (prefix, name), name) for name in names)


def _is_module(name: Sequence[str], parts: Sequence[str]) -> bool:
    """True if a dotted name is how the document may be imported."""
    return len(name) <= len(parts) and list(parts[-len(name) :]) == list(name)


def _is_package(name: Sequence[str], parts: Sequence[str]) -> bool:
    """True if a dotted name is a package that the document lies in."""
    return any(_is_module(name, parts[:-above]) for above in range(1, min(MOST_PARENTS, len(parts))))
