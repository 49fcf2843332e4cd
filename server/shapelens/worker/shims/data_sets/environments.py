"""Environments of gym and gymnasium: they step nothing, and give observations of their space; `?` where nothing tells of the space.

An environment that can be made says itself what its spaces are. For one that cannot (a simulator that is not installed, a name that is not
registered here) the spaces are those of its documentation. Several in one (`gym.vector`) have the spaces of the first.
"""

from __future__ import annotations

import math
import re
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...unknown import data_arrays, unknown_sizes
from ...unknown.stand_ins import absent
from ..compilers import Replacement
from .absences import say

# By name, versions apart: what the documentation says of observations and actions; a number of actions, or the shape of one.
Described = Tuple[Tuple[int, ...], Any]
DESCRIBED: Dict[str, Described] = {
    "CartPole": ((4,), 2), "MountainCar": ((2,), 3), "MountainCarContinuous": ((2,), (1,)), "Pendulum": ((3,), (1,)), "Acrobot": ((6,), 3),
    "LunarLander": ((8,), 4), "LunarLanderContinuous": ((8,), (2,)), "BipedalWalker": ((24,), (4,)), "BipedalWalkerHardcore": ((24,), (4,)),
    "CarRacing": ((96, 96, 3), (3,)), "HalfCheetah": ((17,), (6,)), "Hopper": ((11,), (3,)), "Walker2d": ((17,), (6,)),
    "Ant": ((27,), (8,)), "Ant-v2": ((111,), (8,)), "Ant-v3": ((111,), (8,)), "Ant-v5": ((105,), (8,)), "Humanoid": ((376,), (17,)),
    "Humanoid-v5": ((348,), (17,)), "HumanoidStandup": ((376,), (17,)), "HumanoidStandup-v5": ((348,), (17,)), "Swimmer": ((8,), (2,)),
    "Reacher": ((11,), (2,)), "Reacher-v5": ((10,), (2,)), "Pusher": ((23,), (7,)), "InvertedPendulum": ((4,), (1,)),
    "InvertedDoublePendulum": ((11,), (1,)), "InvertedDoublePendulum-v5": ((9,), (1,)),
}  # fmt: skip
# Games of the Atari: the number of their actions.
GAMES = {
    "Alien": 18, "Amidar": 10, "Assault": 7, "Asterix": 9, "Asteroids": 14, "Atlantis": 4, "BankHeist": 18, "BattleZone": 18,
    "BeamRider": 9, "Berzerk": 18, "Bowling": 6, "Boxing": 18, "Breakout": 4, "Centipede": 18, "ChopperCommand": 18, "CrazyClimber":
    9, "Defender": 18, "DemonAttack": 6, "DoubleDunk": 18, "Enduro": 9, "FishingDerby": 18, "Freeway": 3, "Frostbite": 18, "Gopher":
    8, "Gravitar": 18, "Hero": 18, "IceHockey": 18, "Jamesbond": 18, "Kangaroo": 18, "Krull": 18, "KungFuMaster": 14,
    "MontezumaRevenge": 18, "MsPacman": 9, "NameThisGame": 6, "Phoenix": 8, "Pitfall": 18, "Pong": 6, "PrivateEye": 18, "Qbert": 6,
    "Riverraid": 18, "RoadRunner": 18, "Robotank": 18, "Seaquest": 18, "Skiing": 3, "Solaris": 18, "SpaceInvaders": 6, "StarGunner":
    18, "Surround": 5, "Tennis": 18, "TimePilot": 10, "Tutankham": 8, "UpNDown": 6, "Venture": 18, "VideoPinball": 9, "WizardOfWor":
    10, "YarsRevenge": 18, "Zaxxon": 18,
}  # fmt: skip
# What the actions of games are called that have all 18 of them; the others have some.
MEANINGS = (
    *("NOOP", "FIRE", "UP", "RIGHT", "LEFT", "DOWN", "UPRIGHT", "UPLEFT", "DOWNRIGHT", "DOWNLEFT", "UPFIRE", "RIGHTFIRE", "LEFTFIRE"),
    *("DOWNFIRE", "UPRIGHTFIRE", "UPLEFTFIRE", "DOWNRIGHTFIRE", "DOWNLEFTFIRE"),
)
# Wrappers that give observations of another shape, by their name of today: it, of the observation's shape and what the wrapper is given.
SHAPES: Dict[str, Callable[..., Tuple[int, ...]]] = {
    "ResizeObservation": lambda shape, size: (*((size, size) if isinstance(size, int) else size), *shape[2:]),
    "GrayscaleObservation": lambda shape, keep_dim=False: (*shape[:2], 1) if keep_dim else shape[:2],
    "FrameStackObservation": lambda shape, stack_size, **kwargs: (stack_size, *shape),
    "FlattenObservation": lambda shape: (math.prod(shape),),
    "AtariPreprocessing": lambda shape, noop_max=30, frame_skip=4, screen_size=84, *args, **kwargs: (screen_size, screen_size),
}
# Wrappers of earlier versions, by the names that they have now, and what their arguments were called.
RENAMED = {"GrayScaleObservation": "GrayscaleObservation", "FrameStack": "FrameStackObservation", "num_stack": "stack_size"}
_GAME = re.compile(r"(?:ALE/)?([A-Z]\w*?)(-ram|-ramDeterministic|-ramNoFrameskip)?(Deterministic|NoFrameskip)?-v\d+")


