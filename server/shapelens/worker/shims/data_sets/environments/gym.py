"""The replacements for gym and gymnasium: environments step nothing, and give observations of their space; `?` where nothing tells of it.

An environment that can be made says itself what its spaces are. For one that cannot (a simulator that is not installed, a name that is not
registered here) the spaces are those of its documentation. Several in one (`gym.vector`) have the spaces of the first.
"""

from __future__ import annotations

import re
from types import ModuleType, SimpleNamespace
from typing import Any, List, Optional, Tuple

from ....unknown import unknown_sizes
from ....unknown.stand_ins import absent
from ...compilers import Replacement
from ..absences import say
from . import vector, wrappers
from .spaces import documented, observed

MOST_STEPS = 500  # of an episode
# What the actions of games are called that have all 18 of them; the others have some.
MEANINGS = (
    *("NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "UPLEFT", "DOWNRIGHT", "DOWNLEFT", "UPFIRE", "RIGHTFIRE", "LEFTFIRE"),
    *("DOWNFIRE", "UPRIGHTFIRE", "UPLEFTFIRE", "DOWNRIGHTFIRE", "DOWNLEFTFIRE"),
)


def replacements(module: ModuleType) -> List[Replacement]:
    """The replacements in `gym` and `gymnasium`."""
    make = module.make
    steps_in_five = _version(module) >= (0, 26)

    def made(name: Any, *args: Any, **kwargs: Any) -> Any:
        spaces: Optional[Tuple[Any, Any]] = None
        spec: Any = SimpleNamespace(id=str(name), max_episode_steps=MOST_STEPS, reward_threshold=None, kwargs=dict(kwargs))
        try:
            real = make(name, *args, **kwargs)
            spaces, spec = (real.observation_space, real.action_space), getattr(real, "spec", None) or spec
        except Exception as error:  # Whatever the machine lacks for it.
            if not isinstance(name, str):
                raise
            spaces = documented(module, name)
            known = "its documented spaces are used" if spaces is not None else "its spaces are unknown"
            say("%s cannot be made here (%s): %s" % (name, type(error).__name__, known), "unavailable")
        return _environment(module, str(name), spaces, spec, steps_in_five)

    found: List[Replacement] = [(module, "make", made)]
    if hasattr(getattr(module, "vector", None), "VectorEnv"):
        found += vector.replacements(module, made, steps_in_five)
    if hasattr(module, "wrappers"):
        found += wrappers.replacements(module)
    return found


def _version(module: ModuleType) -> Tuple[int, ...]:
    if module.__name__ == "gymnasium":
        return (1,)
    return tuple([int(part) for part in re.findall(r"\d+", str(getattr(module, "__version__", "0")))[:2]])


def _environment(module: ModuleType, name: str, spaces: Optional[Tuple[Any, Any]], spec: Any, steps_in_five: bool) -> Any:
    base: Any = module.Env

    class Environment(base):  # type: ignore[misc]
        """An environment that steps nothing."""

        metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 30, "render.modes": ["rgb_array", "human"]}  # noqa: RUF012
        render_mode = "rgb_array"
        reward_range = (-float("inf"), float("inf"))
        _max_episode_steps = MOST_STEPS

        def __init__(self) -> None:
            found = spaces or (absent("the observations of %s" % name, "unavailable"), absent("the actions of %s" % name, "unavailable"))
            self.observation_space, self.action_space = found
            self.spec = spec
            self.steps = 0

        def reset(self, *args: Any, **kwargs: Any) -> Any:
            self.steps = 0
            seen = observed(self.observation_space)
            return (seen, {}) if steps_in_five else seen

        def step(self, action: Any) -> Any:
            self.steps += 1
            is_over = self.steps >= unknown_sizes.few()  # Nobody knows when it is.
            unknown_sizes.state.cut = unknown_sizes.state.met = True
            seen, reward = observed(self.observation_space), unknown_sizes.UnknownFloat(1.0)
            return (seen, reward, is_over, False, {}) if steps_in_five else (seen, reward, is_over, {})

        def seed(self, *args: Any) -> List[int]:
            return [0]

        def render(self, *args: Any, **kwargs: Any) -> Any:
            return absent("a picture of %s" % name, "unavailable")

        def get_action_meanings(self) -> List[str]:
            """Of a game, as wrappers ask for it."""
            return list(MEANINGS[: self.action_space.n])

        @property
        def ale(self) -> Any:
            return absent("the emulator of %s" % name, "unavailable")

        def close(self) -> None:
            """Nothing to end."""

    return Environment()
