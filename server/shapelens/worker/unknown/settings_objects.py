"""Objects of settings whose libraries are not there: dicts whose entries are attributes, as in yacs and easydict."""

from __future__ import annotations

import contextlib
import copy
import importlib
from typing import Any, Dict, Iterable, Optional

from .stand_ins import BEHAVIOURS, absent

NAMES = ("CfgNode", "EasyDict", "AttrDict", "Munch", "DotMap", "ConfigDict")  # as their libraries call them


class SettingsObject(Dict[str, Any]):
    """A dict whose entries are attributes, and so are those of the dicts in it.

    The methods are those of https://github.com/rbgirshick/yacs; files are read where a YAML library is there.
    """

    def __init__(self, given: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._merge({**(given if isinstance(given, dict) else {}), **kwargs})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self[name] if name in self else absent("the setting %s" % name, "missing-file")  # A file that is not there may say it.

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        self.pop(name, None)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, SettingsObject(value) if type(value) is dict else value)

    def _merge(self, other: Dict[Any, Any]) -> None:
        for name, value in other.items():
            inner = self.get(name)
            if isinstance(inner, SettingsObject) and isinstance(value, dict):
                inner._merge(value)
            else:
                self[name] = value

    def clone(self) -> "SettingsObject":
        """A copy of all of it."""
        return copy.deepcopy(self)

    def merge_from_file(self, path: Any) -> None:
        """Take what a YAML file says; nothing where it is not there."""
        self._merge(read_yaml(path) or {})

    def merge_from_other_cfg(self, other: Any) -> None:
        """Take what other settings say."""
        self._merge(other if isinstance(other, dict) else {})

    def merge_from_list(self, items: Iterable[Any]) -> None:
        """Take names and values by turns: `["MODEL.WIDTH", 64]`."""
        given = list(items)
        for name, value in zip(given[::2], given[1::2]):
            *outer, last = str(name).split(".")
            holder: Any = self
            for part in outer:
                holder = holder.setdefault(part, SettingsObject())
            holder[last] = value

    def freeze(self) -> None:
        """Settings are not guarded."""

    defrost = freeze

    def is_frozen(self) -> bool:
        """Never."""
        return False

    def dump(self, *args: Any, **kwargs: Any) -> str:
        """Nothing reads it."""
        return ""


def read_yaml(path: Any) -> Optional[Dict[str, Any]]:
    """Returns the content of a YAML file; None where it is missing, is no dict, or cannot be read without a YAML library."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        yaml: Any = importlib.import_module("yaml")
        with open(path, encoding="utf-8") as file:
            read = yaml.safe_load(file)
        return read if isinstance(read, dict) else None
    return None


BEHAVIOURS.update(dict.fromkeys(NAMES, SettingsObject))
