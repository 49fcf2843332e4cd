"""Random arrays of numpy that memory has no room for: their values are data, so that one element stands for all of them.

A call of numpy's own that fills one cannot be interrupted either: the time limit, met in its lock, ends the process.
"""

from __future__ import annotations

import functools
import math
import operator
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from ...unknown.data_arrays import data_array
from ..compilers import Replacement

LARGEST = 1 << 22  # elements that are made: they take less than a tenth of a second

# The place of `size` among the arguments; -1 where all of them are sizes.
_SIZE_AT: Dict[str, int] = {
    **dict.fromkeys(("rand", "randn"), -1),
    **dict.fromkeys(("random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential"), 0),
    **dict.fromkeys(("choice", "poisson", "exponential", "rayleigh", "geometric", "chisquare", "standard_gamma", "standard_t"), 1),
    **dict.fromkeys(("normal", "uniform", "randint", "integers", "beta", "gamma", "binomial", "laplace", "lognormal", "logistic"), 2),
}
_WHOLE_NUMBERS = ("randint", "integers", "poisson", "binomial", "geometric")


def functions(module: ModuleType) -> List[Replacement]:
    """The replacements for the functions of numpy.random that make arrays, and for the one that makes a generator."""
    made = [(module, name, _unless_large(module.__dict__[name], name)) for name in _SIZE_AT if callable(module.__dict__.get(name))]
    return [*made, (module, "default_rng", _generator(module))] if hasattr(module, "default_rng") else made


def _unless_large(make: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(make)
    def making(*args: Any, **kwargs: Any) -> Any:
        sizes = _sizes(args, kwargs, _SIZE_AT[name])
        if sizes is None or math.prod(sizes) <= LARGEST:
            return make(*args, **kwargs)
        import numpy

        given = kwargs.get("dtype")
        if given is None and name == "choice":
            given = numpy.asarray(args[0] if args else kwargs.get("a")).dtype
        return data_array(sizes, numpy.dtype(given if given is not None else int if name in _WHOLE_NUMBERS else float))

    return making


def _sizes(args: Any, kwargs: Dict[str, Any], place: int) -> Optional[List[int]]:
    """The shape that is asked for; None where there is none, or nobody can tell."""
    asked = args if place < 0 else kwargs["size"] if "size" in kwargs else args[place] if len(args) > place else None
    if asked is None:
        return None
    try:
        return [operator.index(each) for each in (asked if isinstance(asked, (tuple, list)) else (asked,))]
    except TypeError:
        return None


def _generator(module: Any) -> Callable[..., Any]:
    """numpy.random.default_rng: a generator whose large arrays take no memory."""
    original = module.default_rng
    methods = {name: _method(getattr(module.Generator, name), name) for name in _SIZE_AT if hasattr(module.Generator, name)}
    kind = type("Generator", (module.Generator,), {**methods, "__module__": module.Generator.__module__})

    @functools.wraps(original)
    def default_rng(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        return kind(found.bit_generator) if type(found) is module.Generator else found

    return default_rng


def _method(make: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(make)
    def making(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _unless_large(functools.partial(make, self), name)(*args, **kwargs)

    return making
