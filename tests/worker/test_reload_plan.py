"""What has to be loaded anew for the next run (worker/reload/reload_plan.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from shapelens.worker.reload.reload_plan import Action, ReloadPlan, plan_reload

NET, BLOCKS, ZOO, TRAIN = "zoo.net", "zoo.blocks", "zoo", "train"


@dataclass
class NextRun:
    """A run whose document `zoo/net.py` has another text than the one that is loaded; what else is asked of it is written down."""

    is_of_another_root: bool = False
    is_half_loaded: bool = False
    is_the_loaded_run: bool = False
    moved_imports: str = ""
    changed: frozenset[str] = frozenset()
    patch: Any = None
    monkeypatches: str = ""
    documents: frozenset[str] = frozenset({NET})
    dependents: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset({BLOCKS})
    may_miss_another_package: bool = False
    by_python: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    def is_loaded_by_python(self, module: str) -> bool:
        return module in self.by_python

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name != "asked":
            self.asked.append(name)
        return super().__getattribute__(name)


def plan(**answers: Any) -> ReloadPlan:
    return plan_reload(NextRun(**answers))


def test_another_text_of_the_document_loads_the_document_alone() -> None:
    planned = plan()
    assert planned.action is Action.RELOAD and planned.modules == {NET} and planned.is_of_document_alone


def test_what_was_loaded_serves_the_very_same_run() -> None:
    run = NextRun(is_the_loaded_run=True)
    assert plan_reload(run).action is Action.NOTHING
    assert "moved_imports" not in run.asked  # Its text needs no parsing.


def test_functions_that_have_other_code_are_patched() -> None:
    run = NextRun(patch=[], dependents=frozenset({ZOO}), needed=frozenset({ZOO}), monkeypatches="the project has changed torch.relu")
    planned = plan_reload(run)
    assert planned.action is Action.PATCH and planned.patch == [] and not planned.modules
    assert not {"dependents", "needed", "monkeypatches"} & set(run.asked)  # What takes long is not looked at.


def test_a_changed_file_is_loaded_anew_with_all_that_took_values_from_it() -> None:
    planned = plan(changed=frozenset({"/work/zoo/blocks.py"}), dependents=frozenset({BLOCKS, ZOO}), patch=[])
    assert planned.action is Action.RELOAD and planned.changed == {"/work/zoo/blocks.py"}
    assert planned.modules == {NET, BLOCKS, ZOO} and not planned.is_of_document_alone


def test_a_changed_file_that_no_module_is_of_asks_for_another_process_as_well() -> None:
    planned = plan(changed=frozenset({"/work/zoo/unused.py"}))
    assert planned.modules == {NET} and not planned.is_of_document_alone


def test_who_imports_the_document_stays_loaded_where_the_document_does_not_need_it() -> None:
    planned = plan(dependents=frozenset({ZOO, TRAIN}))
    assert planned.modules == {NET} and planned.dependents == {ZOO, TRAIN} and planned.is_of_document_alone


def test_who_imports_the_document_is_loaded_anew_where_the_document_needs_it() -> None:
    planned = plan(dependents=frozenset({ZOO, TRAIN}), needed=frozenset({ZOO}))
    assert planned.modules == {NET, ZOO, TRAIN} and not planned.is_of_document_alone


def test_a_module_that_python_has_executed_is_not_executed_again() -> None:
    by_python = frozenset({ZOO})
    planned = plan(dependents=frozenset({ZOO}), needed=frozenset({ZOO}), by_python=by_python)
    assert planned.action is Action.LOAD_ALL and planned.reason.endswith(": zoo")
    assert plan(dependents=frozenset({ZOO}), by_python=by_python).action is Action.RELOAD  # It stays loaded.


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"is_of_another_root": True}, "another workspace folder"),
        ({"is_half_loaded": True}, "what was loaded last was not loaded to its end"),
        ({"moved_imports": "an import might be found in another folder"}, "an import might be found in another folder"),
        ({"monkeypatches": "the project has changed torch.relu"}, "the project has changed torch.relu"),
        ({"may_miss_another_package": True}, "something that another document may import is missing"),
    ],
)
def test_where_it_is_not_sure_another_process_loads_everything(answer: dict[str, Any], reason: str) -> None:
    assert plan(**answer) == ReloadPlan(Action.LOAD_ALL, reason)


def test_what_is_half_loaded_serves_no_run_at_all() -> None:
    assert plan(is_half_loaded=True, is_the_loaded_run=True, patch=[]).action is Action.LOAD_ALL
