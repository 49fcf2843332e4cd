"""An expression that builds a model, taken apart so that single arguments of it can be changed."""

from __future__ import annotations

import ast
import copy
import re
from typing import Dict, Iterator, List, Optional

from ....stated.syntax_trees import keyword, last_name
from ..evidence import BuildPlan, sizes_in

_PLACE = re.compile("⟨([^⟩]*)⟩")
_MARK = re.compile(r"\b__size_(\d+)__\b")


class EditableArgument:
    """One argument of a call in a draft, one entry of a dict in it, or one that is not there yet."""

    def __init__(self, draft: "Draft", holder: ast.AST, name: str, position: Optional[int] = None) -> None:
        self.draft = draft
        self.holder = holder  # the ast.Call or ast.Dict
        self.name = name
        self.position = position  # among a call's positional arguments

    @property
    def value(self) -> Optional[ast.expr]:
        """The expression that is given; None where it is left out."""
        if isinstance(self.holder, ast.Call):
            if self.position is not None:
                return self.holder.args[self.position]
            return keyword(self.holder, self.name)
        assert isinstance(self.holder, ast.Dict)
        for key, value in zip(self.holder.keys, self.holder.values):
            if isinstance(key, ast.Constant) and key.value == self.name:
                return value
        return None

    @property
    def text(self) -> Optional[str]:
        """The template that is given; None where it is left out."""
        value = self.value
        return None if value is None else self.draft.template_of(value)

    def changed(self, template: str, sizes: Optional[Dict[str, int]] = None) -> BuildPlan:
        """The construction with another value for this argument; `sizes` are those of new places."""
        draft, holder = self.draft.copy_with(self.holder)
        value = draft.parse(template)
        if isinstance(holder, ast.Call) and last_name(holder.func) == "SimpleNamespace":
            for same in draft.calls("SimpleNamespace"):  # The items of a list are alike, and stay so.
                if same is not holder and ast.dump(same) == ast.dump(holder):
                    _give(same, self.name, value)
        if isinstance(holder, ast.Call):
            if self.position is not None:
                holder.args[self.position] = value
            else:
                _give(holder, self.name, value)
        elif isinstance(holder, ast.Dict):
            for place, key in enumerate(holder.keys):
                if isinstance(key, ast.Constant) and key.value == self.name:
                    holder.values[place] = value
                    break
            else:
                holder.keys.append(ast.Constant(self.name))
                holder.values.append(value)
        return draft.plan({**self.draft.sizes, **(sizes or {})})


class Draft:
    """A construction's template as a syntax tree, in which names stand for the places of sizes."""

    def __init__(self, plan: BuildPlan) -> None:
        self.origin = plan
        self.sizes = dict(plan.sizes)
        self.names: List[str] = []
        self.tree = self.parse(plan.template)

    def parse(self, template: str) -> ast.expr:
        """The tree of a template. Raises SyntaxError."""
        return ast.parse(_PLACE.sub(self._mark, template), mode="eval").body

    def _mark(self, match: "re.Match[str]") -> str:
        if match[1] not in self.names:
            self.names.append(match[1])
        return "__size_%d__" % self.names.index(match[1])

    def template_of(self, node: ast.AST) -> str:
        """The template of a part."""
        return _MARK.sub(lambda match: "⟨%s⟩" % self.names[int(match[1])], ast.unparse(node))

    def plan(self, sizes: Dict[str, int]) -> BuildPlan:
        """The draft as a plan."""
        template = self.template_of(self.tree)
        return BuildPlan(template, {name: sizes[name] for name in sizes_in(template)}, self.origin.evidence, self.origin.where)

    def copy_with(self, node: ast.AST) -> "tuple[Draft, ast.AST]":
        """A copy, and what stands in the place of a node there."""
        made = copy.copy(self)
        made.names = list(self.names)
        memo: Dict[int, object] = {}
        made.tree = copy.deepcopy(self.tree, memo)
        return made, memo[id(node)]  # type: ignore[return-value]

    def calls(self, name: str = "") -> List[ast.Call]:
        """The calls in the draft, outermost first; those of what is called `name`, if that is given."""
        found = [part for part in ast.walk(self.tree) if isinstance(part, ast.Call)]
        return [call for call in found if not name or last_name(call.func) == name]

    def arguments(self) -> Iterator[EditableArgument]:
        """All arguments and entries, outermost first."""
        for part in ast.walk(self.tree):
            if isinstance(part, ast.Call):
                for position in range(len(part.args)):
                    yield EditableArgument(self, part, "", position)
                for keyword in part.keywords:
                    if keyword.arg is not None:
                        yield EditableArgument(self, part, keyword.arg)
            elif isinstance(part, ast.Dict):
                for key in part.keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield EditableArgument(self, part, key.value)

    def named(self, name: str) -> List[EditableArgument]:
        """The arguments of this name."""
        return [argument for argument in self.arguments() if argument.name == name]


def _give(call: ast.Call, name: str, value: ast.expr) -> None:
    """Set a keyword of a call."""
    given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
    if given is not None:
        given.value = value
    else:
        call.keywords.append(ast.keyword(name, value))


def prefixes_in(tree: ast.Module) -> List[str]:
    """The texts of a document that may be prefixes of keywords: `enc_`, `decoder_`."""
    texts = [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return list(dict.fromkeys(text for text in texts if re.fullmatch("[a-z]+_", text)))[:3]
