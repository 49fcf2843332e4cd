"""Wrappers of environments: those that give observations of another shape, and those that film."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

from ...compilers import Replacement
from .spaces import observed

# Wrappers that give observations of another shape, by their name of today: it, of the observation's shape and what the wrapper is given.
SHAPES: Dict[str, Callable[..., Tuple[int, ...]]] = {
    "ResizeObservation": lambda shape, size: (*((size, size) if isinstance(size, int) else size), *shape[2:]),
    "GrayscaleObservation": lambda shape, keep_dim=False: (*shape[:2], 1) if keep_dim else shape[:2],
    "FrameStackObservation": lambda shape, stack_size, **kwargs: (stack_size, *shape),
    "FlattenObservation": lambda shape: (math.prod(shape),),
    "AtariPreprocessing": lambda shape, noop_max=30, frame_skip=4, screen_size=84, *args, **kwargs: (screen_size, screen_size),
}
RENAMED = {"GrayScaleObservation": "GrayscaleObservation", "FrameStack": "FrameStackObservation"}  # what earlier versions called them
_ARGUMENTS = {"num_stack": "stack_size"}  # and their arguments


def replacements(module: ModuleType) -> List[Replacement]:
    """The replacements in `gymnasium.wrappers`: nothing is filmed, pictures need no library, and names of earlier versions are known.

    A wrapper has what the environment in it has, and `seed`, as before gymnasium 1.0.
    """
    wrappers = module.wrappers
    lookup = getattr(wrappers, "__getattr__", None)

    def of_shape(name: str) -> Any:
        base: Any = module.ObservationWrapper

        def wrapped(env: Any, *args: Any, **kwargs: Any) -> Any:
            space = env.observation_space
            shape = SHAPES[name](tuple(space.shape), *args, **{_ARGUMENTS.get(key, key): value for key, value in kwargs.items()})
            wrapper = base(env)
            wrapper.observation_space = module.spaces.Box(_lowest(space), _highest(space), shape, space.dtype)
            wrapper.observation = lambda seen: observed(wrapper.observation_space)
            return wrapper

        return wrapped

    def recorded(env: Any, *args: Any, **kwargs: Any) -> Any:
        """A film of an environment, or statistics of several at once."""
        return env

    def find(name: str) -> Any:
        if name in RENAMED:
            return of_shape(RENAMED[name])
        if lookup is None:
            raise AttributeError(name)
        return lookup(name)

    statistics = wrappers.RecordEpisodeStatistics

    def with_statistics(env: Any, *args: Any, **kwargs: Any) -> Any:
        return statistics(env, *args, **kwargs) if isinstance(env, module.Env) else env

    found: List[Replacement] = [(wrappers, name, of_shape(name)) for name in SHAPES]
    return [
        *found,
        (module.Wrapper, "seed", _seeded),
        (module.Wrapper, "__getattr__", _of_inner),
        (wrappers, "RecordVideo", recorded),
        (wrappers, "RecordEpisodeStatistics", with_statistics),
        (wrappers, "__getattr__", find),
    ]


def _seeded(wrapper: Any, seed: Any = None) -> List[Any]:
    """In the place of `Wrapper.seed`, as its documentation has it: the seeds that are used."""
    return [seed]


def _of_inner(wrapper: Any, name: str) -> Any:
    """In the place of `Wrapper.__getattr__`."""
    if name.startswith("__") or "env" not in vars(wrapper):
        raise AttributeError("%r object has no attribute %r" % (type(wrapper).__name__, name))
    return getattr(wrapper.env, name)


def _lowest(space: Any) -> Any:
    return space.low.min() if getattr(space, "low", None) is not None else 0


def _highest(space: Any) -> Any:
    return space.high.max() if getattr(space, "high", None) is not None else 255
