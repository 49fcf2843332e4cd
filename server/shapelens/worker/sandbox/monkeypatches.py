"""Monkeypatches: what code has changed in modules that are not its own, as in `nn.Linear = Mine`, `F.relu = f` or `math.pi = 3`.

Python keeps no record of such changes, and the `__dict__` of a module can be written to without running any code of ours. What modules and
classes hold is therefore compared with what they held before, by identity: none of their code runs, and an entry takes about 0.1 µs.

Modules change by themselves as well: they load parts of themselves when these are first asked for, and fill caches. A change counts as a
monkeypatch where the new value is code of another package, or where the text of the user's files assigns the attribute that changed.

No run of another text sees such a change. Where a project has made one, other runs are `Unsuitable` (`reload/loaded_project.py`), and a
child whose rehearsal has changed what models are made of ends. Where there is no fork, the server replaces the process
(`protocol.Replace`).
"""

from __future__ import annotations

import functools
import operator
import os
import re
import sys
import warnings
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.modules import module as torch_module

OURS = __name__.partition(".")[0]
# Internals of torch that are large, load parts of themselves late, and that no model's code patches.
NOT_WATCHED = (
    "torch._inductor", "torch._dynamo", "torch._export", "torch._functorch", "torch._higher_order_ops", "torch._refs", "torch._decomp",
    "torch._prims", "torch._subclasses", "torch._logging", "torch.ao", "torch.distributed", "torch.export", "torch.fx", "torch.jit",
    "torch.onnx", "torch.package", "torch.testing", "torch.ops", "sympy", "mpmath", "__main__", "__mp_main__", OURS,
)  # fmt: skip
# What models are made of, the likeliest to be patched first.
NEAREST = (
    "torch.nn.functional", "torch.nn", "builtins", "torch.nn.init", "torch", "math", "random", "os", "functools", "itertools", "copy",
    "collections", "operator", "time", "torch.functional", "torch.linalg", "torch.nn.parameter", "torch.nn.utils", "torch.utils.checkpoint",
)  # fmt: skip
OWNERS_BETWEEN_LOOKS = 64
AT_ONCE = 3  # of these modules are compared where somebody waits
LAYERS = "torch.nn.modules."
# They change by themselves, as streams are redirected and processes forked, and no shape depends on them.
SELDOM = {"warnings", "logging", "sys", "threading", "importlib", "typing", "signal", "multiprocessing", "subprocess"}
# How variables of the environment begin that only libraries read, and on which no shape depends.
LIBRARY_VARIABLES = ("CUBLAS_", "CUDNN_", "KMP_", "MKL_", "NCCL_", "OMP_", "OPENBLAS_", "TF_", "TOKENIZERS_")
MOST_TEXTS = 8192  # of which it is remembered what they say
CODE = (FunctionType, MethodType, staticmethod, classmethod, property, functools.partial)
# Where text goes that is printed or warned, and comes from: no shape depends on these.
TEXT_STREAMS = {"sys.stdin", "sys.stdout", "sys.stderr", "warnings.showwarning", "warnings.formatwarning"}
ABSENT: Any = type("Absent", (), {})()

REPLACED: Dict[Tuple[int, str], Any] = {}  # by the ids of modules and classes, and names in them: what we put there for the time of runs

Function = Tuple[FunctionType, Any, Any, Any]  # with its code, its defaults, and those of its keyword-only parameters


class AttributeChange(NamedTuple):
    """An attribute of a module or class that holds another value than it did, or a function that has other code."""

    owner: str
    name: str
    before: Any
    now: Any
    holder: Any = None  # the module or class itself

    def __str__(self) -> str:
        return "%s.%s" % (self.owner, self.name)


class _Owner(NamedTuple):
    """A module or class, and what it held."""

    module: str
    holder: Any
    names: Mapping[str, Any]
    keys: Tuple[str, ...]
    values: Tuple[Any, ...]

    def is_unchanged(self) -> bool:
        return len(self.names) == len(self.values) and all(map(operator.is_, self.names.values(), self.values))

    def changes(self) -> Iterator[AttributeChange]:
        is_class = issubclass(type(self.holder), type)
        name = "%s.%s" % (self.module, type.__getattribute__(self.holder, "__qualname__")) if is_class else self.module
        before, now = dict(zip(self.keys, self.values)), dict(self.names)
        for attribute in before.keys() | now.keys():
            old, new = before.get(attribute, ABSENT), now.get(attribute, ABSENT)
            if old is not new:
                yield AttributeChange(name, attribute, old, new, self.holder)


