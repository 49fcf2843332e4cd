"""Ways to go on after a construction failed: the exception, and the statement that raised it, say which argument was wrong and how."""

from __future__ import annotations

import ast
import math
import re
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

import torch

from ....stated.syntax_trees import last_name
from ...sandbox.limits import TooLong
from ..candidates.build_plans import parameter_of, unset_sizes, uses_of
from ..candidates.configs import READS_BOTH_WAYS
from ..candidates.document_scope import DocumentScope
from ..candidates.parameter_values import layer_with
from ..code.settings_branches import branches_by_settings, values_into
from ..code.sources import methods
from ..code.uses import Uses
from ..evidence import BuildPlan, sizes_in, with_sizes
from .expression_edit import Draft, EditableArgument, prefixes_in
from .failure_site import names_read
from .preconditions import NO_VALUE, texts_in_message, unequal_widths, values_that_pass
from .replacements import FailedConstruction
from .smaller_models import MANY, left_to_defaults, lighter, shallower
from .type_errors import LISTS, WRONG_TYPES

MOST = 8
MOST_DIMS = 4  # of a tensor that a constructor is given
UNCHANGING = (torch.nn.Identity, torch.nn.PReLU)  # layers that stand for modules of which nothing is known; the latter has a parameter
OF_TENSORS = {"to", "device", "shape", "dim", "size", "float", "view", "unsqueeze", "dtype", "numel", "t", "clone", "detach"}
NOT_A_DICT = r"SimpleNamespace' (object )?(is not (subscriptable|iterable)|does not support)"
Proposal = Tuple[EditableArgument, str]


def adjusted(plan: BuildPlan, error: BaseException, cls: type, names: Mapping[str, Any], tree: ast.Module) -> List[BuildPlan]:
    """The constructions to try after that one raised `error`, the most credible first; [] where the error says nothing."""
    try:
        draft = Draft(plan)
    except SyntaxError:
        return []
    if isinstance(error, TooLong):
        return lighter(draft, DocumentScope(names, tree))
    found: List[BuildPlan] = []
    for argument, template, sizes in _Adjusting(draft, error, cls, DocumentScope(names, tree)).proposals():
        try:
            made = argument.changed(template, sizes)
        except (SyntaxError, KeyError):
            continue
        if made.text() != plan.text() and made not in found:
            found.append(made)
        if len(found) >= MOST:
            break
    return found


def with_few_layers(plan: BuildPlan, names: Mapping[str, Any], tree: ast.Module) -> List[BuildPlan]:
    """The construction with few layers, where it has many of them by default; [] where it has not. How many is no size to be solved for."""
    try:
        found = shallower(Draft(plan), DocumentScope(names, tree), MANY)
    except SyntaxError:
        return []
    own = {name: "⟨%s⟩" % name for name in plan.sizes}
    return [BuildPlan(with_sizes(few.template, {**few.sizes, **own}), dict(plan.sizes), few.evidence, few.where) for few in found]


