"""What takes the place of functions for the time of a run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from shapelens.worker.meta import legacy_constructors
from shapelens.worker.shims import (
    accelerators,
    checkpoints,
    command_line,
    compilers,
    data_loaders,
    distributed,
    file_access,
    network,
    optimizers,
    process_control,
)
from shapelens.worker.shims.data_sets import files
from shapelens.worker.trace import autocast
from shapelens.worker.unknown.stand_ins import absent, is_absent

MODULES = (
    *(accelerators, autocast, checkpoints, command_line, compilers, data_loaders, distributed, file_access),
    *(legacy_constructors, network, optimizers, process_control),
)


def named(function: Any) -> set[str] | None:
    """The parameters that can be given by name; None where any name can be given, or Python cannot tell."""
    try:
        parameters = inspect.signature(getattr(function, "__func__", function)).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}


def replaced() -> Iterator[tuple[str, Any, Any]]:
    for module in MODULES:
        for owner, name, new in module.replacements():
            old = getattr(owner, name, None)
            if callable(new) and callable(old) and name not in ("__exit__", "_sanitize_params"):  # which nobody calls by name
                yield f"{getattr(owner, '__name__', owner)}.{name}", old, new


@pytest.mark.parametrize(("old", "new"), [pytest.param(old, new, id=name) for name, old, new in replaced()])
def test_arguments_may_be_given_by_name(old: Any, new: Any) -> None:
    """`random_split(dataset=…)`, `get_device_properties(device=0)`: each name that the real function has."""
    taken, wanted = named(new), named(old)
    assert taken is None or wanted is None or wanted - {"self", "cls"} <= taken


def test_functions_of_pandas_give_a_stand_in_for_a_table_that_is_not_there() -> None:
    class Pandas(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return lambda value: value

    replaced = {name: function for _, name, function in files.tables(Pandas("pandas"))}
    missing = absent("a table", "missing-file")
    assert is_absent(replaced["to_datetime"](missing)) and is_absent(replaced["concat"]([missing, 1]))
    assert replaced["to_datetime"]("2026-01-01") == "2026-01-01"