def gym(module: ModuleType) -> List[Replacement]:
    """The replacements in `gym` and `gymnasium`."""
    make = module.make
    steps_in_five = _version(module) >= (0, 26)

    def made(name: Any, *args: Any, **kwargs: Any) -> Any:
        spaces: Optional[Tuple[Any, Any]] = None
        spec = None
        try:
            real = make(name, *args, **kwargs)
            spaces, spec = (real.observation_space, real.action_space), getattr(real, "spec", None)
        except Exception as error:  # Whatever the machine lacks for it.
            if not isinstance(name, str):
                raise
            spaces = _documented(module, name)
            known = "its documented spaces are used" if spaces is not None else "its spaces are unknown"
            say("%s cannot be made here (%s): %s" % (name, type(error).__name__, known), "unavailable")
        return _environment(module, str(name), spaces, spec, steps_in_five)

    replacements: List[Replacement] = [(module, "make", made)]
    if hasattr(getattr(module, "vector", None), "VectorEnv"):
        replacements += _several(module, made, steps_in_five)
    if hasattr(module, "wrappers"):
        replacements += _wrappers(module, module.wrappers)
    return replacements


def _several(module: ModuleType, make: Callable[..., Any], steps_in_five: bool) -> List[Replacement]:
    """The replacements for several environments in one."""
    vector = module.vector

    def of_functions(functions: Any, *args: Any, **kwargs: Any) -> Any:
        functions = list(functions)
        return _vector_environment(module, functions[0](), len(functions), steps_in_five)

    def of_name(name: Any, num_envs: int = 1, *args: Any, **kwargs: Any) -> Any:
        return _vector_environment(module, make(name), num_envs, steps_in_five)

    found: List[Replacement] = [(vector, name, of_functions) for name in ("SyncVectorEnv", "AsyncVectorEnv") if hasattr(vector, name)]
    return found + [(owner, name, of_name) for owner, name in ((module, "make_vec"), (vector, "make")) if hasattr(owner, name)]


def _wrappers(module: ModuleType, wrappers: ModuleType) -> List[Replacement]:
    """The replacements in `gymnasium.wrappers`: nothing is filmed, pictures need no library, and names of earlier versions are known."""
    lookup = getattr(wrappers, "__getattr__", None)

    def of_shape(name: str) -> Any:
        base: Any = module.ObservationWrapper

        def wrapped(env: Any, *args: Any, **kwargs: Any) -> Any:
            space = env.observation_space
            shape = SHAPES[name](tuple(space.shape), *args, **{RENAMED.get(key, key): value for key, value in kwargs.items()})
            wrapper = base(env)
            wrapper.observation_space = module.spaces.Box(_lowest(space), _highest(space), shape, space.dtype)
            wrapper.observation = lambda seen: observed(wrapper.observation_space)
            return wrapper

        return wrapped

    def recorded(env: Any, *args: Any, **kwargs: Any) -> Any:
        """A film of an environment, or statistics of several at once."""
        return env

    def find(name: str) -> Any:
        if RENAMED.get(name, name) in SHAPES:
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
        (wrappers, "RecordVideo", recorded),
        (wrappers, "RecordEpisodeStatistics", with_statistics),
        (wrappers, "__getattr__", find),
    ]


