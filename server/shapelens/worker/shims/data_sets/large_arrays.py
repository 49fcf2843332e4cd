"""Arrays of numpy that memory has no room for, or that take long to be filled: one element stands for all of them.

A replay buffer for a million pictures takes no memory so. The values of a random array are data in any case, and a call of numpy's own that
fills a large one cannot be interrupted: the time limit, met in its lock, ends the process.
"""

from __future__ import annotations

import functools
import math
import operator
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from ...sandbox.draws import begin_again
from ...unknown.data_arrays import data_array
from ..compilers import Replacement

LARGEST_FILLED = 1 << 26  # elements that code makes an array of
LARGEST_RANDOM = 1 << 22  # elements that are drawn: they take less than a tenth of a second

# The place of the sizes among the arguments; -1 where all of them are sizes.
_SIZE_AT: Dict[str, int] = {
    **dict.fromkeys(("zeros", "ones", "empty", "full"), 0),
    **dict.fromkeys(("rand", "randn"), -1),
    **dict.fromkeys(("random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential"), 0),
    **dict.fromkeys(("choice", "poisson", "exponential", "rayleigh", "geometric", "chisquare", "standard_gamma", "standard_t"), 1),
    **dict.fromkeys(("normal", "uniform", "randint", "integers", "beta", "gamma", "binomial", "laplace", "lognormal", "logistic"), 2),
}
_FILLED = ("zeros", "ones", "empty", "full")
_WHOLE_NUMBERS = ("randint", "integers", "poisson", "binomial", "geometric")


def filled(module: ModuleType) -> List[Replacement]:
    """The replacements for the functions of numpy that fill an array with one value."""
    return [(module, name, _unless_large(getattr(module, name), name, LARGEST_FILLED)) for name in _FILLED]


def drawn(module: ModuleType) -> List[Replacement]:
    """The replacements for the functions of numpy.random that make arrays, and for the one that makes a generator."""
    begin_again()  # A statement that has brought numpy's generator draws from it.
    names = [name for name in _SIZE_AT if name not in _FILLED and callable(module.__dict__.get(name))]
    made: List[Replacement] = [(module, name, _unless_large(module.__dict__[name], name, LARGEST_RANDOM)) for name in names]
    return [*made, (module, "default_rng", _generator(module))] if hasattr(module, "default_rng") else made


def _unless_large(make: Callable[..., Any], name: str, largest: int) -> Callable[..., Any]:
    """A function that makes an array, where that has no more elements."""

    @functools.wraps(make)
    def making(*args: Any, **kwargs: Any) -> Any:
        sizes = _sizes(args, kwargs, _SIZE_AT[name])
        if sizes is None or math.prod(sizes) <= largest:
            return make(*args, **kwargs)
        return data_array(sizes, _dtype(name, args, kwargs))

    return making


def _sizes(args: Any, kwargs: Dict[str, Any], place: int) -> Optional[List[int]]:
    """The shape that is asked for; None where there is none, or nobody can tell."""
    named = kwargs.get("size", kwargs.get("shape"))
    asked = args if place < 0 else named if named is not None else args[place] if len(args) > place else None
    if asked is None:
        return None
    try:
        return [operator.index(each) for each in (asked if isinstance(asked, (tuple, list)) else (asked,))]
    except TypeError:
        return None


def _dtype(name: str, args: Any, kwargs: Dict[str, Any]) -> Any:
    """The dtype of the array that a call makes."""
    import numpy

    # Where it stands without its name: behind the shape, and behind what an array is filled with.
    place = {"zeros": 1, "ones": 1, "empty": 1, "full": 2}.get(name)
    given = kwargs.get("dtype", args[place] if place is not None and len(args) > place else None)
    if given is None and name in ("full", "choice"):
        told = {"full": ("fill_value", 1), "choice": ("a", 0)}[name]
        return numpy.asarray(kwargs[told[0]] if told[0] in kwargs else args[told[1]]).dtype
    return numpy.dtype(given if given is not None else int if name in _WHOLE_NUMBERS else float)


def _generator(module: Any) -> Callable[..., Any]:
    """numpy.random.default_rng: a generator whose large arrays take no memory."""
    original = module.default_rng
    methods = {name: _method(getattr(module.Generator, name), name) for name in _SIZE_AT if hasattr(module.Generator, name)}
    kind = type("Generator", (module.Generator,), {**methods, "__module__": module.Generator.__module__})

    @functools.wraps(original)
    def default_rng(*args: Any, **kwargs: Any) -> Any:
        if not [given for given in (*args, *kwargs.values()) if given is not None]:
            args, kwargs = (module.randint(2**31 - 1),), {}  # As the statement draws it each time (sandbox/draws.py).
        found = original(*args, **kwargs)
        return kind(found.bit_generator) if type(found) is module.Generator else found

    return default_rng


def _method(make: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(make)
    def making(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _unless_large(functools.partial(make, self), name, LARGEST_RANDOM)(*args, **kwargs)

    return making
