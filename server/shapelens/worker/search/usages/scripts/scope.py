"""The names of a function while its statements are gone through, and what a call is given."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Set, Tuple

from .module_names import Function
from .values import UNKNOWN, ScriptValue


@dataclass
class ScriptScope:
    """The names of a function, or of the module."""

    label: str = ""  # what its calls are said to come from: "test_forward()"
    values: Dict[str, ScriptValue] = field(default_factory=dict)  # by dotted name: "net", "self.net"
    local: Set[str] = field(default_factory=set)  # names that the function assigns somewhere
    parent: Optional["ScriptScope"] = None
    owner: Optional[ast.ClassDef] = None  # the class whose method it is
    functions: Dict[str, Function] = field(default_factory=dict)  # that it defines
    is_script: bool = False  # a `__main__` block, or the module itself
    returned: List[ScriptValue] = field(default_factory=list)

    def find(self, name: str) -> Optional[ScriptValue]:
        """Returns the value of a dotted name; None for one that no scope knows."""
        first = name.partition(".")[0]
        scope: Optional[ScriptScope] = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            if first in scope.local or first in scope.values:
                return UNKNOWN if first == name else None
            scope = scope.parent
        return None

    def function(self, name: str) -> Optional[Function]:
        """A function that this one, or one around it, defines."""
        scope: Optional[ScriptScope] = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope.parent
        return None


@dataclass
class CallArguments:
    """The arguments of a call."""

    positional: List[ScriptValue]
    keywords: List[Tuple[Optional[str], ScriptValue]]

    def nodes(self, drop: Sequence[str] = ()) -> Tuple[List[ast.expr], List[ast.keyword]]:
        """As expressions. Raises Unresolved."""
        kept = [(name, value) for name, value in self.keywords if name not in drop]
        return [value.resolved() for value in self.positional], [ast.keyword(name, value.resolved()) for name, value in kept]

    def by_name(self, name: str, position: Optional[int] = None) -> Optional[ScriptValue]:
        """An argument, or None where it is not given."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        return self.positional[position] if position is not None and position < len(self.positional) else None