class Snapshot:
    """Holds what modules and their classes held when they were added."""

    def __init__(self) -> None:
        self.modules: Dict[str, Any] = {}
        self._owners: Dict[int, _Owner] = {}  # by the ids of the modules and classes
        self._functions: Dict[str, List[Function]] = {}  # by the modules that name them

    def add(self, names: Iterable[str]) -> None:
        """Add modules as they are now, those among them that were not added before."""
        for name in names:
            module = sys.modules.get(name)
            if name in self.modules or module is None:
                continue
            self.modules[name] = module
            if not name.startswith(NOT_WATCHED):
                for holder, held in _holders(module):
                    if id(holder) not in self._owners:
                        self._add(name, holder, held)

    def _add(self, module: str, holder: Any, held: Mapping[str, Any]) -> None:
        values = tuple(held.values())
        self._owners[id(holder)] = _Owner(module, holder, held, tuple(held), values)
        if module in NEAREST or module.startswith(LAYERS):
            functions = [value for value in values if type(value) is FunctionType]
            with_code = [(each, each.__code__, each.__defaults__, each.__kwdefaults__) for each in functions]
            self._functions.setdefault(module, []).extend(with_code)

    def changes(self, look: Callable[[], None] = lambda: None) -> Iterator[AttributeChange]:
        """Yields what is no longer as it was. `look` is called every now and then, and may raise."""
        for name, module in self.modules.items():
            if sys.modules.get(name) is not module:
                yield AttributeChange("sys.modules", name, module, sys.modules.get(name, ABSENT))
        for number, owner in enumerate(self._owners.values()):
            if number % OWNERS_BETWEEN_LOOKS == 0:
                look()
            if not owner.is_unchanged():
                yield from owner.changes()
        for functions in self._functions.values():
            yield from _other_code(functions)

    def changes_near(self) -> Iterator[AttributeChange]:
        """Those of what models are made of."""
        for owner in self._owners.values():
            if owner.module in self._functions and not owner.is_unchanged():
                yield from owner.changes()
        for functions in self._functions.values():
            yield from _other_code(functions)

    def changes_at_once(self) -> Iterator[AttributeChange]:
        """The likeliest of them, where somebody waits."""
        for owner in self._owners.values():
            if owner.module not in NEAREST[:AT_ONCE]:
                break
            if not owner.is_unchanged():
                yield from owner.changes()
        for module in NEAREST[:AT_ONCE]:
            yield from _other_code(self._functions.get(module, ()))

    def accept(self) -> None:
        """Accepts what has changed: it is as it should be from now on. Modules that were loaded since are added."""
        for owner in [owner for owner in self._owners.values() if not owner.is_unchanged()]:
            self._add(owner.module, owner.holder, owner.names)
        self.add(list(sys.modules))


def _other_code(functions: Iterable[Function]) -> Iterator[AttributeChange]:
    for function, code, defaults, more in functions:
        if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not more:
            yield AttributeChange(function.__module__ or "", function.__qualname__, code, function.__code__)


def nearest(also: Iterable[Any]) -> List[str]:
    """The names of the modules that a `forward` may come to change: those that models are made of, and others that the project names."""
    named = [ModuleType.__getattribute__(each, "__dict__").get("__name__") for each in also if issubclass(type(each), ModuleType)]
    layers = [name for name in sys.modules if name.startswith(LAYERS)]
    return [*NEAREST, *layers, *(name for name in named if type(name) is str)]


def _holders(module: Any) -> Iterator[Tuple[Any, Mapping[str, Any]]]:
    """A module and the classes that it names, with what they hold."""
    if issubclass(type(module), ModuleType):
        held = ModuleType.__getattribute__(module, "__dict__")
        yield module, held
        for value in [value for value in held.values() if issubclass(type(value), type)]:
            yield value, type.__getattribute__(value, "__dict__")


def defining_module(value: Any) -> str:
    """The name of the module whose code a value is made of; "" where it is data."""
    kind = type(value)
    if kind is FunctionType:
        name = value.__globals__.get("__name__")
    elif kind in (staticmethod, classmethod, MethodType):
        return defining_module(value.__func__)
    elif kind is property:
        return defining_module(value.fget)
    elif kind is functools.partial:
        return defining_module(value.func)
    else:
        cls = value if issubclass(kind, type) else kind
        name = type.__getattribute__(cls, "__module__")
        if cls is kind and name == "builtins":
            return ""
    return name if type(name) is str else ""


