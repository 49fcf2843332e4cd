"""Arrays of numpy that hold data: their shapes and dtypes are known, their values are not, and what is computed from them is data too.

A single number of such an array is an unknown one (unknown_sizes.py). How many elements a mask or `unique` finds is an unknown size.
A large array takes no memory, whatever is computed from it: all of its elements are one.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

from . import unknown_sizes
from .conditions import decide

LARGEST_REAL = 1 << 20  # elements of an array that has memory of its own, so that it can be written to
# Sizes of pictures whose size is not known: primes that no model has among its sizes. As sizes of a tensor they are unknown.
PICTURE_HEIGHT, PICTURE_WIDTH = 379, 503
OTHER_HEIGHT, OTHER_WIDTH = 431, 389  # of another such picture, to see which sizes of a result follow from them
PICTURE_SIZES = (PICTURE_HEIGHT, PICTURE_WIDTH, OTHER_HEIGHT, OTHER_WIDTH)
CHANNELS = "_shapelens_any_channels"  # an attribute of arrays: the number of channels is not known either

MOST_LOOKED_AT = 64  # items of a list that may hold data

# Functions whose result is of a size that only data has.
OF_UNKNOWN_SIZE = {
    "unique",
    "nonzero",
    "flatnonzero",
    "argwhere",
    "bincount",
    "union1d",
    "intersect1d",
    "setdiff1d",
    "trim_zeros",
    "extract",
}

# Functions that take along axes whatever an array holds.
REDUCES = {
    "mean", "std", "var", "sum", "prod", "max", "min", "amax", "amin", "any", "all", "median", "nanmean", "nanstd", "nansum", "argmax",
    "argmin", "ptp", "average",
}  # fmt: skip

# Functions whose result has the shape of their first argument.
KEEPS_SHAPE = {"sort", "argsort", "clip", "nan_to_num", "round", "around", "flip", "roll", "copy", "zeros_like", "ones_like", "empty_like"}
JOINS: Dict[str, Optional[int]] = {
    "concatenate": None,
    "vstack": 0,
    "row_stack": 0,
    "hstack": 1,
    "stack": None,
}  # by the dim along which they do


def data_array(shape: Sequence[int], dtype: Any) -> Any:
    """An array of data of this shape; it can be written to unless it is large."""
    import numpy

    count = 1
    for size in shape:
        count *= int(size)
    whole = numpy.zeros(tuple(shape), dtype) if count <= LARGEST_REAL else numpy.broadcast_to(numpy.zeros((), dtype), tuple(shape))
    return whole.view(array_class())


def marked(value: Any) -> Any:
    """The result of a function of numpy's on data: arrays hold data, single numbers are unknown ones."""
    import numpy

    if isinstance(value, numpy.ndarray):
        return number(value.dtype) if not value.ndim else value if value.dtype == object else value.view(array_class())
    if isinstance(value, numpy.generic):
        return number(value.dtype)
    if type(value) in (tuple, list):
        return type(value)([marked(item) for item in value])
    return value


def number(dtype: Any) -> Any:
    """A single number of an array of data."""
    if dtype.kind == "b":
        return decide()
    if dtype.kind in "iu":
        found: Any = unknown_sizes.whole(None)
    elif dtype.kind == "f":
        found = unknown_sizes.UnknownFloat(0.5)
    else:
        return dtype.type()
    found.dtype = dtype
    return found


def shape_of(array: Any) -> Any:
    """The shape of an array of data as that of a tensor: sizes that nobody knows are unknown ones."""
    any_channels = array.__dict__.get(CHANNELS, False)

    def known(size: int) -> int:
        if any_channels and size == 3:
            return unknown_sizes.count()
        return unknown_sizes.size(lasting=True) if size in PICTURE_SIZES else size

    return tuple([known(size) for size in array.shape])


def known_shape(array: Any, shape: Tuple[int, ...]) -> Tuple[Optional[int], ...]:
    """The shape of any array of numpy's, with None for sizes that nobody knows; `shape` is the one that numpy keeps."""
    if is_data(array):
        any_channels = array.__dict__.get(CHANNELS, False)
        return tuple([None if _is_open(size) or (any_channels and size == 3) else size for size in shape])
    return tuple([None if unknown_sizes.is_unknown(size) else size for size in shape]) if unknown_sizes.state.met else shape


def _is_open(size: int) -> bool:
    return size in PICTURE_SIZES or unknown_sizes.is_unknown(size)


def is_data(value: Any) -> bool:
    """True if a value is such an array."""
    return bool(type(value).__dict__.get("_shapelens_data"))


def is_large(value: Any) -> bool:
    """True if a value is such an array that has no memory of its own."""
    return is_data(value) and value.size > LARGEST_REAL


def holds_data(value: Any) -> bool:
    """True if a list of numbers, or of lists of them, has one that only data has; only the first of each list count."""
    if type(value) in (list, tuple):
        return any(holds_data(part) for part in value[:MOST_LOOKED_AT])
    return type(value) in (unknown_sizes.UnknownInt, unknown_sizes.UnknownFloat) or is_data(value)


