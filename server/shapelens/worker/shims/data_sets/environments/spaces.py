"""The spaces of environments that cannot be made here, as their documentation has them, and observations of a space."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any, Dict, Optional, Tuple

from ....unknown import data_arrays, unknown_sizes
from ....unknown.stand_ins import absent

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
_GAME = re.compile(r"(?:ALE/)?([A-Z]\w*?)(-ram|-ramDeterministic|-ramNoFrameskip)?(Deterministic|NoFrameskip)?-v\d+")


def documented(module: ModuleType, name: str) -> Optional[Tuple[Any, Any]]:
    """The spaces of observations and actions of an environment; None where they are not known."""
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