class FileText(NamedTuple):
    """Holds what the text of a file says of attributes that it assigns."""

    text: str
    stored: FrozenSet[str]  # names of attributes that are assigned
    quoted: FrozenSet[str]  # names that are, or end, a string
    computes: bool  # the name of an attribute that is assigned
    replaces_modules: bool  # those of `sys.modules`


_STORED = re.compile(r"(?<!\bself)\.(\w+)\s*=(?!=)")
_QUOTED = re.compile(r"(?<=['\".])\w+(?=['\"])")
_COMPUTED = re.compile(r"\b(?:setattr|delattr)\s*\(\s*(?!self\b)|\b(?:vars|exec|eval)\s*\(|__dict__|\.patch\b")
_MODULES = re.compile(r"\bsys\s*\.\s*modules\b|\bmodules\s*\[|\bimport\s+modules\b|\bsetitem\b")


@functools.lru_cache(maxsize=MOST_TEXTS)
def _read(text: str) -> FileText:
    """A process that was forked knows what the one before it has read: of the files of a large project that takes seconds."""
    stored, quoted = frozenset(_STORED.findall(text)), frozenset(_QUOTED.findall(text))
    return FileText(text, stored, quoted, _COMPUTED.search(text) is not None, _MODULES.search(text) is not None)


class ProjectText:
    """Holds what the texts of the user's files say of attributes that they assign."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._files = [_read(text) for text in texts]
        self.stored: Set[str] = set().union(*(each.stored for each in self._files))
        self.computes = any(each.computes for each in self._files)
        self.replaces_modules = any(each.replaces_modules for each in self._files)

    def assigns(self, name: str) -> bool:
        """True if an attribute of this name may be assigned: `F.relu = f`, `setattr(F, "relu", f)`, `mock.patch("torch.relu")`."""
        last = name.rpartition(".")[2]
        return last in self.stored or any(last in each.quoted for each in self._files)

    def names(self, module: str) -> bool:
        """True if a module or package is spoken of by this name, as a word or a part of one (`__builtins__`)."""
        word = re.compile(r"(?<![^\W_])%s(?![^\W_])" % re.escape(module))
        return any(module in each.text and word.search(each.text) is not None for each in self._files)


class Monkeypatches(NamedTuple):
    """Holds what was changed by the user's files, and by packages that they import."""

    by_project: FrozenSet[str] = frozenset()
    by_packages: FrozenSet[str] = frozenset()  # the outermost packages whose code took the place of other code


def found_in(
    changes: Iterable[AttributeChange], is_of_project: Callable[[str], bool], text: Callable[[], ProjectText], built_in: Set[str]
) -> Monkeypatches:
    """Which changes are monkeypatches.

    is_of_project: whether a module, by name, or a file is the user's. built_in: outermost packages that are there before any project is
    loaded; what they change among themselves is no monkeypatch. Nor is what packages put in the place of what is ours during a run.
    """
    by_project: Set[str] = set()
    by_packages: Set[str] = set()
    for change in changes:
        if type(change.now) is CodeType:
            if is_of_project(change.now.co_filename) or text().computes or text().assigns("__code__") or text().assigns("__defaults__"):
                by_project.add(str(change))
            continue
        module = defining_module(change.now)
        package, owner = module.partition(".")[0], change.owner.partition(".")[0]
        is_part = issubclass(type(change.now), ModuleType) and change.owner != "sys.modules"
        is_ours = package == OURS or REPLACED.get((id(change.holder), change.name), ABSENT) is change.now
        if str(change) in TEXT_STREAMS or is_ours or is_part:
            continue
        is_named = is_of_project(module) or text().assigns(change.name)
        may_be_computed = text().computes and module and owner not in SELDOM and text().names(owner) and not _is_made_late(change)
        if is_named or may_be_computed:
            by_project.add(str(change))
        elif package and package not in built_in and package != owner and _matters(change, owner, built_in):
            by_packages.add(package)
    return Monkeypatches(frozenset(by_project), frozenset(by_packages))


def _is_made_late(change: AttributeChange) -> bool:
    """True if a module has made something of its own that it had left a place for, as `tempfile._name_sequence`, which is None at first."""
    cls = type(change.now)
    is_code = issubclass(cls, type) or cls in CODE
    return change.before is None and not is_code and type.__getattribute__(cls, "__module__") == change.owner


def _matters(change: AttributeChange, owner: str, built_in: Set[str]) -> bool:
    """True if others may see what a package has changed: many add names to the standard library for themselves."""
    is_new = change.before is ABSENT and owner not in ("torch", "builtins")
    return not is_new and owner in built_in - SELDOM and (id(change.holder), change.name) not in REPLACED


