"""Each module's part of the memory of a training step: its storages, and what was allocated in the steps inside of it."""

from __future__ import annotations

from collections.abc import Sequence

from shapelens.analysis.structure.training_memory import is_kept, optimizer_states, rounding
from shapelens.profiles import Allocation, ModelProfile, ProfiledModule


class ModuleMemory:
    """Bytes, as a device's allocator counts them; none where the training step is not known.

    kept: by step, what it allocated itself that backward keeps. temporaries: by module, the most that is there at one moment of what was
    allocated in its forward or backward and is not kept, gradients of parameters aside. Raises ValueError for an unknown optimizer.
    """

    def __init__(self, profile: ModelProfile, optimizer: str, device: str) -> None:
        self._round_up = rounding(device)
        self._profile = profile
        self.kept = [0] * len(profile.steps)
        self.temporaries = [0] * len(profile.modules)
        self._gradients: list[int] = []
        self._states: list[int] = []
        memory = profile.training
        if memory is None or memory.error:
            return
        self._gradients = [self._round_up(size) for size in memory.trained_storages]
        self._states = optimizer_states(memory, optimizer, device)
        passing = [made for made in memory.allocations if made.kind == "activation" and 0 <= made.step < len(profile.steps)]
        for made in passing:
            if is_kept(made, memory.forward_end):
                self.kept[made.step] += self._round_up(made.bytes)
        self._add_temporaries([made for made in passing if not is_kept(made, memory.forward_end)])

    def held(self, module: ProfiledModule) -> int:
        """Of its parameters, those that are not trained included, and its buffers."""
        memory = self._profile.training
        if memory is None or memory.error:
            return 0
        sizes = [memory.parameter_storages[number] for number in module.parameters]
        return sum(map(self._round_up, sizes + [memory.buffer_storages[number] for number in module.buffers]))

    def gradients(self, module: ProfiledModule) -> int:
        """Of the gradients of its parameters."""
        return sum(self._gradients[number] for number in module.trained) if self._gradients else 0

    def optimizer_state(self, module: ProfiledModule) -> int:
        """Of what the optimizer keeps for its parameters."""
        return sum(self._states[number] for number in module.trained) if self._states else 0

    def _add_temporaries(self, allocations: Sequence[Allocation]) -> None:
        """Each allocation is one of all the modules in whose calls it was made."""
        owners = self._modules_of_steps()
        events: list[list[tuple[int, int]]] = [[] for _ in self._profile.modules]
        for made in allocations:
            size = self._round_up(made.bytes)
            for number in owners[made.step]:
                events[number].append((made.born, size))
                if made.died is not None:
                    events[number].append((made.died, -size))
        for number, changes in enumerate(events):
            changes.sort()
            live = 0
            for _, change in changes:
                live += change
                self.temporaries[number] = max(self.temporaries[number], live)

    def _modules_of_steps(self) -> list[frozenset[int]]:
        """By step: the modules in whose calls it is, with those that only hold such a module, as a ModuleList does."""
        paths = {module.path: number for number, module in enumerate(self._profile.modules)}
        found: list[frozenset[int]] = []
        for step in self._profile.steps:
            above = found[step.parent] if step.parent is not None else frozenset()
            if step.module is not None:
                path = self._profile.modules[step.module].path
                ends = [len(path), *(place for place, character in enumerate(path) if character == ".")]
                above = above | {paths[path[:end]] for end in ends if path[:end] in paths}
            found.append(above)
        return found
