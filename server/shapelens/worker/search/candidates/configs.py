"""Objects that hold a model's settings: instances of the project's config classes, or made of what the code asks them for."""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Optional, Protocol

import torch

from ...loading.statements import is_main_block
from ..code.uses import Uses
from ..usages.project_settings import Current, argument_defaults
from .annotated_kinds import NOTHING, AnnotatedKind
from .document_scope import DocumentScope
from .name_priors import words

NAMES = {
    "config", "cfg", "conf", "args", "opt", "opts", "options", "hparams", "hparam", "params", "hps", "hp", "configs", "arguments",
    "settings", "configuration", "flags", "kwargs", "model_args", "argument", "config_dict",
}  # fmt: skip
ENDINGS = ("Config", "Args", "Params", "Configuration", "Options", "HParams", "Hparams", "Settings", "Hyperparameters", "Arguments", "Cfg")
READS_BOTH_WAYS = 'type("Config", (dict,), {"__getattr__": dict.__getitem__})'


def looks_like_config(name: str) -> bool:
    """True if a parameter's name is that of an object with settings."""
    name = name.lower()
    return name in NAMES or name.rpartition("_")[2] in ("config", "cfg", "conf", "args", "opt", "hparams", "params", "configs", "options")


class ValueWriter(Protocol):
    """The writer of the values in a config object: parameter_values.Values."""

    scope: DocumentScope
    cls: type
    first_only: bool

    def build(self, cls: type, prefix: str, depth: int) -> Optional[str]:
        """A template that builds an object of a class; None where the document cannot."""

    def size(self, name: str, number: int) -> str:
        """A place for a guessed number."""

    def values(self, name: str, asked: AnnotatedKind, uses: Uses, prefix: str = "", depth: int = 0) -> List[str]:
        """Templates for a value, the most credible one first; never empty."""


