"""Runs that need not be done again: kept with all that they read, found as long as none of it has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapelens.cache.environments import Environments
from shapelens.cache.inputs import ReadState, ResultInputs, digest, version
from shapelens.cache.store import Store
from shapelens.dataclass_json import build, plain
from shapelens.protocol import PATIENT_SECONDS, Finished, Hello, Run, Search, Trace, Traced

_FUNCTION = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


@dataclass
class KeptRun:
    """Holds what a run has told, how it ended, and what it read."""

    traced: Traced
    finished: Finished
    read: ReadState = field(default_factory=list)


@dataclass
class RunCache:
    """A run is the same if its texts, its examples and its interpreter are.

    What was known of the examples of classes, which files use these, and which others are to be shown are compared when a run is looked up:
    they differ with what else is open, and need not matter.
    """

    store: Store
    inputs: ResultInputs = field(default_factory=ResultInputs)
    environments: Environments = field(init=False)

    def __post_init__(self) -> None:
        self.environments = Environments(self.store)

    def learn(self, interpreter: str, hello: Hello) -> None:
        """A worker has begun under an interpreter: what it sees from now on may be kept."""
        self.environments.learn(interpreter, hello)

    def find(self, run: Run, interpreter: str) -> KeptRun | None:
        """Returns what came out of a run before, as an answer to this one; not what was short of time, where this one has more."""
        environment = self.environments.identity(interpreter)
        value = self.store.get(_key(run, environment)) if environment is not None else None
        if not isinstance(value, dict):
            return None
        try:
            traced, finished = build(Traced, value["traced"]), build(Finished, value["finished"])
            same = self._same(value, run, traced.trace)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # Another program wrote this entry.
        if finished.hurried and run.program >= PATIENT_SECONDS:
            return None
        traced.run_id = finished.run_id = run.run_id
        return KeptRun(traced, finished, value["read"]) if same else None

    def keep(self, run: Run, interpreter: str, kept: KeptRun) -> ReadState | None:
        """Remember how a run went, if it came to an end of its own. Returns what it read, or None where it is not kept."""
        environment = self.environments.worked_in(interpreter)
        if (
            environment is None
            or kept.finished.outcome != "ok"
            or kept.finished.left_out
            or was_cut_short(run.search, kept.finished, kept.traced.trace)
        ):
            return None
        trace, users = kept.traced.trace, run.search.users if run.search is not None else []
        files = {*trace.files, *kept.finished.read, *users} - {run.file}
        read = self.inputs.now(files, folders_of_missing(trace, run.root))
        value = {
            "read": read,
            "users": sorted(users),
            "observe": sorted(run.observe),
            "traced": plain(kept.traced),
            "finished": plain(kept.finished),
        }
        self.store.put(_key(run, environment), value)
        return read

    def _same(self, value: dict[str, Any], run: Run, trace: Trace) -> bool:
        if not self.inputs.same(value["read"]):
            return False
        if not set(run.observe).intersection(trace.files).issubset(value["observe"]):
            return False
        if run.search is None:
            return True
        found = {(example.target, example.expression) for example in trace.examples}
        known = all((known.target, known.expression) in found for known in run.search.known)
        return known and (not run.search.users or sorted(run.search.users) == value["users"])


def was_cut_short(search: Search | None, finished: Finished, trace: Trace) -> bool:
    """True if a search might find more with more time, or on another day, with less to do for the machine."""
    if search is None or search.seconds >= PATIENT_SECONDS or finished.seconds < search.seconds:
        return False
    return any(not example.expression or example.doubtful for example in trace.examples)


def folders_of_missing(trace: Trace, root: str) -> list[str]:
    """The folders in which modules were looked for that were not there: once they are, a run is another one."""
    if not any(note.code == "missing-import" for note in trace.notes):
        return []
    return search_folders([trace.file, *trace.files], root)


def search_folders(files: Iterable[str], root: str) -> list[str]:
    """The folders that imports of files of a project look into."""
    folders = {root, str(Path(root, "src"))} if root else set()
    for file in files:
        place = os.path.dirname(file)  # noqa: PTH120
        while place and place not in folders:
            folders.add(place)
            if not root or not place.startswith(root + os.sep):
                break
            place = os.path.dirname(place)  # noqa: PTH120
    return sorted(folders)


def _key(run: Run, environment: str) -> str:
    search = run.search.classes if run.search is not None else None
    examples = [[example.target, example.expression] for example in run.examples]
    limits = [run.deadline, run.memory_limit, run.named, *run.allow]
    program: object = _as_program(run) if run.program else None
    program = [program, run.followed_for] if run.followed_for else program
    return digest("run", version(), environment, run.file, run.text, run.root, examples, run.overlays, limits, search, program)


def _as_program(run: Run) -> list[list[str]]:
    """Returns what a program's result depends on besides its text: the examples of classes, whose methods are called so. Those of functions
    only save a search that would end alike.
    """
    functions = set(_FUNCTION.findall(run.text))
    return sorted([each.target, each.expression] for each in run.known if each.target not in functions)
