"""Tables, arrays and other files that are not here: what reads them gives a stand-in of which nothing is known."""

from __future__ import annotations

import functools
import glob
import json
import os
import pathlib
import pickle
from types import ModuleType
from typing import Any, Callable, Iterator, List, Optional, Sequence

from ...unknown.data_arrays import data_array
from ...unknown.stand_ins import absent, holds_absent, is_absent
from ...unknown.unknown_sizes import size
from ...unknown.world_errors import world_cause
from ..compilers import Replacement
from ..file_access import MissingText
from . import absences
from .absences import say
from .unknown_names import UnknownNames


def _unless_missing(read: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reads a file; its first argument says which."""

    @functools.wraps(read)
    def reading(*args: Any, **kwargs: Any) -> Any:
        file = args[0] if args else next(iter(kwargs.values()), None)
        if is_absent(file) or isinstance(file, MissingText):
            return _unknown(getattr(getattr(file, "error", None), "filename", None) or "a file")
        try:
            return read(*args, **kwargs)
        except Exception as error:
            if world_cause(error) is None or not isinstance(file, (str, os.PathLike)):
                raise
            say("%s is not there: what it holds is unknown" % (os.fspath(file),))
            return _unknown(os.fspath(file))

    return reading


def _unknown(file: Any) -> Any:
    return absent("what %s holds" % (os.path.basename(str(file)) or file), "missing-file")


def _in_module(names: str) -> Callable[[ModuleType], List[Replacement]]:
    """The replacements for the functions of a module that read files."""

    def replacements(module: ModuleType) -> List[Replacement]:
        return [(module, name, _unless_missing(module.__dict__[name])) for name in names.split() if callable(module.__dict__.get(name))]

    return replacements


def arrays(module: Any) -> List[Replacement]:
    """The replacements for the functions of numpy that read files. Files of plain numbers are as long as nobody knows."""
    text = [(module, name, _unless_missing(getattr(module, name))) for name in ["load", "loadtxt", "genfromtxt"]]
    return [*text, (module, "fromfile", _numbers(module.fromfile)), (module, "memmap", _memory_mapped(module.memmap))]


def _numbers(read: Callable[..., Any]) -> Callable[..., Any]:
    """numpy.fromfile: (n,) numbers, of an unknown n where the file is not there."""

    @functools.wraps(read)
    def fromfile(file: Any, dtype: Any = float, count: int = -1, *args: Any, **kwargs: Any) -> Any:
        if absences.is_asked_by_user() and _is_missing(file):
            return _array_of_file(file, (count,) if isinstance(count, int) and count > 0 else None, dtype)
        return read(file, dtype, count, *args, **kwargs)

    return fromfile


def _memory_mapped(original: Any) -> Any:
    """numpy.memmap, a class: code asks whether arrays are instances of it."""

    class Mapped(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

    class memmap(original, metaclass=Mapped):  # type: ignore[misc]
        def __new__(
            cls, filename: Any, dtype: Any = "uint8", mode: str = "r+", offset: int = 0, shape: Any = None, order: str = "C"
        ) -> Any:
            if not mode.startswith("w") and absences.is_asked_by_user() and _is_missing(filename):
                return _array_of_file(filename, (shape,) if isinstance(shape, int) else shape, dtype)
            return original(filename, dtype, mode, offset, shape, order)

    memmap.__module__, memmap.__qualname__ = original.__module__, original.__qualname__
    return memmap


def _is_missing(file: Any) -> bool:
    if is_absent(file) or isinstance(file, MissingText):
        return True
    return isinstance(file, (str, os.PathLike)) and not os.path.exists(file)


def _array_of_file(file: Any, shape: Optional[Sequence[int]], dtype: Any) -> Any:
    import numpy

    if isinstance(file, (str, os.PathLike)):
        say("%s is not there: what it holds is unknown" % (os.fspath(file),))
    return data_array(shape if shape is not None else (size(lasting=True),), numpy.dtype(dtype))


_read_tables = _in_module(
    "read_csv read_table read_excel read_json read_pickle read_parquet read_feather read_hdf read_sql read_sql_query read_fwf read_html "
    "read_xml"
)
h5 = _in_module("File")
mat = _in_module("loadmat")


def tables(module: ModuleType) -> List[Replacement]:
    """The replacements in `pandas`: its functions look into what they are given, so that they take no stand-in for a table or column."""

    def of_tables(original: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any, **kwargs: Any) -> Any:
            return absent("a table", "missing-file") if holds_absent((*args, *kwargs.values())) else original(*args, **kwargs)

        return made

    names = "to_datetime to_numeric to_timedelta concat merge get_dummies cut qcut factorize unique isna isnull notna notnull melt"
    own = [(module, name, of_tables(getattr(module, name))) for name in names.split()]
    return [*_read_tables(module), *own]


def yaml(module: ModuleType) -> List[Replacement]:
    """The replacements for the functions that read settings; `yaml.load(file)` is that of versions before 6."""
    reading = _in_module("safe_load full_load unsafe_load")(module)
    load = module.load

    def loaded(stream: Any, Loader: Any = None) -> Any:
        return load(stream, Loader or module.SafeLoader)

    return [*reading, (module, "load", _unless_missing(loaded))]


joblib = _in_module("load")
sound = _in_module("load read info")


def opencv(module: ModuleType) -> List[Replacement]:
    """The replacements in `cv2`: it gives None for a picture that is not there, and takes no stand-in."""
    import numpy

    read, resize = module.imread, module.resize

    def imread(file: Any, *args: Any, **kwargs: Any) -> Any:
        made = None if is_absent(file) else read(file, *args, **kwargs)
        if made is None:
            say("%s is not there: a picture of unknown size takes its place" % (file if isinstance(file, str) else "a picture"))
        return made if made is not None else absent("a picture", "missing-file")

    def resized(picture: Any, size: Any = None, *args: Any, **kwargs: Any) -> Any:
        size = size if size is not None else kwargs.pop("dsize", None)
        if is_absent(picture) and isinstance(size, tuple):
            return data_array((size[1], size[0], 3), numpy.uint8)
        return picture if is_absent(picture) else resize(picture, size, *args, **kwargs)

    def of_pictures(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda picture, *args, **kwargs: picture if is_absent(picture) else original(picture, *args, **kwargs)

    others = "cvtColor flip GaussianBlur rotate copyMakeBorder normalize"
    out: List[Replacement] = [(module, "imread", imread), (module, "resize", resized)]
    return out + [(module, name, of_pictures(module.__dict__[name])) for name in others.split() if name in module.__dict__]


# --- folders ---


def _listed(original: Callable[..., Any]) -> Callable[..., Any]:
    def listed(folder: Any = ".") -> Any:
        try:
            return original(folder)
        except (FileNotFoundError, TypeError):
            if not absences.is_asked_by_user() or isinstance(folder, int):
                raise
            say("%s is not there: what it holds is unknown" % (folder if isinstance(folder, str) else "a folder"))
            return UnknownNames("", ".jpg")

    return listed


def _found(original: Callable[..., Any]) -> Callable[..., Any]:
    def found(pattern: Any, *args: Any, **kwargs: Any) -> Any:
        names = original(pattern, *args, **kwargs)
        folder, name = os.path.split(os.fspath(pattern))
        if names or not folder or os.path.isdir(folder.split("*")[0].rstrip(os.sep) or "."):
            return names
        say("%s is not there: what it holds is unknown" % (pattern,))
        return UnknownNames(os.path.join(folder.replace("*", "a"), ""), os.path.splitext(name)[1] or ".jpg")

    return found


def _below(original: Callable[..., Any]) -> Callable[..., Any]:
    """Path.glob, rglob and iterdir"""

    def below(path: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if os.path.exists(path) or not absences.is_asked_by_user():
            return iter(original(path, *args, **kwargs))
        say("%s is not there: what it holds is unknown" % (path,))
        ending = os.path.splitext(str(args[0]))[1] if args else ".jpg"
        return iter([path / name for name in UnknownNames("", ending or ".jpg")])

    return below


def replacements() -> List[Replacement]:
    """Returns what takes the place of Python's own functions for the time of a run."""
    out: List[Replacement] = [
        (json, "load", _unless_missing(json.load)),
        (pickle, "load", _unless_missing(pickle.load)),
        (os, "listdir", _listed(os.listdir)),
        (glob, "glob", _found(glob.glob)),
    ]
    return out + [(pathlib.Path, name, _below(pathlib.Path.__dict__[name])) for name in ("glob", "rglob", "iterdir")]