class _Adjusting(FailedConstruction):
    """The rules, each of which knows one kind of failure."""

    def proposals(self) -> Iterator[Tuple[EditableArgument, str, Dict[str, int]]]:
        """(argument, its new template, the sizes that this needs)"""
        rules: List[Callable[[], Iterator[Proposal]]] = [
            self._missing_argument,
            self._missing_part,
            self._missing_in_layer,
            self._made_by_setting,
            self._missing_key,
            self._none,
            self._unset,
            self._named_in_message,
            self._equal,
            self._refused,
            self._not_positive,
            self._set_later,
            self._lengths,
            self._added,
            self._wrong_type,
            self._divisible,
            self._rank,
            self._rank_of_tensor,
            self._other_class,
        ]
        for rule in rules:
            for argument, template in rule():
                yield argument, template, self.values.sizes

    # --- what is missing ---

    def _missing_argument(self) -> Iterator[Proposal]:
        match = re.search(r"(?:(\w+)\.)?__(?:init|new)__\(\) missing \d+ required .*?arguments?: (.*)", self.message)
        if match is None or not isinstance(self.error, TypeError):
            return
        calls = self.draft.calls(match[1] or "") or ([self.draft.tree] if isinstance(self.draft.tree, ast.Call) else [])
        for call in calls[:1]:
            names = re.findall(r"'(\w+)'", match[2])
            if {keyword.arg for keyword in call.keywords}.issuperset(names):  # They did not get there under their own names.
                prefixes = prefixes_in(self.scope.tree)
                call.keywords = [keyword for keyword in call.keywords if keyword.arg not in names]
                names = [prefix + name for prefix in prefixes for name in names] if prefixes else []
            yield from self._together(call, names)

    def _together(self, call: ast.Call, names: List[str]) -> Iterator[Proposal]:
        """Several arguments that a call lacks, all at once: what raises next is something else."""
        values = {name: self.value(name, owner=self.scope.class_of(call)) for name in names}
        for name in names[:-1]:
            call.keywords.append(ast.keyword(name, self.draft.parse(values[name][0])))
        for template in values[names[-1]][:2] if names else ():
            yield EditableArgument(self.draft, call, names[-1]), template

    def _unset(self) -> Iterator[Proposal]:
        """Sizes of a config object that have to be set, by their default of -1."""
        for call, names in left_to_defaults(self.draft, self.scope, unset_sizes):
            yield from self._together(call, names)
            return

    def _not_positive(self) -> Iterator[Proposal]:
        """A default of 0 or -1 that stands for a size to be given."""
        if not self._wants_a_size():
            return
        for argument, value, _ in self.failure.suspects():
            if type(value) is int and value <= 0:
                for template in self.value(argument.name, "int", owner=self.owner(argument))[:1]:
                    yield argument, template
        is_fraction = isinstance(self.error, ZeroDivisionError) or "greater than 0" in self.message
        for argument, _, _ in self.failure.suspects() if is_fraction else ():
            size = self.draft.sizes.get(self.size_name(argument), 0)
            for times in (4, 16) if 1 < size <= 256 else ():  # A fraction of it came to nothing: `heads = dim // 64`.
                yield argument, self.written(argument, size * times)

    def _wants_a_size(self) -> bool:
        says_so = re.search(r"negative|positive|must be within|greater than (zero|0)|at least", self.message)
        return isinstance(self.error, ZeroDivisionError) or says_so is not None

    def _set_later(self) -> Iterator[Proposal]:
        """`config.n_vocab`, which the class of the settings leaves at 0 or None until the data is read; the rest stays."""
        if not (self._wants_a_size() or "None" in self.message):
            return
        for level in reversed(self.failure.levels):
            for node in names_read(level.statement):
                try:
                    holder, value = (level.evaluate(node.value), level.evaluate(node)) if isinstance(node, ast.Attribute) else (None, 1)
                except Exception:  # Not bound yet, or gone.
                    continue
                if isinstance(node, ast.Attribute) and node.attr in getattr(holder, "__dict__", ()) and _is_unset(value):
                    template = self.value(node.attr, "" if value is None else "int")[0]
                    for argument in self._settings(holder, node.attr):
                        value = argument.value
                        if isinstance(argument.holder, ast.Dict):
                            yield argument, template
                        elif value is not None:
                            yield argument, "SimpleNamespace(**{**vars(%s), %r: %s})" % (self.draft.template_of(value), node.attr, template)

    def _settings(self, holder: Any, name: str) -> Iterator[EditableArgument]:
        """The argument that is an object of a class for settings, or the entry for a setting beside those that such an object has."""
        if isinstance(holder, SimpleNamespace):
            for part in ast.walk(self.draft.tree):
                if isinstance(part, ast.Dict) and None in part.keys:
                    yield EditableArgument(self.draft, part, name)
        elif not isinstance(holder, (torch.nn.Module, type, dict)):
            for argument in self.draft.arguments():
                if isinstance(argument.value, ast.Call) and last_name(argument.value.func) == type(holder).__name__:
                    yield argument

    def _missing_part(self) -> Iterator[Proposal]:
        match = re.search(r"'(?:types\.)?(SimpleNamespace|Config|dict)' object has no attribute '(\w+)'", self.message)
        if match is not None and isinstance(self.error, AttributeError):
            for holder in self._holders(match[1]):
                if match[1] == "dict":
                    continue
                for template in self.value(match[2])[:2]:
                    yield EditableArgument(self.draft, holder, match[2]), template
        yield from self._missing_in_class()
        if re.search(NOT_A_DICT, self.message):
            for argument in self.draft.arguments():
                value = argument.value
                if isinstance(value, ast.Call) and last_name(value.func) == "SimpleNamespace":
                    yield argument, self.draft.template_of(value).replace("SimpleNamespace", READS_BOTH_WAYS, 1)
        if re.search(r"must be a mapping, not.*SimpleNamespace|'dict' object has no attribute", self.message):
            for argument in self.draft.arguments():
                value = argument.value
                if isinstance(value, ast.Call) and last_name(value.func) == "SimpleNamespace":
                    yield argument, "dict" + self.draft.template_of(value)[len("SimpleNamespace") :]
                elif isinstance(value, ast.Dict):
                    yield argument, "%s(%s)" % (READS_BOTH_WAYS, self.draft.template_of(value))

    def _missing_in_layer(self) -> Iterator[Proposal]:
        """Yields the parts that a layer lacks which stands for a module that the constructor takes: an attribute (`backbone.num_features`),
        or parameters (`next(net.parameters())`)."""
        there, name = getattr(self.error, "obj", None), getattr(self.error, "name", None)  # Python 3.10
        identity, with_weight = self.scope.layer("Identity"), self.scope.layer("PReLU")
        for argument in self.draft.arguments():
            value, is_made = argument.value, False
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Call):
                is_made = last_name(value.func.func) == "type"
            is_plain = argument.text in (identity + "()", with_weight + "()")
            if isinstance(self.error, StopIteration) and (is_plain or is_made) and identity in (argument.text or ""):
                yield argument, (argument.text or "").replace(identity, with_weight)
            elif isinstance(there, UNCHANGING) and isinstance(name, str) and is_plain:
                yield argument, layer_with((argument.text or "")[:-2], {name: self.value(name)[0]})
            elif isinstance(there, UNCHANGING) and isinstance(name, str) and is_made:
                yield EditableArgument(self.draft, value.func.args[2], name), self.value(name)[0]  # type: ignore[union-attr]

    def _made_by_setting(self) -> Iterator[Proposal]:
        """A layer that a model lacks, as its constructor only makes it with another value of a setting: `if use_lstm: self.lstm = …`"""
        there, name = getattr(self.error, "obj", None), getattr(self.error, "name", None)  # Python 3.10
        if not isinstance(there, torch.nn.Module) or not isinstance(name, str):
            return
        cls: Any = type(there)
        for function, node in methods(cls):
            branches = branches_by_settings(cls, function.__code__.co_filename)
            for assigned in ast.walk(node):
                if isinstance(assigned, ast.Attribute) and isinstance(assigned.ctx, ast.Store) and assigned.attr == name:
                    for branch in branches:
                        if assigned.lineno in branch.lines:
                            for value in values_into(branch, branches)[:2]:
                                yield from ((argument, self.written(argument, value)) for argument in self.draft.named(branch.name))

    def _missing_in_class(self) -> Iterator[Proposal]:
        """A config class that does not have all that the code asks for: an object that has, with what the class has where it has it."""
        match = re.search(r"'(\w+)' object has no attribute '(\w+)'", self.message)
        there = getattr(self.error, "obj", None)  # Python 3.10
        if match is None or there is None or isinstance(there, (torch.nn.Module, SimpleNamespace, dict)):
            return
        for argument in self.draft.arguments():
            value = argument.value
            if isinstance(value, ast.Call) and last_name(value.func) == match[1] == type(there).__name__:
                uses = uses_of(self.owner(argument) or self.cls, argument.name)
                if uses is not None:
                    uses.part(match[2])
                    uses.add("object")
                    yield argument, self.values.configs.by_parts(uses, "object", 0, there)

    def _holders(self, kind: str) -> List[ast.AST]:
        """The objects in the draft of which one misses an attribute: those that hold what the object at hand holds."""
        made = [
            call for call in self.draft.calls() if last_name(call.func) == kind or (kind == "Config" and isinstance(call.func, ast.Call))
        ]
        there = getattr(self.error, "obj", None)  # Python 3.10
        if there is not None:
            held = set(there if isinstance(there, dict) else vars(there))
            same = [call for call in made if {keyword.arg for keyword in call.keywords} == held]
            made = same or made
        return list(made[:2])

    def _missing_key(self) -> Iterator[Proposal]:
        if not isinstance(self.error, KeyError) or not self.error.args:
            return
        key = self.error.args[0]
        for argument, value, _ in self.failure.suspects():
            if isinstance(key, (str, int)) and type(value) is type(key) and value == key:
                for other in self._keys_of_tables():
                    if type(other) is type(key):
                        yield argument, repr(other)
        if isinstance(key, str):
            holders = [part for part in ast.walk(self.draft.tree) if isinstance(part, ast.Dict)]
            calls = self.draft.calls("dict") + [call for call in self.draft.calls() if isinstance(call.func, ast.Call)]
            for holder in [*holders, *(calls if key.isidentifier() else [])][:2]:
                yield EditableArgument(self.draft, holder, key), self.value(key)[0]

    def _keys_of_tables(self) -> List[Any]:
        """The keys of what the failing statement looks up in."""
        for level in reversed(self.failure.levels):
            for node in ast.walk(level.statement):
                if isinstance(node, ast.Subscript):
                    try:
                        table = level.evaluate(node.value)
                    except Exception:  # It has a call in it that fails again, or a name that is gone.
                        continue
                    if isinstance(table, dict) and table:
                        return list(table)[:4]
        return []

    def _none(self) -> Iterator[Proposal]:
        if "None" not in self.message:
            return
        kind = "list" if re.search(r"not (iterable|subscriptable)|has no len", self.message) else ""
        match = re.search(r"has no attribute '(\w+)'", self.message)
        kind = "tensor" if match is not None and match[1] in OF_TENSORS else kind
        for argument, value, _ in self.failure.suspects():
            if value is None:
                templates = self.value(argument.name, owner=self.owner(argument))
                if kind and not templates[0].startswith(("[", "(")):
                    templates = self.value(argument.name, kind, Uses())
                for template in templates[:2]:
                    yield argument, template

    # --- what was refused ---

    def _refused(self) -> Iterator[Proposal]:
        for argument, value in values_that_pass(self.failure, isinstance(self.error, NameError)):
            if isinstance(value, type):
                text = self.built(value)
                if text is not None:
                    yield argument, text
            elif value is NO_VALUE:
                yield argument, "None"
            elif value is None:
                for template in self.value(argument.name, owner=self.owner(argument))[:2]:
                    yield argument, template
            else:
                alone = isinstance(value, LISTS) and len(value) == 1 and isinstance(argument.value, ast.Constant)  # `Part([size])`
                yield argument, self.written(argument, value[0] if alone else value)

    def _equal(self) -> Iterator[Proposal]:
        """Two widths that have to be the same: all that are as large as the one become as large as the other."""
        for first, second in unequal_widths(self.failure):
            for old, new in ((first, second), (second, first)):
                same = {name: new for name, size in self.draft.sizes.items() if size == old}
                argument = next((found for found in self.draft.arguments() if set(sizes_in(found.text or "")) & set(same)), None)
                if argument is not None and argument.text is not None:
                    before = dict(self.values.sizes)
                    self.values.sizes.update(same)
                    yield argument, argument.text
                    self.values.sizes = before

    def _rank(self) -> Iterator[Proposal]:
        """`getattr(nn, "Conv{}d".format(rank))`"""
        match = re.search(r"has no attribute '\D+(\d+)d'", self.message)
        for argument, value, _ in self.failure.suspects() if match is not None else ():
            if match is not None and str(value) == match[1]:
                for rank in (2, 1, 3):
                    yield argument, self.written(argument, rank)

    def _rank_of_tensor(self) -> Iterator[Proposal]:
        """A tensor with too few dims, as `priors[:, 2:]` says: one with a dim more, of four, as boxes have. A list that is to be one of
        pairs, as a view says of anchors."""
        is_view = "is invalid for input of size" in self.message
        if not is_view and re.search(r"too many indices for (tensor|array)|Dimension out of range", self.message) is None:
            return
        for argument, value, _ in self.failure.suspects():
            if is_view and isinstance(value, LISTS) and value and all(type(item) is int for item in value):
                yield argument, repr([[item, item] for item in value])
            elif isinstance(value, torch.Tensor) and 0 < value.dim() < MOST_DIMS and argument.text is not None:
                yield argument, "torch.ones%s" % self.written(argument, (*value.shape, 4))

    def _divisible(self) -> Iterator[Proposal]:
        """`out_channels must be divisible by groups`, of torch's own layers: the sizes that reach them are made to."""
        match = re.search(r"(\w+)(?: \(\d+\))? must be divisible by (\w+)", self.message)
        if match is None:
            return
        inner = self.failure.innermost.get
        total, part = inner(match[1]), inner(match[2])
        numbers = [(argument, value) for argument, value, _ in self.failure.suspects() if type(value) is int and value > 0]
        if numbers and all(argument.text is None for argument, _ in numbers):
            return  # Defaults that do not fit each other are what the code says.
        if type(total) is int and type(part) is int and part > 0:
            for argument, value in numbers:
                if value != part:
                    yield argument, self.written(argument, value * (part // math.gcd(total, part)))
                else:
                    yield argument, self.written(argument, math.gcd(total, part))
        for argument, value in numbers:
            for other_argument, other in numbers:
                if other_argument is not argument and value % other and value > other:
                    yield argument, self.written(argument, -(-value // other) * other)

    # --- what was of the wrong type ---

    def _added(self) -> Iterator[Proposal]:
        """`features + history` where only one of them is a list: the other one gets as many."""
        if not re.search(r"type\(s\) for \+=?: ('int' and 'list'|'list' and 'int')|can only concatenate list", self.message):
            return
        held = [(argument, value) for argument, value, _ in self.failure.suspects()]
        lists = [argument.text for argument, value in held if isinstance(value, list) and argument.text is not None]
        for argument, value in held:
            if isinstance(value, int) and lists:
                yield argument, lists[0]

    def _lengths(self) -> Iterator[Proposal]:
        match = re.search(r"(?:not enough|too many) values to unpack \(expected (\d+)", self.message)
        out_of_range = re.search(r"(list|tuple) index out of range", self.message)
        if match is None and out_of_range is None and "length" not in self.message:
            return
        for argument, value, _ in self.failure.suspects():
            if isinstance(value, LISTS) and value:
                lengths = [int(match[1])] if match is not None else [len(value) + 1, len(value) + 2, len(value) * 2, len(value) - 1]
                for length in lengths:
                    if length != len(value) and length > 0:
                        yield argument, self.written(argument, type(value)((list(value) + [value[-1]] * length)[:length]))
            elif isinstance(value, str) and match is not None:
                yield argument, self.value(argument.name, "list", Uses(exactly=int(match[1])))[0]

    def _wrong_type(self) -> Iterator[Proposal]:
        for pattern, types, kind in WRONG_TYPES:
            if not re.search(pattern, self.message):
                continue
            for argument, value, _ in self.failure.suspects():
                if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                    continue
                if kind == "list":
                    for length in (3, 2, 4):
                        yield argument, self.written(argument, [value] * length) if isinstance(value, int) else repr([value] * length)
                elif kind == "int" and isinstance(value, LISTS) and value and isinstance(value[0], int):
                    yield argument, self.written(argument, value[0])
                else:
                    uses = Uses()
                    match = re.search(r"has no attribute '(\w+)'", self.message)
                    if kind == "object" and match is not None:
                        uses.part(match[1])
                        uses.add("object")
                    kind = "tensor" if kind == "object" and match is not None and match[1] in OF_TENSORS else kind
                    for template in self.value(argument.name, kind, uses)[:3]:
                        given = argument.value
                        if isinstance(given, (ast.List, ast.Tuple)) and not isinstance(value, LISTS):  # It was an item.
                            template = "[%s]" % ", ".join([template] * len(given.elts))
                        yield argument, template
                    if kind == "class":
                        yield argument, self.scope.layer("Identity")
                        yield argument, self.scope.layer("Identity") + "()"
            return

    def _named_in_message(self) -> Iterator[Proposal]:
        """`Unknown mode 'x', it has to be one of 'a' and 'b'`"""
        if not isinstance(self.error, (ValueError, KeyError, AssertionError, NotImplementedError, TypeError, RuntimeError)):
            return
        quoted = re.findall(r"['\"`]([\w\-./]+)['\"`]", self.message)
        texts = [(argument, value) for argument, value, _ in self.failure.suspects() if isinstance(value, str)]
        given = [(argument, argument.value) for argument in self.draft.arguments()]
        texts += [(argument, node.value) for argument, node in given if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for argument, other in texts_in_message(self.failure, self.message):
            yield argument, repr(other)
        for argument, current in texts:
            if current in quoted or re.search(r"\b%s\b" % re.escape(current), self.message) or argument.name in self.message.split():
                asked = parameter_of(self.owner(argument) or self.cls, argument.name)
                known = [choice for choice in asked[1].choices if isinstance(choice, str)] if asked is not None else []
                for other in dict.fromkeys([*quoted, *known]):
                    if other not in (current, argument.name):
                        yield argument, repr(other)

    def _other_class(self) -> Iterator[Proposal]:
        """A class or module that was chosen for a parameter does not do: the next one."""
        for argument, value, _ in self.failure.suspects():
            if (isinstance(value, type) and issubclass(value, torch.nn.Module)) or isinstance(value, torch.nn.Module):
                for template in self.value(argument.name, owner=self.owner(argument))[:4]:
                    yield argument, template


def _is_unset(value: Any) -> bool:
    """True if a value stands for one that is set later."""
    return value is None or (type(value) is int and value <= 0)