def array_class() -> Any:
    """The class of these arrays."""
    if not hasattr(array_class, "made"):
        array_class.made = _made()  # type: ignore[attr-defined]
    return array_class.made  # type: ignore[attr-defined]


def _made() -> Any:  # noqa: C901  Of all functions in it the sum.
    import numpy

    def plain(value: Any) -> Any:
        if isinstance(value, numpy.ndarray):
            return value.view(numpy.ndarray) if type(value) is DataArray else value
        if type(value) in (tuple, list):
            return type(value)([plain(item) for item in value])
        if type(value) is dict:
            return {name: plain(item) for name, item in value.items()}
        return value

    def like(given: Any, result: Any) -> Any:
        """A result, which does not know how many channels it has if what it was made from does not."""
        if is_data(result) and any(is_data(value) and value.__dict__.get(CHANNELS) for value in given):
            result.__dict__[CHANNELS] = True
        return result

    def broadcast(shapes: Any) -> Any:
        """The shape of what arrays of these shapes are broadcast to: a size that is not known is as large as it has to be."""
        rank = max(map(len, shapes))
        known = [[1 if unknown_sizes.is_unknown(size) else size for size in (1,) * (rank - len(shape)) + shape] for shape in shapes]
        found = numpy.broadcast_shapes(*map(tuple, known))
        whole = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        unknown = [next((shape[dim] for shape in whole if unknown_sizes.is_unknown(shape[dim])), None) for dim in range(rank)]
        return tuple([size if other is None or size > 1 else other for size, other in zip(found, unknown)])

    def elementwise(ufunc: Any, inputs: Any) -> Any:
        """The result for large arrays, by one element of each."""
        arrays = [numpy.asarray(plain(value)) for value in inputs]
        shape = broadcast([array.shape for array in arrays])
        ones = [numpy.ones((1,) * array.ndim, array.dtype) if array.ndim else array for array in arrays]
        found = ufunc(*ones)
        parts = found if isinstance(found, tuple) else (found,)
        out = tuple([numpy.broadcast_to(numpy.asarray(part).reshape(()), shape) for part in parts])
        return out if isinstance(found, tuple) else out[0]

    def reduced(function: Any, array: Any, axis: Any = None, *, keepdims: Any = False, **kwargs: Any) -> Any:
        """The result of taking axes of a large array together, by the function's of one element."""
        found = function(numpy.ones((1,) * array.ndim, array.dtype), axis=axis, keepdims=bool(keepdims))
        taken = range(array.ndim) if axis is None else [one % array.ndim for one in (axis if isinstance(axis, tuple) else (axis,))]
        kept = [1 if dim in taken else size for dim, size in enumerate(array.shape) if keepdims or dim not in taken]
        return data_array(kept, numpy.asarray(found).dtype)

    def joined(name: str, arrays: Any, axis: Any = 0) -> Any:
        """The result of putting arrays together, of which some are large."""
        arrays = [numpy.asarray(plain(array)) for array in arrays]
        ones = [numpy.ones((1,) * array.ndim, array.dtype) for array in arrays]
        function = getattr(numpy, name)
        fixed = JOINS[name]
        small = function(ones, axis=axis) if fixed is None else function(ones)
        along: int = axis % small.ndim if fixed is None else min(fixed, small.ndim - 1)
        if name == "stack":
            shape = list(arrays[0].shape)
            shape.insert(along, len(arrays))
        else:
            shapes = [(1,) * (small.ndim - array.ndim) + array.shape for array in arrays]
            sizes = [each[along] for each in shapes]
            shape = list(shapes[0])
            shape[along] = unknown_sizes.size(lasting=True) if unknown_sizes.any_unknown(sizes) else sum(sizes)
        return data_array(shape, small.dtype)

    class DataArray(numpy.ndarray):
        """An array of data."""

        _shapelens_data = True

        def __array_finalize__(self, origin: Any) -> None:
            if is_data(origin) and origin.__dict__.get(CHANNELS):
                self.__dict__[CHANNELS] = True

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            large = any(isinstance(value, numpy.ndarray) and value.size > LARGEST_REAL for value in inputs)
            with numpy.errstate(all="ignore"):
                out = kwargs.get("out")
                if large and out is not None and method == "__call__":
                    return out[0]
                if large and method == "__call__" and ufunc.signature is None:
                    return marked(elementwise(ufunc, inputs))
                if large and method == "reduce" and out is None:
                    return marked(reduced(ufunc.reduce, inputs[0], **{"axis": 0, **kwargs}))
                result = getattr(ufunc, method)(*plain(inputs), **plain(kwargs))
            return out[0] if out is not None and len(out) == 1 else like(inputs, marked(result))

        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            name = func.__name__
            if name in OF_UNKNOWN_SIZE or (name == "where" and len(args) == 1):
                return self._of_unknown_size(func, args, kwargs)
            with numpy.errstate(all="ignore"):
                if name in REDUCES and args and isinstance(args[0], numpy.ndarray) and args[0].size > LARGEST_REAL:
                    return marked(reduced(func, args[0], *args[1:2], **kwargs))
                if name in JOINS and args and type(args[0]) in (list, tuple) and any(is_large(part) for part in args[0]):
                    return joined(name, args[0], *args[1:2], **{key: value for key, value in kwargs.items() if key == "axis"})
                if name in KEEPS_SHAPE and args and is_large(args[0]):
                    small = func(numpy.ones((1,) * args[0].ndim, args[0].dtype), *args[1:], **kwargs)
                    return like(args, data_array(args[0].shape, small.dtype))
                return like(args, marked(func(*plain(args), **plain(kwargs))))

        def _of_unknown_size(self, func: Any, args: Any, kwargs: Any) -> Any:
            first = numpy.asarray(plain(args[0] if args else next(iter(kwargs.values()))))
            size = unknown_sizes.size(lasting=True)
            if func.__name__ == "argwhere":
                return data_array((size, first.ndim), numpy.int64)
            if func.__name__ in ("nonzero", "where"):
                return tuple([data_array((size,), numpy.int64) for _ in range(first.ndim)])
            if func.__name__ == "flatnonzero":
                return data_array((size,), numpy.int64)
            if func.__name__ == "bincount":
                return data_array((size,), numpy.int64 if "weights" not in kwargs and len(args) < 2 else numpy.float64)
            if func.__name__ != "unique":
                return data_array((size,), first.dtype)
            axis = kwargs.get("axis")
            shape = (size,) if axis is None else tuple([size if dim == axis % first.ndim else n for dim, n in enumerate(first.shape)])
            found = [data_array(shape, first.dtype)]
            for name, length in (("return_index", size), ("return_inverse", first.size), ("return_counts", size)):
                if kwargs.get(name):
                    found.append(data_array((length,), numpy.int64))
            return found[0] if len(found) == 1 else tuple(found)

        def nonzero(self) -> Any:
            return numpy.nonzero(self)

        def __getitem__(self, index: Any) -> Any:
            mask = index if isinstance(index, numpy.ndarray) and index.dtype == bool else None
            if mask is not None and is_data(mask):
                rest = self.shape[mask.ndim :]
                return data_array((unknown_sizes.size(lasting=True), *rest), self.dtype)
            if isinstance(index, tuple) and any(is_data(part) and part.dtype == bool for part in index):
                raise ValueError("a mask of data among other indices is not known")
            if isinstance(index, unknown_sizes.UnknownInt) or (isinstance(index, int) and unknown_sizes.is_unknown(index)):
                index = 0
            if self.ndim and isinstance(index, slice):
                index = unknown_sizes.within_length(index, len(self))
            if isinstance(index, tuple):
                index = tuple([0 if type(part) is unknown_sizes.UnknownInt else plain(part) for part in index])
            return like((self,), marked(numpy.ndarray.__getitem__(self.view(numpy.ndarray), plain(index))))

        def __setitem__(self, index: Any, value: Any) -> None:
            is_known = type(value) not in unknown_sizes.STAND_INS
            if is_known and self.flags.writeable and not unknown_sizes.any_unknown((index,) if isinstance(index, int) else ()):
                numpy.ndarray.__setitem__(self.view(numpy.ndarray), plain(index), plain(value))

        def __iter__(self) -> Any:
            count = len(self)
            if unknown_sizes.is_unknown(count):
                unknown_sizes.state.cut = True
                count = unknown_sizes.few()
            return (self[place] for place in range(count))

        def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
            if is_large(self):
                return like((self,), data_array(self.shape, dtype))
            return numpy.ndarray.astype(self, dtype, *args, **kwargs)

        def copy(self, *args: Any, **kwargs: Any) -> Any:
            return like((self,), data_array(self.shape, self.dtype)) if is_large(self) else numpy.ndarray.copy(self, *args, **kwargs)

        def flatten(self, *args: Any, **kwargs: Any) -> Any:
            return self.reshape(-1) if is_large(self) else numpy.ndarray.flatten(self, *args, **kwargs)

        def ravel(self, *args: Any, **kwargs: Any) -> Any:
            return self.reshape(-1) if is_large(self) else numpy.ndarray.ravel(self, *args, **kwargs)

        def item(self, *index: Any) -> Any:
            return number(self.dtype)

        def tolist(self) -> Any:
            return [part.tolist() if is_data(part) else part for part in self]

        def __bool__(self) -> bool:
            if self.size > 1:
                raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
            return decide()

        def __int__(self) -> int:
            return unknown_sizes.size(lasting=True)

        def __index__(self) -> int:
            if self.ndim:  # So that torch takes an array for data, not for a size.
                raise TypeError("only integer scalar arrays can be converted to a scalar index")
            return int(self)

        def __float__(self) -> float:
            return 0.5

        def __deepcopy__(self, memo: Any) -> Any:
            return data_array(self.shape, self.dtype)

    DataArray.__name__ = DataArray.__qualname__ = "ndarray"
    DataArray.__module__ = "numpy"
    return DataArray


def without_marks(value: Any) -> Any:
    """An array of data as an ordinary one, for functions that take no other."""
    import numpy

    return value.view(numpy.ndarray) if is_data(value) else value
