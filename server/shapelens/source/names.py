"""Tells what the names of a file stand for, and which of its classes are module classes, from its imports and assignments alone."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence

from shapelens.source.classes import ClassStatement
from shapelens.source.statements import TopLevelStatement

_NOT_MODULES = {"Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"}
_MODULES_ELSEWHERE = {"LightningModule", "ScriptModule", "GraphModule"}
# Files and snippets that leave out their imports mean these.
_USUAL = {"nn": "torch.nn", "torch": "torch", "F": "torch.nn.functional", "pl": "pytorch_lightning"}
_TORCH_NN_STARS = {"torch.nn", "torch.nn.modules"}


class NameTable:
    """The names of one file. libcst's scope analysis costs five times the parse; a file's imports and assignments say enough."""

    def __init__(self, statements: Sequence[TopLevelStatement]) -> None:
        self._imported: dict[str, str] = {}
        self._assigned: dict[str, str] = {}
        self._stars: list[str] = []
        self._classes: dict[str, list[ClassStatement]] = {}
        self._order: list[ClassStatement] = []
        self.modules: list[str] = []
        inner: dict[str, str] = {}
        seen: set[str] = set()
        for statement in statements:
            names = statement.names
            for name, meaning in names.imported.items():
                # Of an import and its fallback (`try: import a except ImportError: import b`) the first one counts.
                self._imported.setdefault(name, meaning)
            inner.update(names.inner)
            self._assigned.update(names.assigned)
            self._stars += names.stars
            for module in names.modules:
                if module and module not in seen:
                    seen.add(module)
                    self.modules.append(module)
            for cls in statement.classes:
                self._order.append(cls)
                self._classes.setdefault(cls.qualname, []).append(cls)
        for name, meaning in inner.items():
            self._imported.setdefault(name, meaning)

    @property
    def imported(self) -> list[str]:
        """Returns what the file imports, by full names ("torch.nn", "einops.rearrange"); relative ones keep their dots."""
        return list(self._imported.values())

    def qualified(self, name: str) -> str | None:
        """The fully qualified name of a dotted name, aliases resolved; None for what the file does not import (a local, `self.x`)."""
        seen: set[str] = set()
        while name.partition(".")[0] not in seen:
            root, dot, rest = name.partition(".")
            seen.add(root)
            if root in self._classes:
                return None
            if root in self._imported:
                return self._imported[root] + dot + rest
            if root in self._assigned:
                name = self._assigned[root] + dot + rest
                continue
            if root in _USUAL:
                return _USUAL[root] + dot + rest
            if not dot and root[:1].isupper() and not hasattr(builtins, root):
                star = next((star for star in self._stars if star in _TORCH_NN_STARS), None)
                # With more stars than one only the name that matters most is taken to be torch's.
                return f"{star}.{root}" if star and (len(self._stars) == 1 or root == "Module") else None
            return None
        return None

    def class_kinds(self) -> dict[int, str]:
        """For each class of the file, by id: "module", "maybe" or ""."""
        kinds: dict[int, str] = {}
        position = {id(cls): index for index, cls in enumerate(self._order)}
        for cls in self._order:
            self._kind(cls, kinds, position)
        return kinds

    def _kind(self, cls: ClassStatement, kinds: dict[int, str], position: dict[int, int]) -> str:
        # Iterative: a chain of a thousand classes must not overflow the stack.
        pending = [cls]
        while pending:
            current = pending[-1]
            if id(current) in kinds and kinds[id(current)] != "pending":
                pending.pop()
                continue
            local = [base for base in (self._local(name, current, position) for name in self._bases(current)) if base is not None]
            waiting = [base for base in local if id(base) not in kinds]
            if waiting:
                kinds[id(current)] = "pending"
                pending += waiting
                continue
            pending.pop()
            found = [kinds[id(base)] for base in local]
            found += [self._imported_kind(name) for name in self._bases(current) if self._local(name, current, position) is None]
            kinds[id(current)] = "module" if "module" in found else "maybe" if "maybe" in found else ""
        return kinds[id(cls)]

    def _bases(self, cls: ClassStatement) -> list[str]:
        return cls.bases + [name for name in cls.base_arguments if name != cls.name]

    def _local(self, name: str, cls: ClassStatement, position: dict[int, int]) -> ClassStatement | None:
        """The class of this file that a base names, seen from where the class stands: its own scope first, then those around it."""
        scope = cls.qualname.rpartition(".")[0]
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            inside = scope
            while True:
                candidates = [item for item in self._classes.get(f"{inside}.{name}" if inside else name, []) if item is not cls]
                earlier = [item for item in candidates if position[id(item)] < position[id(cls)]]
                if candidates:
                    return (earlier or candidates)[-1 if earlier else 0]
                if not inside:
                    break
                inside = inside.rpartition(".")[0]
            if name in self._imported or name not in self._assigned:
                return None
            name = self._assigned[name]
        return None

    def _imported_kind(self, base: str) -> str:
        qualified = self.qualified(base)
        name = (qualified or base).rpartition(".")[2]
        if name in _MODULES_ELSEWHERE or name.endswith("PreTrainedModel"):
            return "module"
        root = (qualified or "").partition(".")[0]
        if root == "torch":
            is_module = (qualified or "").startswith(("torch.nn.", "torch.ao.nn.")) and name[:1].isupper() and name not in _NOT_MODULES
            return "module" if is_module else ""
        if qualified is None and hasattr(builtins, base):
            return ""
        if root in sys.stdlib_module_names or root == "typing_extensions":
            return ""
        return "maybe"