# --- what holds for the whole process ---


def settings() -> Dict[str, Any]:
    """Returns what code can set for the whole process, as far as shapes and dtypes depend on it."""
    hooks = [value for name, value in vars(torch_module).items() if name.startswith("_global_") and hasattr(value, "keys")]
    return {
        "default dtype": torch.get_default_dtype(),
        "torch modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "hooks of all modules": [tuple(hook) for hook in hooks],
        "folder": _folder(),
        "warnings that are errors": [each for each in warnings.filters if each[0] == "error"],
        "recursion limit": sys.getrecursionlimit(),
    }


def changed_settings(before: Mapping[str, Any], environment: Mapping[str, str], text: Callable[[], ProjectText]) -> FrozenSet[str]:
    """Returns what of it is no longer as it was; of the environment only the variables that the user's files name: packages set some as
    well.
    """
    changed = {name for name, value in settings().items() if value != before[name]}
    now = dict(os.environ)
    variables = {name for name in now.keys() | environment.keys() if now.get(name) != environment.get(name)}
    others = [name for name in variables if not name.startswith(LIBRARY_VARIABLES)]
    return frozenset(changed | {"os.environ[%r]" % name for name in others if text().assigns(name)})


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


class ProcessState:
    """This process before a project is loaded into it, and what has been changed since. To be made in the environment of a run."""

    def __init__(self) -> None:
        self._settings, self._environment = settings(), dict(os.environ)

    def monkeypatches(
        self, project: Mapping[str, str], texts: Callable[[], Iterable[str]], nearest: Optional[Iterable[AttributeChange]] = None
    ) -> Monkeypatches:
        """Returns what is no longer as it was. project: the files of the user's modules, by their names. nearest: the only changes to look
        at.
        """
        files = set(project.values())
        text = functools.lru_cache(maxsize=None)(lambda: ProjectText(texts()))

        def is_of_project(module: str) -> bool:
            return module in project or module in files

        changes = [*SNAPSHOT.changes(), *_in_later_modules(project, text, is_of_project)] if nearest is None else nearest
        found = found_in(changes, is_of_project, text, BUILT_IN)
        return found._replace(by_project=found.by_project | changed_settings(self._settings, self._environment, text))


def _in_later_modules(
    project: Mapping[str, str], text: Callable[[], ProjectText], is_of_project: Callable[[str], bool]
) -> Iterator[AttributeChange]:
    """Code of the project in modules that were loaded with it; and modules that it has made itself."""
    packages = {name.partition(".")[0] for name in project}  # with modules that took values from what has been loaded anew since
    others = [(name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] not in packages]
    later = [(name, module) for name, module in others if name not in SNAPSHOT.modules]
    for name, module in later:
        held = ModuleType.__getattribute__(module, "__dict__") if issubclass(type(module), ModuleType) else {}
        is_another = defining_module(module) != OURS and getattr(held.get("__spec__"), "name", None) != name
        if is_another and text().replaces_modules and text().assigns(name) and text().names(name):
            yield AttributeChange("sys.modules", name, ABSENT, module)
    stored = text().stored if later else set()
    for name, module in later if stored else ():
        for holder, held in _holders(module):
            for attribute in stored & held.keys():
                if is_of_project(defining_module(held[attribute])) and not is_of_project(defining_module(holder)):
                    yield AttributeChange(name, attribute, ABSENT, held[attribute], holder)


SNAPSHOT = Snapshot()  # of what this process has loaded before any project
BUILT_IN: Set[str] = set()  # its outermost packages


def take_snapshot() -> None:
    """Everything that is loaded now is as it should be."""
    SNAPSHOT.add(list(sys.modules))
    BUILT_IN.update(name.partition(".")[0] for name in sys.modules)


def replaced_in_runs(replacements: Iterable[Tuple[Any, str, Any]]) -> None:
    """Notes what no run sees, as each has ours in its place: (owner, name, ours). Lightning patches `torch.compile` at import."""
    REPLACED.update(((id(owner), name), value) for owner, name, value in replacements)


def package_has_patched_others() -> bool:
    """True if a package that was imported just now, ahead of all projects, has patched others."""
    has_patched = bool(found_in(SNAPSHOT.changes(), lambda module: False, lambda: ProjectText(()), BUILT_IN).by_packages)
    SNAPSHOT.accept()
    return has_patched
