"""OmegaConf where it is not installed: settings out of texts, files and other settings, with what refers to other entries in its place.

Source: https://omegaconf.readthedocs.io
"""

from __future__ import annotations

import copy
import re
from typing import Any

from .settings_objects import SettingsObject, read_yaml
from .stand_ins import BEHAVIOURS, absent

_REFERENCE = re.compile(r"\$\{([\w.]+)\}")


def resolved(settings: SettingsObject) -> SettingsObject:
    """The settings with what `${model.width}` stands for in its place; another text with `${` in it is unknown."""

    def value_of(value: Any, depth: int) -> Any:
        if isinstance(value, SettingsObject):
            for name, inner in value.items():
                value[name] = value_of(inner, depth)
        elif isinstance(value, list):
            return [value_of(inner, depth) for inner in value]
        elif isinstance(value, str) and "${" in value:
            reference = _REFERENCE.fullmatch(value)
            found: Any = settings if reference is not None and depth else None
            for part in reference[1].split(".") if reference is not None else ():
                found = found.get(part) if isinstance(found, SettingsObject) else None
            return absent("the setting %s" % value, "missing-file") if found is None else value_of(found, depth - 1)
        return value

    value_of(settings, 8)
    return settings


def _created(given: Any = None, *args: Any, **kwargs: Any) -> Any:
    """OmegaConf.create, OmegaConf.structured"""
    if isinstance(given, (list, tuple)):
        return [SettingsObject(each) if isinstance(each, dict) else each for each in given]
    fields = getattr(given, "__dataclass_fields__", None)
    if fields is not None:
        made = given() if isinstance(given, type) else given
        given = {name: getattr(made, name) for name in fields}
    return resolved(SettingsObject(given))


def _loaded(path: Any, *args: Any, **kwargs: Any) -> Any:
    """OmegaConf.load"""
    read = read_yaml(path)
    return absent("the file %s" % path, "missing-file") if read is None else resolved(SettingsObject(read))


def _merged(*given: Any, **kwargs: Any) -> SettingsObject:
    """OmegaConf.merge"""
    out = SettingsObject()
    for each in given:
        out._merge(copy.deepcopy(each) if isinstance(each, dict) else {})
    return resolved(out)


def _as_container(given: Any, *args: Any, **kwargs: Any) -> Any:
    """OmegaConf.to_container, OmegaConf.to_object"""
    if isinstance(given, SettingsObject):
        return {name: _as_container(value) for name, value in given.items()}
    return given


BEHAVIOURS.update(
    {
        "omegaconf.OmegaConf.create": _created,
        "omegaconf.OmegaConf.structured": _created,
        "omegaconf.DictConfig": _created,
        "omegaconf.ListConfig": _created,
        "omegaconf.OmegaConf.load": _loaded,
        "omegaconf.OmegaConf.merge": _merged,
        "omegaconf.OmegaConf.unsafe_merge": _merged,
        "omegaconf.OmegaConf.from_cli": _merged,
        "omegaconf.OmegaConf.to_container": _as_container,
        "omegaconf.OmegaConf.to_object": _as_container,
    }
)
