"""torchvision's data sets without their files: samples of the documented size, on which the real transforms run.

Each class keeps its own `__init__`, `__getitem__` and `__len__` where its files are there and their pictures have sizes of their own.
A sample whose picture may be of any size is made twice, of two sizes: a size of the result that differs is unknown.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ...meta.mode import META
from ...unknown import data_arrays, unknown_sizes
from ...unknown.data_arrays import PICTURE_HEIGHT, PICTURE_WIDTH
from ...unknown.stand_ins import absent
from ..compilers import Replacement
from .absences import say
from .documented import DATA_SETS, EMNIST_CLASSES, Documented
from .pictures import is_of_unknown_size, picture, picture_of_unknown_size
from .unknown_names import UnknownNames

SAMPLE = "_shapelens_sample"  # in the __dict__ of a data set that is stood in for: makes a sample
LENGTH = "_shapelens_length"


def torchvision(module: ModuleType) -> List[Replacement]:
    """The replacements in the classes of `torchvision.datasets`."""
    out: List[Replacement] = []
    base = module.__dict__.get("VisionDataset")
    for cls in {value for value in module.__dict__.values() if isinstance(value, type) and base and issubclass(value, base)}:
        for owner in [owner for owner in cls.__mro__ if owner.__module__.startswith("torchvision.datasets.") and owner is not base]:
            for name, replace in (("__init__", _init), ("__getitem__", _getitem), ("__len__", _len)):
                original = owner.__dict__.get(name)
                if original is not None and not any(known[0] is owner and known[1] == name for known in out):
                    out.append((owner, name, replace(owner, original)))
    return out


def _name_of(data_set: Any) -> str:
    return next(cls.__name__ for cls in type(data_set).__mro__ if cls.__module__.startswith("torchvision.datasets."))


def _init(owner: type, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)  # Its signature is asked for.
    def init(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.__dict__.get("_shapelens_building"):  # A class that builds on another one of torchvision's.
            return original(self, *args, **kwargs)
        given = inspect.signature(original).bind(self, *args, **kwargs)  # Raises TypeError as the call itself would.
        given.apply_defaults()
        name = _name_of(self)
        known = DATA_SETS.get(name)
        root = given.arguments.get("root")
        if (known is None or known.size is None) and name != "FakeData" and _is_folder(root):
            self.__dict__["_shapelens_building"] = True
            try:
                return original(self, *args, **kwargs)
            except (OSError, RuntimeError, ValueError, KeyError, ImportError):
                pass
            finally:
                self.__dict__.pop("_shapelens_building", None)
        arguments = {**given.arguments, **given.arguments.get("kwargs", {})}
        arguments = {**_defaults(type(self)), **arguments}
        _become(self, name, known, arguments)
        if name != "FakeData" and not _is_folder(root):
            say("%s is not here: %s" % (name, "its documented shapes are used" if known is not None else "what it holds is unknown"))
        return None

    return init


def _defaults(cls: type) -> Dict[str, Any]:
    """Returns what the arguments of a class's constructors, its bases' among them, are where nobody gives them."""
    found: Dict[str, Any] = {}
    for base in cls.__mro__:
        constructor = base.__dict__.get("__init__")
        if constructor is not None and base.__module__.startswith("torchvision."):
            for name, parameter in inspect.signature(constructor).parameters.items():
                if parameter.default is not parameter.empty:
                    found.setdefault(name, parameter.default)
    return found


def _is_folder(root: Any) -> bool:
    return isinstance(root, (str, os.PathLike)) and os.path.isdir(os.path.expanduser(os.fspath(root)))


def _getitem(owner: type, original: Callable[..., Any]) -> Callable[..., Any]:
    def getitem(self: Any, index: Any) -> Any:
        make = self.__dict__.get(SAMPLE)
        if make is None:
            return original(self, index)
        if isinstance(index, int) and not unknown_sizes.is_unknown(index) and index >= self.__dict__[LENGTH]:
            raise IndexError("index %d is out of range" % index)
        return make(self)

    return getitem


def _len(owner: type, original: Callable[..., Any]) -> Callable[..., Any]:
    def length(self: Any) -> int:
        return self.__dict__[LENGTH] if LENGTH in self.__dict__ else original(self)  # type: ignore[no-any-return]

    return length


def _become(self: Any, name: str, known: Optional[Documented], given: Dict[str, Any]) -> None:
    """Give a data set the attributes that it would have, and what makes its samples."""
    for attribute, value in given.items():
        if attribute not in ("self", "download", "kwargs", "args", "transform", "target_transform", "transforms", "root"):
            try:
                self.__dict__.setdefault(attribute, value)
            except Exception:  # A property of that name.
                pass
    self.root = given.get("root")
    transforms = given.get("transforms")
    self.transform, self.target_transform = given.get("transform"), given.get("target_transform")
    if transforms is None and (self.transform is not None or self.target_transform is not None):
        both = importlib.import_module("torchvision.datasets.vision").StandardTransform
        transforms = both(self.transform, self.target_transform)
    self.transforms = transforms
    self.loader = given.get("loader")
    if known is None:
        self.__dict__[LENGTH] = unknown_sizes.size(lasting=True)
        self.__dict__[SAMPLE] = lambda data_set: _unknown(name)
        return
    if name == "FakeData":
        size = given["image_size"]
        known = known._replace(mode="RGB" if size[0] == 3 else "L", size=(size[1], size[2]), classes=given["num_classes"])
        known = known._replace(lengths={"": given["size"]})
    self.__dict__[LENGTH] = _length(known, given)
    classes = EMNIST_CLASSES.get(str(given.get("split"))) if name == "EMNIST" else known.classes
    _give_classes(self, classes)
    _give_data(self, known)
    self.__dict__[SAMPLE] = lambda data_set: _sample(data_set, known, given)


def _length(known: Documented, given: Dict[str, Any]) -> int:
    part = " ".join(str(given.get(name)) for name in known.split.split())
    length = known.lengths.get(part)
    return unknown_sizes.size(lasting=True) if length is None else length


def _give_classes(self: Any, count: Optional[int]) -> None:
    names: Any = UnknownNames("class ") if count is None else ["class %d" % number for number in range(count)]
    for attribute, value in (("classes", names), ("class_to_idx", _Indices(names))):
        if not hasattr(type(self), attribute):
            setattr(self, attribute, value)


class _Indices(Dict[str, int]):
    """class_to_idx"""

    def __init__(self, names: Any) -> None:
        super().__init__((name, number) for number, name in enumerate(names))
        self.count = len(names)

    def __len__(self) -> int:
        return self.count


def _give_data(self: Any, known: Documented) -> None:
    """`data`, `targets`, `samples`: all of it at once."""
    import numpy

    length = self.__dict__[LENGTH]
    if known.data and known.size is not None:
        channels = {"L": (), "RGB": (3,)}[known.mode]
        shape = (length, *channels, *known.size) if known.data in ("NHW", "NCHW") else (length, *known.size, *channels)
        if known.data == "NHW":
            self.data = torch.empty(shape, dtype=torch.uint8, device=META)
            self.targets = torch.empty((length,), dtype=torch.int64, device=META)
        else:
            self.data = data_arrays.data_array(shape, numpy.uint8)
            self.targets = label_list(length)
            self.labels = data_arrays.data_array((length,), numpy.int64)
    elif known.target == "class":
        self.targets = label_list(length)
        self.labels = self.targets
        self.samples = self.imgs = [("picture", a_class())] * min(length, MOST_LISTED)
    elif known.target == "attributes":
        self.attr = torch.empty((length, 40), dtype=torch.int64, device=META)
        self.attr_names = ["attribute %d" % number for number in range(40)]


MOST_LISTED = 1 << 17  # entries of a list


def a_class() -> Any:
    """The class of a sample: a number that can be looked up in a list of classes, and whose value nobody knows."""
    unknown_sizes.state.met = unknown_sizes.state.lasting = True
    return unknown_sizes.UnknownInt(0)


def label_list(length: int) -> List[Any]:
    """The classes of all samples."""
    return [a_class()] * min(length, MOST_LISTED)


# --- samples ---


def _unknown(name: str) -> Any:
    return absent("a sample of %s" % name, "missing-file")


def _sample(self: Any, known: Documented, given: Dict[str, Any]) -> Any:
    if known.size is not None:
        return _transformed(self, known, given, picture(known.mode, known.size), known.size)
    first = _transformed(self, known, given, picture_of_unknown_size(known.mode), (PICTURE_HEIGHT, PICTURE_WIDTH))
    if not _holds_tensor(first):
        return first
    second = _transformed(self, known, given, picture_of_unknown_size(known.mode, other=True), (PICTURE_HEIGHT, PICTURE_WIDTH))
    return alike(first, second)


def _holds_tensor(value: Any) -> bool:
    parts = value if isinstance(value, (tuple, list)) else value.values() if isinstance(value, dict) else ()
    return isinstance(value, torch.Tensor) or data_arrays.is_data(value) or any(map(_holds_tensor, parts))


def alike(first: Any, second: Any) -> Any:
    """Returns what two samples have in common: the sizes in which they differ are unknown."""
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        with torch._C.DisableTorchFunction():
            one, other = tuple(first.shape), tuple(second.shape)
        if one == other or len(one) != len(other):
            return first
        shape = [size if size == there else unknown_sizes.size(lasting=True) for size, there in zip(one, other)]
        return torch.empty(shape, dtype=first.dtype, device=META)
    if type(first) is type(second) and isinstance(first, (tuple, list)) and len(first) == len(second):
        return type(first)([alike(one, other) for one, other in zip(first, second)]) if type(first) in (tuple, list) else first
    if type(first) is dict and type(second) is dict:
        return {name: alike(value, second.get(name)) for name, value in first.items()}
    return first


def _transformed(self: Any, known: Documented, given: Dict[str, Any], image: Any, size: Tuple[int, int]) -> Any:
    if known.target == "video":
        return _video(self, known, given)
    if known.target == "frames":
        frames = torch.empty((20, 1, *size) if given.get("split") is None else (10, 1, *size), dtype=torch.uint8, device=META)
        return self.transform(frames) if self.transform is not None else frames
    target = _target(self, known, given, image, size)
    if known.target == "pair":
        second = image.copy()
        images = [self.transform(each) if self.transform is not None else each for each in (image, second)]
        return images[0], images[1], a_class()
    if known.target in ("mask", "objects") and self.transforms is not None:
        return self.transforms(image, target)
    if self.transform is not None:
        image = self.transform(image)
    if self.target_transform is not None and target is not None:
        target = self.target_transform(target)
    return image, target


def _target(self: Any, known: Documented, given: Dict[str, Any], image: Any, size: Tuple[int, int]) -> Any:
    kinds = given.get("target_types", given.get("target_type"))
    if known.target == "attributes":
        parts = tuple([_attribute(kind) for kind in ([kinds] if isinstance(kinds, str) else kinds or ())])
        return (parts if len(parts) > 1 else parts[0]) if parts else None
    if known.target == "mask":
        return _mask(image, size)
    if kinds is not None and known.target == "class" and not isinstance(kinds, int):  # OxfordIIITPet, INaturalist
        parts = tuple(
            [_mask(image, size) if kind == "segmentation" else a_class() for kind in ([kinds] if isinstance(kinds, str) else kinds or ())]
        )
        return (parts if len(parts) > 1 else parts[0]) if parts else None
    if known.target == "texts":
        return ["a picture of something"] * 5
    if known.target == "text":
        return "a picture of something"
    return a_class() if known.target == "class" else absent("the annotation of a picture", "missing-file")


def _mask(image: Any, size: Tuple[int, int]) -> Any:
    made = picture("L", (image.size[1], image.size[0]))
    if is_of_unknown_size(image):
        made.__class__ = type(image)
    return made


def _attribute(kind: str) -> Any:
    """CelebA's kinds of targets."""
    if kind == "identity":
        return torch.empty((), dtype=torch.int64, device=META)
    return torch.empty(({"attr": 40, "bbox": 4, "landmarks": 10}.get(kind, 1),), dtype=torch.int64, device=META)


def _video(self: Any, known: Documented, given: Dict[str, Any]) -> Any:
    height, width = known.size or (unknown_sizes.size(lasting=True), unknown_sizes.size(lasting=True))
    count = given.get("frames_per_clip") or unknown_sizes.size(lasting=True)
    shape = (count, 3, height, width) if given.get("output_format") == "TCHW" else (count, height, width, 3)
    video = torch.empty(shape, dtype=torch.uint8, device=META)
    audio = torch.empty((unknown_sizes.size(lasting=True),) * 2, dtype=torch.float32, device=META)
    return (self.transform(video) if self.transform is not None else video), audio, a_class()