def _lowest(space: Any) -> Any:
    return space.low.min() if getattr(space, "low", None) is not None else 0


def _highest(space: Any) -> Any:
    return space.high.max() if getattr(space, "high", None) is not None else 255


def _version(module: ModuleType) -> Tuple[int, ...]:
    if module.__name__ == "gymnasium":
        return (1,)
    return tuple([int(part) for part in re.findall(r"\d+", str(getattr(module, "__version__", "0")))[:2]])


def _documented(module: ModuleType, name: str) -> Optional[Tuple[Any, Any]]:
    import numpy

    spaces = module.spaces
    plain = name.rpartition("/")[2]
    known = DESCRIBED.get(plain) or DESCRIBED.get(plain.partition("-v")[0])
    if known is not None:
        shape, actions = known
        if len(shape) == 3:
            seen = spaces.Box(0, 255, shape, numpy.uint8)
        else:
            seen = spaces.Box(-numpy.inf, numpy.inf, shape, numpy.float32)
        return seen, spaces.Discrete(actions) if isinstance(actions, int) else spaces.Box(-1.0, 1.0, actions, numpy.float32)
    game = _GAME.fullmatch(name)
    if game is not None and game[1] in GAMES:
        return spaces.Box(0, 255, (128,) if game[2] else (210, 160, 3), numpy.uint8), spaces.Discrete(GAMES[game[1]])
    return None


def _environment(module: ModuleType, name: str, spaces: Optional[Tuple[Any, Any]], spec: Any, steps_in_five: bool) -> Any:
    base: Any = module.Env

    class Environment(base):  # type: ignore[misc]
        """An environment that steps nothing."""

        metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 30, "render.modes": ["rgb_array", "human"]}  # noqa: RUF012
        render_mode = "rgb_array"
        reward_range = (-float("inf"), float("inf"))
        _max_episode_steps = 500

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


def _vector_environment(module: ModuleType, first: Any, count: int, steps_in_five: bool) -> Any:
    """Several environments like the first one."""
    base: Any = module.vector.VectorEnv

    class VectorEnvironment(base):  # type: ignore[misc]
        """Environments that step nothing, all at once."""

        metadata = getattr(first, "metadata", {})
        render_mode = "rgb_array"
        is_vector_env = True
        closed = False

        def __init__(self) -> None:
            self.num_envs = count
            self.envs = [first] * count
            self.spec = getattr(first, "spec", None)
            self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
            self.observation_space = _of_several(module, self.single_observation_space, count)
            self.action_space = _of_several(module, self.single_action_space, count)

        def reset(self, *args: Any, **kwargs: Any) -> Any:
            seen = observed(self.observation_space)
            return (seen, _Information()) if steps_in_five else seen

        def step(self, actions: Any) -> Any:
            seen, rewards = observed(self.observation_space), data_arrays.data_array((count,), "float64")
            over, truncated = data_arrays.data_array((count,), "bool"), data_arrays.data_array((count,), "bool")
            return (seen, rewards, over, truncated, _Information()) if steps_in_five else (seen, rewards, over, _Information())

        def seed(self, *args: Any) -> List[int]:
            return [0] * count

        def close(self, *args: Any, **kwargs: Any) -> None:
            """Nothing to end."""

        def __del__(self) -> None:
            """Nothing to end either."""

    return VectorEnvironment()


class _Information(dict):  # type: ignore[type-arg]
    """What environments tell besides: nobody knows, and what it holds at the end of an episode can be asked for."""

    def __missing__(self, key: Any) -> Any:
        return absent("what an environment tells", "unavailable")


def _of_several(module: ModuleType, space: Any, count: int) -> Any:
    """The space of several environments that have this one each."""
    if not isinstance(space, module.spaces.Space):
        return space
    return module.vector.utils.batch_space(space, count)


def observed(space: Any) -> Any:
    """An observation of a space, of data."""
    kind = type(space).__name__
    if kind in ("Box", "MultiBinary", "MultiDiscrete"):
        return data_arrays.data_array(space.shape, space.dtype)
    if kind == "Discrete":
        unknown_sizes.state.met = True
        return unknown_sizes.UnknownInt(int(getattr(space, "start", 0)))
    if kind == "Dict":
        return {key: observed(part) for key, part in space.spaces.items()}
    if kind == "Tuple":
        return tuple([observed(part) for part in space.spaces])
    return absent("an observation", "unavailable")