class Configs:
    """Writes config objects for the parameters of one construction."""

    def __init__(self, values: ValueWriter) -> None:
        self.values = values
        self._defaults: Optional[Dict[str, Any]] = None

    def written(self, name: str, kind: str, uses: Uses, label: str, depth: int) -> List[str]:
        """Templates for an object that the code asks for settings, the most credible first."""
        found = []
        if looks_like_config(name):
            found += self._instances(name, uses)[:1]
            if found and self.values.first_only:
                return found
        if kind != "dict" or looks_like_config(name):
            for cls in self._classes(name, uses) if depth < 2 else ():
                text = self.values.build(cls, label + ".", depth + 1)
                found += [text] if text is not None else []
                if found and self.values.first_only:
                    return found
        if not found and not uses.parts:
            found.append("SimpleNamespace()" if kind != "dict" else "{}")
        if uses.parts:
            found.append(self.by_parts(uses, kind, depth))
        return found

    def _instances(self, name: str, uses: Uses) -> List[str]:
        """The document's own objects with settings, in its `__main__` block or at module level: of that name, or the only one.

        Of a dict of several settings one that has what is asked for: `CONFIGS["small"]`.
        """
        made: Dict[str, ast.expr] = {}
        functions = []
        for node in self.values.scope.tree.body:
            for part in node.body if is_main_block(node) else [node]:  # type: ignore[attr-defined]
                if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and isinstance(part.value, (ast.Call, ast.Dict)):
                    made[part.targets[0].id] = part.value
                elif isinstance(part, ast.FunctionDef) and looks_like_config(part.name) and not _needs_arguments(part):
                    functions.append(part.name + "()")
        alike = [other for other in made if looks_like_config(other)]
        found = [name] if name in made else alike if len(alike) == 1 else []
        return [*(self._entry(found[0], uses) if found else ()), *(functions if len(functions) == 1 else [])]

    def _entry(self, name: str, uses: Uses) -> List[str]:
        """An object of the document by its name, or the first entry of that dict which has the settings; [] for a dict without them."""
        asked = {part for part in uses.parts if part not in uses.optional}
        try:
            held = self.values.scope.names[name]
        except Exception:  # A definition that fails when it is read, or one that stands in the `__main__` block.
            return [name]
        if not isinstance(held, dict) or asked <= set(held):
            return [name]
        keys = [key for key, value in held.items() if isinstance(value, dict) and asked <= set(value) and isinstance(key, (str, int))]
        return ["%s[%r]" % (name, keys[0])] if keys else []

    def _classes(self, name: str, uses: Uses) -> List[type]:
        """The config classes that the document knows, those that are called like the model first."""
        scope, model = self.values.scope, self.values.cls
        known = [
            value
            for value in scope.bound.values()
            if isinstance(value, type)
            and value.__name__.endswith(ENDINGS)
            and not issubclass(value, torch.nn.Module)
            and not is_absent(value)
        ]
        own = set(words(model.__name__)) | set(words(name))
        ranked = sorted(known, key=lambda cls: (-len(own & set(words(cls.__name__))), cls.__name__ not in scope.classes))
        asked = {part for part in uses.parts if part not in uses.optional}
        fitting = [cls for cls in ranked if asked and _knows(cls, asked)]
        return (fitting or ranked)[:2]

    def by_parts(self, uses: Uses, kind: str, depth: int, known: Any = None) -> str:
        """An object with what the code asks for; plain settings that `known` has stay as they are there."""
        attributes, keys = uses.kinds.get("object", 0), uses.kinds.get("dict", 0)
        parts = {
            name: part
            for name, part in uses.parts.items()
            if (name not in uses.optional and name.isidentifier()) or (kind == "dict" and name not in uses.optional)
        }
        plain = {name: getattr(known, name, None) for name in parts} if known is not None else {}
        texts = {name: repr(plain[name]) if _is_plain(plain.get(name)) else self.part(name, part, depth) for name, part in parts.items()}
        if keys and not attributes:
            return "{%s}" % ", ".join("%r: %s" % item for item in texts.items())
        if not all(name.isidentifier() for name in texts):  # As keys, not as attributes.
            inner = "{%s}" % ", ".join("%r: %s" % item for item in texts.items())
            return "%s(%s)" % (READS_BOTH_WAYS, inner)
        inner = ", ".join("%s=%s" % item for item in texts.items())
        return "%s(%s)" % (READS_BOTH_WAYS if keys else "SimpleNamespace", inner)

    def part(self, name: str, uses: Uses, depth: int) -> str:
        """A value for one setting. What the command line of the document, or of its project, has as its default wins."""
        value = self.defaults().get(name)
        if value is None and not uses.parts:
            value = Current.settings.get(name)
            value = value if _is_plain(value) and not (type(value) is int and value <= 0) else None
        if value is None:
            return self.values.values(name, NOTHING, uses, "", depth + 1)[0]
        return repr(value)  # The project says so: no other number makes a mistake fit.

    def defaults(self) -> Dict[str, Any]:
        """The defaults of `add_argument` calls in the document."""
        if self._defaults is None:
            self._defaults = dict(argument_defaults(self.values.scope.tree))
        return self._defaults


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str))


def _needs_arguments(function: ast.FunctionDef) -> bool:
    return len(function.args.args) > len(function.args.defaults) or any(default is None for default in function.args.kw_defaults)


def is_absent(cls: type) -> bool:
    """True if a class stands in for one of a package that is not installed."""
    return bool(vars(cls).get("_shapelens_absent"))


def _knows(cls: type, parts: Any) -> bool:
    """True if a config class has most of the settings that the code asks for."""
    known = set(dir(cls)) | set(getattr(cls, "__annotations__", {})) | set(getattr(cls, "__dataclass_fields__", {}))
    for base in cls.__mro__:
        function = vars(base).get("__init__")
        code = getattr(function, "__code__", None)
        if code is not None:
            known |= set(code.co_varnames) | set(code.co_names)
    return sum(1 for part in parts if part in known) * 2 >= len(parts)
