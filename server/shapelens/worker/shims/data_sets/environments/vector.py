"""Several environments in one (`gym.vector`): they have the spaces of the first, and step nothing, all at once."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, List

from ....unknown import data_arrays
from ....unknown.stand_ins import absent
from ...compilers import Replacement
from .spaces import observed


def replacements(module: ModuleType, make: Callable[..., Any], steps_in_five: bool) -> List[Replacement]:
    """The replacements for several environments in one."""
    vector = module.vector

    def of_functions(functions: Any, *args: Any, **kwargs: Any) -> Any:
        functions = list(functions)
        return _vector_environment(module, functions[0](), len(functions), steps_in_five)

    def of_name(name: Any, num_envs: int = 1, *args: Any, **kwargs: Any) -> Any:
        return _vector_environment(module, make(name), num_envs, steps_in_five)

    found: List[Replacement] = [(vector, name, of_functions) for name in ("SyncVectorEnv", "AsyncVectorEnv") if hasattr(vector, name)]
    return found + [(owner, name, of_name) for owner, name in ((module, "make_vec"), (vector, "make")) if hasattr(owner, name)]


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
    """Information beside the observations of environments: nobody knows, and what it holds at the end of an episode can be asked for."""

    def __missing__(self, key: Any) -> Any:
        return absent("what an environment tells", "unavailable")


def _of_several(module: ModuleType, space: Any, count: int) -> Any:
    """The space of several environments that have this one each."""
    if not isinstance(space, module.spaces.Space):
        return space
    return module.vector.utils.batch_space(space, count)
