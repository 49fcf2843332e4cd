"""The example of a class with another value of one setting, as text: of none of these texts is known whether it runs.

A setting is an argument of the constructor, of what the constructor is given, or of `forward`. The `forward` of a part may take one that no
text of the example speaks of: the part is called with it by hand (`once_more.py`).
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable, Dict, List, Optional

from ...search.adjusting.expression_edit import Draft, EditableArgument
from ...search.candidates.configs import looks_like_config
from ...search.code.settings_branches import LAYER, Branch, values_into
from ...search.evidence import BuildPlan
from ...search.trials.trial import parameters_of

MOST_VALUES = 2  # of one setting


class SettingTexts:
    """The examples of one class with other values of its settings.

    class_of: what a name in an expression stands for; layer: the class of a layer that changes nothing, as the document writes it.
    """

    def __init__(self, cls: type, class_of: Callable[[str], Any], layer: str) -> None:
        self._cls = cls
        self._class_of = class_of
        self._layer = layer

    def expressions(self, example: ast.Call, owner: type, branch: Branch, branches: List[Branch]) -> List[str]:
        """The example with the setting of a branch of `owner`, the class or a part of it; [] where that setting cannot be changed."""
        model, arguments = ast.unparse(example.func), ast.unparse(example)[len(ast.unparse(example.func)) :]
        if branch.name == "training":
            return [model + (".train()" if branch.value is True else ".eval()") + arguments]
        values, found = values_into(branch, branches), []
        built = self._argument(Draft(BuildPlan(model)), owner, branch.name)
        if branch.value is LAYER:
            return [built.changed(self._layer + "()").text() + arguments] if built is not None and _may_be(built.value, LAYER) else []
        if built is not None:
            found += [built.changed(repr(value)).text() + arguments for value in values if _may_be(built.value, value)][:MOST_VALUES]
        setting = _setting_of_forward(self._cls, branch.name, len(example.args))
        if setting is not None:
            whole = Draft(BuildPlan(ast.unparse(example)))
            called = EditableArgument(whole, whole.tree, setting.name)
            given = called.value or ast.Constant(setting.default)
            found += [called.changed(repr(value)).text() for value in values if _may_be(given, value)][:MOST_VALUES]
        return found

    def said_in(self, example: Optional[ast.Call], owner: type, branch: Branch) -> Optional[str]:
        """Returns the text of a branch's setting in the call with which an example builds its model; None where there is none."""
        built = self._argument(Draft(BuildPlan(ast.unparse(example.func))), owner, branch.name) if example is not None else None
        return built.text if built is not None else None

    def settings_of_part(self, owner: type, branch: Branch, branches: List[Branch]) -> List[Dict[str, Any]]:
        """Returns the settings that lead into a branch of a part. The part's `forward` takes the setting, and that of the class does
        not."""
        setting = _setting_of_forward(owner, branch.name)
        if owner is self._cls or setting is None or branch.value is LAYER or _setting_of_forward(self._cls, branch.name) is not None:
            return []
        default = ast.Constant(setting.default)
        return [{setting.name: value} for value in values_into(branch, branches) if _may_be(default, value)][:MOST_VALUES]

    def settings_that_build_part(self, owner: type, branch: Branch, branches: List[Branch]) -> List[Dict[str, Any]]:
        """Returns the settings that lead into a branch of a part. The part's constructor takes the setting, and the code that builds the
        part omits it."""
        parameter = next((each for each in parameters_of(owner) if each.name == branch.name), None)
        if owner is self._cls or parameter is None or not isinstance(parameter.default, (bool, int, str)) or branch.value is LAYER:
            return []
        default = ast.Constant(parameter.default)
        return [{parameter.name: value} for value in values_into(branch, branches) if _may_be(default, value)][:MOST_VALUES]

    def _argument(self, draft: Draft, owner: type, name: str) -> Optional[EditableArgument]:
        """Where a setting of `owner` is said in the text that builds the model, or could be."""
        calls, whole, parameters = draft.calls(owner.__name__), draft.calls(self._cls.__name__), _parameters(owner)
        if calls and name in parameters:
            return _argument_of(draft, calls[0], parameters, name)
        if owner is not self._cls and name in parameters:
            if whole and name in _parameters(self._cls):  # It may hand it on.
                return _argument_of(draft, whole[0], _parameters(self._cls), name)
            return (
                EditableArgument(draft, whole[0], name) if whole and _hands_on(self._cls) else None
            )  # Else what builds it says what it is.
        given = draft.named(name)
        if given:
            return given[0]
        for argument in draft.arguments():
            value = argument.value
            if isinstance(value, ast.Call) and looks_like_config(argument.name):
                made = self._class_of(ast.unparse(value.func)) if isinstance(value.func, (ast.Name, ast.Attribute)) else None
                if isinstance(made, type) and name in _parameters(made):
                    return EditableArgument(draft, value, name)
        for part in ast.walk(draft.tree):
            if isinstance(part, ast.Dict) and None in part.keys:  # Beside the settings that an object has.
                return EditableArgument(draft, part, name)
        return None


def _argument_of(draft: Draft, call: ast.Call, parameters: List[str], name: str) -> EditableArgument:
    """The argument of a call for a parameter, in its place or by its name."""
    place = parameters.index(name)
    return EditableArgument(draft, call, name, place if place < len(call.args) else None)


def _setting_of_forward(cls: type, name: str, given: int = 0) -> Optional[inspect.Parameter]:
    """The parameter of this name that `forward` has behind so many arguments, with a number, truth or text as its default."""
    parameters = parameters_of(getattr(cls, "forward", None))[1 + given :]
    return next((each for each in parameters if each.name == name and isinstance(each.default, (bool, int, str))), None)


def _may_be(given: Optional[ast.AST], value: Any) -> bool:
    """True if this value may replace the argument of a setting: a number or text is no place for a truth value."""
    if given is None:
        return True
    return isinstance(given, ast.Constant) and (given.value is None or type(given.value) is type(value)) and given.value != value


def _parameters(cls: type) -> List[str]:
    return [each.name for each in parameters_of(cls)]


def _hands_on(cls: type) -> bool:
    """True if a class takes keywords that it does not name: it hands them on to its parts."""
    return any(each.kind is each.VAR_KEYWORD for each in parameters_of(cls))
