"""Plans what has to be done so that what is loaded is what the next run would load. Making the plan changes nothing that is loaded."""

from __future__ import annotations

from enum import Enum
from typing import FrozenSet, NamedTuple, Optional, Protocol

from ..loading.hot_patch import Patch

NO_NAMES: FrozenSet[str] = frozenset()


class Action(Enum):
    """Names what a plan does."""

    NOTHING = "nothing"  # the run finds everything as it was loaded
    PATCH = "patch"  # some functions of the document get other code
    RELOAD = "reload"  # some modules are loaded anew
    LOAD_ALL = "load all"  # another process has to load everything


class ReloadPlan(NamedTuple):
    """Holds what the next run needs, and why.

    modules: the names of those that are loaded anew. dependents: the names of those that took values from the document or from `changed`
    files. Where the document needs none of the dependents, they stay loaded, and get the document's new values under the names that
    they know (`monai/networks/nets/__init__.py` imports all networks, but none of them needs it).
    """

    action: Action
    reason: str
    patch: Optional[Patch] = None
    changed: FrozenSet[str] = NO_NAMES  # files besides the document
    modules: FrozenSet[str] = NO_NAMES
    dependents: FrozenSet[str] = NO_NAMES

    @property
    def is_of_document_alone(self) -> bool:
        """True if no file but the document has changed, and no other module is loaded anew."""
        return not self.changed and self.modules.isdisjoint(self.dependents)


class Comparison(Protocol):
    """The next run, compared with what is loaded. An answer is computed when it is first asked for; the later ones here take longer."""

    @property
    def is_of_another_root(self) -> bool:
        """True if it is a run of another workspace folder."""

    @property
    def is_half_loaded(self) -> bool:
        """True if something ended the loading that came before: what is there then is of no text."""

    @property
    def is_the_loaded_run(self) -> bool:
        """True if it is the run that everything was loaded for, nothing was run since, and each file is as it was."""

    @property
    def moved_imports(self) -> str:
        """Why imports might find something else than they did; empty where they find the same."""

    @property
    def changed(self) -> FrozenSet[str]:
        """The files, besides the document, that have another text than they were loaded with."""

    @property
    def patch(self) -> Optional[Patch]:
        """The functions of the document that need other code; None where that is not all that the document's text needs."""

    @property
    def monkeypatches(self) -> str:
        """Returns what was changed by what was loaded, and another text would find as it was; empty where nothing was."""

    @property
    def documents(self) -> FrozenSet[str]:
        """The names of the modules that were loaded from the document's file."""

    @property
    def dependents(self) -> FrozenSet[str]:
        """The names of the other modules that are of changed files, or took values from those or from the document, directly or not."""

    @property
    def needed(self) -> FrozenSet[str]:
        """The names of the modules that the document's new text takes values from."""

    @property
    def may_miss_another_package(self) -> bool:
        """True if loading told of missing packages that another document may not ask for."""

    def is_loaded_by_python(self, module: str) -> bool:
        """True if Python itself executed a module, so that it cannot be executed once more in the way of ours."""


def plan_reload(run: Comparison) -> ReloadPlan:
    """The plan for a run. Raises SyntaxError where its document is not Python."""
    if run.is_of_another_root:
        return _load_all("another workspace folder")
    if run.is_half_loaded:
        return _load_all("what was loaded last was not loaded to its end")
    if run.is_the_loaded_run:
        return ReloadPlan(Action.NOTHING, "everything is as it was loaded")
    if run.moved_imports:
        return _load_all(run.moved_imports)
    if not run.changed and run.patch is not None:
        return ReloadPlan(Action.PATCH, "only the code of functions is another one", run.patch)
    if run.monkeypatches:
        return _load_all(run.monkeypatches)
    if run.may_miss_another_package:
        return _load_all("something that another document may import is missing")
    if not run.changed and run.needed.isdisjoint(run.dependents):
        return ReloadPlan(Action.RELOAD, "the document is another one", None, run.changed, run.documents, run.dependents)
    modules = run.documents | run.dependents
    by_python = sorted(filter(run.is_loaded_by_python, modules))
    if by_python:
        return _load_all("a module that is not ours has to be loaded again: %s" % by_python[0])
    reason = "other files have changed" if run.changed else "the document needs modules that took values from it"
    return ReloadPlan(Action.RELOAD, reason, None, run.changed, modules, run.dependents)


def _load_all(reason: str) -> ReloadPlan:
    return ReloadPlan(Action.LOAD_ALL, reason)
