"""A construction that failed, with what is needed to write other values for its arguments."""

from __future__ import annotations

import ast
import re
from typing import Any, List, Optional

from ...sandbox.exceptions import message_of
from ..candidates.annotated_kinds import NOTHING, AnnotatedKind
from ..candidates.build_plans import Building, is_whole, parameter_of, required_parameters
from ..candidates.document_scope import DocumentScope
from ..candidates.parameter_values import ParameterValues
from ..code.uses import Uses
from .expression_edit import Draft, EditableArgument
from .failure_site import FailureSite
from .type_errors import LISTS


class FailedConstruction:
    """A construction that failed, its place, and the values that come into question instead."""

    def __init__(self, draft: Draft, error: BaseException, cls: type, scope: DocumentScope) -> None:
        self.draft = draft
        # What ends an attempt is no Exception; what raised is its cause.
        self.error = error.__cause__ if error.__cause__ is not None and not isinstance(error, Exception) else error
        self.message = message_of(error)
        self.cls = cls
        self.scope = scope
        self.failure = FailureSite(draft, error)
        self.values = ParameterValues(scope, lambda *asked: None, is_whole(cls, scope.tree), cls)
        self.values.build = Building(self.values).build
        self.values.sizes = dict(draft.sizes)

    def value(self, name: str, kind: str = "", uses: Optional[Uses] = None, owner: Optional[type] = None) -> List[str]:
        """Values for something of this name, by what the class does with it."""
        asked = AnnotatedKind(kind) if kind else NOTHING
        if uses is None:
            known = parameter_of(owner or self.cls, name)
            if known is not None:
                asked, uses = (asked if kind else known[0]), known[1]
        return self.values.values(name, asked, uses or self._uses_of_part(name) or Uses())

    def _uses_of_part(self, name: str) -> Optional[Uses]:
        """Returns the uses of a setting of this name, of whatever config object the class takes."""
        waiting = [uses for _, _, uses, _ in required_parameters(self.cls)]
        for uses in waiting:
            if name in uses.parts:
                return uses.parts[name]
            waiting.extend(uses.parts.values())
            if len(waiting) > 500:
                break
        return None

    def owner(self, argument: EditableArgument) -> Optional[type]:
        return self.scope.class_of(argument.holder) if isinstance(argument.holder, ast.Call) else None

    def written(self, argument: EditableArgument, value: Any) -> str:
        """A number is a guess that may be changed again."""
        if isinstance(value, int) and not isinstance(value, bool):
            name = self.size_name(argument)
            self.values.sizes[name] = value
            return "⟨%s⟩" % name
        if isinstance(value, LISTS) and value and all(isinstance(item, int) for item in value):
            base = argument.name or "size"
            for place, item in enumerate(value):
                self.values.sizes["%s[%d]" % (base, place)] = item
            inner = ", ".join("⟨%s[%d]⟩" % (base, place) for place in range(len(value)))
            return ("[%s]" if isinstance(value, list) else "(%s,)" if len(value) == 1 else "(%s)") % inner
        return repr(value)

    def size_name(self, argument: EditableArgument) -> str:
        match = re.fullmatch("⟨([^⟩]*)⟩", argument.text or "")
        return match[1] if match is not None else argument.name or "size"

    def built(self, cls: type) -> Optional[str]:
        if cls in (int, float, bool, str, list, tuple, dict):
            return {int: "4", float: "0.5", bool: "True", str: "'none'", list: "[16, 32]", tuple: "(16, 32)", dict: "{}"}[cls]
        subclasses = [other for other in self.scope.classes.values() if issubclass(other, cls) and other is not self.cls]
        for candidate in [cls] + subclasses:
            text = self.values.build(candidate, "", 1)
            if text is not None:
                return text
        return None
