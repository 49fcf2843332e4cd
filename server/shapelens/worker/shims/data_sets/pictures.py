"""Pictures that are not here: PIL's own, of zeros, so that real transforms run on them. What is read out of any picture is data.

Where the size of a picture is not known, it is of two primes that no model has among its sizes; they become unknown sizes where the picture
becomes a tensor. A picture that was cut to a square, or resized to other proportions than its own, is as large as the code says.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
from types import ModuleType
from typing import Any, List, Tuple

import torch

from ...meta.mode import META
from ...unknown import data_arrays, unknown_sizes
from ...unknown.data_arrays import CHANNELS, OTHER_HEIGHT, OTHER_WIDTH, PICTURE_HEIGHT, PICTURE_WIDTH
from ...unknown.stand_ins import absent, is_absent
from ..compilers import Replacement
from .absences import say

SAID = "_shapelens_said_size"  # in the __dict__ of a picture: its size is what the code says, its mode is not known


def picture(mode: str, size: Tuple[int, int]) -> Any:
    """A picture of this height and width."""
    return _image_module().new(mode, (size[1], size[0]))


def _image_module() -> Any:
    return importlib.import_module("PIL.Image")


def picture_of_unknown_size(mode: str = "", other: bool = False) -> Any:
    """A picture whose size is not known, nor its mode where none is given; `other`: of another size than the usual one."""
    made = picture(mode or "RGB", (OTHER_HEIGHT, OTHER_WIDTH) if other else (PICTURE_HEIGHT, PICTURE_WIDTH))
    made.__class__ = _picture_class()
    made.__dict__[CHANNELS] = not mode
    return made


def _picture_class() -> Any:
    """Pictures that remember that their size is not known, through what is made from them."""
    if not hasattr(_picture_class, "made"):
        image_class: Any = _image_module().Image

        class Picture(image_class):  # type: ignore[misc]
            """A picture of unknown size."""

            def _new(self, core: Any) -> Any:
                made = super()._new(core)
                made.__class__ = type(self)
                made.__dict__[CHANNELS] = self.__dict__.get(CHANNELS, False)
                made.__dict__[SAID] = self.__dict__.get(SAID, False) and made.size == self.size
                return made

            def convert(self, mode: Any = None, *args: Any, **kwargs: Any) -> Any:
                made = super().convert(mode, *args, **kwargs)
                if mode is not None:
                    made.__dict__[CHANNELS] = False
                return _settled(made, made.__dict__.get(SAID, False))

            def resize(self, size: Any, *args: Any, **kwargs: Any) -> Any:
                made = super().resize(size, *args, **kwargs)
                off = abs(made.size[0] * self.size[1] - made.size[1] * self.size[0])
                # Sides in the proportion of the picture's own may have been worked out from one of them.
                return _settled(made, off > max(self.size))

            def crop(self, *args: Any, **kwargs: Any) -> Any:
                made = super().crop(*args, **kwargs)
                return _settled(made, made.size[0] == made.size[1])

        Picture.__name__ = "Image"
        _picture_class.made = Picture  # type: ignore[attr-defined]
    return _picture_class.made  # type: ignore[attr-defined]


def _settled(made: Any, is_said: bool) -> Any:
    """Returns what was made from a picture of unknown size; `is_said`: its own size is what the code says."""
    if is_said and not made.__dict__.get(CHANNELS):
        made.__class__ = _image_module().Image
    elif is_said:
        made.__dict__[SAID] = True
    return made


def is_of_unknown_size(value: Any) -> bool:
    """True if a value is a picture whose size is not known."""
    return hasattr(_picture_class, "made") and isinstance(value, _picture_class.made)


# --- as arrays and tensors ---


def functional(module: ModuleType) -> List[Replacement]:
    """The replacements in torchvision's functions of transforms, of both versions."""

    def changed(original: Any) -> Any:
        def convert(picture: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_of_unknown_size(picture):
                return original(picture, *args, **kwargs)
            plain = picture.copy()
            plain.__class__, plain.__dict__[CHANNELS] = _image_module().Image, False
            made = original(plain, *args, **kwargs)
            if not isinstance(made, torch.Tensor):
                return made
            size = unknown_sizes.size(lasting=True)
            with torch._C.DisableTorchFunction():
                sizes = (made.shape[-2], made.shape[-1])
                sizes = sizes if picture.__dict__.get(SAID) else (size, size)
                channels = (unknown_sizes.count(),) if picture.__dict__.get(CHANNELS) else made.shape[:-2]
                shape = (*channels, *sizes)
            return torch.empty(shape, dtype=made.dtype, device=META).as_subclass(type(made))

        return convert

    names = ("to_tensor", "pil_to_tensor", "to_image", "to_image_tensor")
    return [(module, name, changed(module.__dict__[name])) for name in names if name in module.__dict__]


def grids(module: ModuleType) -> List[Replacement]:
    """The replacement of `torchvision.utils.make_grid`, which goes through the pictures: as many as nobody knows take no time."""
    original = module.make_grid

    def make_grid(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4 or not unknown_sizes.any_unknown(tensor.shape):
                pictures = None
            else:
                size = unknown_sizes.size()
                pictures = torch.empty((3 if tensor.shape[1] == 1 else tensor.shape[1], size, size), dtype=tensor.dtype, device=META)
        return original(tensor, *args, **kwargs) if pictures is None else pictures

    return [(module, "make_grid", make_grid)]


_CHANNELS_OF = {"GRAY": 1, "GRAY_ALPHA": 2, "RGB": 3, "RGB_ALPHA": 4, "RGBA": 4}


def decoders(module: ModuleType) -> List[Replacement]:
    """The replacements in `torchvision.io`: a picture that cannot be read here is a `uint8` tensor of unknown size."""

    def changed(original: Any) -> Any:
        default = inspect.signature(original).parameters["mode"].default

        def decode(source: Any, mode: Any = default, *args: Any, **kwargs: Any) -> Any:
            if isinstance(source, (str, os.PathLike)) and not is_absent(source) and not os.path.exists(source):
                say("%s is not here: a picture of unknown size takes its place" % source)
            else:
                with contextlib.suppress(Exception):  # Bytes that nobody has, or no decoder for them on this machine.
                    return original(source, mode, *args, **kwargs)
            channels = _CHANNELS_OF.get(str(getattr(mode, "name", mode)).upper()) or unknown_sizes.count()
            size = unknown_sizes.size(lasting=True)
            return torch.empty((channels, size, size), dtype=torch.uint8, device=META)

        return decode

    names = ("read_image", "decode_image", "decode_jpeg", "decode_png")
    return [(module, name, changed(module.__dict__[name])) for name in names if name in module.__dict__]


def pil(module: ModuleType) -> List[Replacement]:
    """The replacements in `PIL.Image`."""
    original = module.open

    def opened(file: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(file, *args, **kwargs)
        except (OSError, TypeError, AttributeError, ValueError) as error:
            if not (isinstance(error, OSError) or is_absent(file)):
                raise
            say("%s is not here: a picture of unknown size takes its place" % (file if isinstance(file, str) else "a picture"))
            return picture_of_unknown_size()

    def from_array(array: Any, *args: Any, **kwargs: Any) -> Any:
        return make(data_arrays.without_marks(array), *args, **kwargs)

    make = module.fromarray
    return [(module, "open", opened), (module, "fromarray", from_array)]


def numpy(module: Any) -> List[Replacement]:
    """The replacements in `numpy`: what is read out of a picture, or a list of numbers of data, is data."""

    def changed(original: Any) -> Any:
        def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
            kind = type(value)
            if (kind is list or kind is tuple) and any(map(is_absent, value[: data_arrays.MOST_LOOKED_AT])):
                return absent("an array of what is not known", "missing-file")
            made = original(value, *args, **kwargs)
            if kind is list and unknown_sizes.is_partial(value) and made.dtype.kind in "biuf":
                return data_arrays.data_array((unknown_sizes.size(lasting=True), *made.shape[1:]), made.dtype)
            if data_arrays.is_data(value) or kind.__module__.startswith("PIL.") or is_of_unknown_size(value):
                made = made.view(data_arrays.array_class())
                if getattr(value, "__dict__", {}).get(CHANNELS) and made.ndim == 3:
                    made.__dict__[CHANNELS] = True
                return made
            if (kind is list or kind is tuple) and made.dtype.kind in "biuf" and data_arrays.holds_data(value):
                return made.view(data_arrays.array_class())
            return made

        return convert

    return [(module, name, changed(getattr(module, name))) for name in ("array", "asarray")]
