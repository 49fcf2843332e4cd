"""The settings: their names, types and defaults in one table, and what a project and an editor say about them."""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from shapelens.examples.device_memory import DEVICES, device_memory
from shapelens.regular_files import read_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_PROJECT_FILE = 1 << 20  # bytes of a pyproject.toml
ACTS = ("network", "processes")  # that a user may allow, besides folders
SEVERITIES = ("error", "warning", "information", "hint")


# The lints by code, and whether they are on where nobody says otherwise.
LINTS = {
    "outer-product": True,
    "unused-layer": True,
    "squeeze-batch": True,
    "same-dim": True,
    "norm-single-value": True,
    "softmax-single-value": True,
    "softmax-dim": True,
    "loss-input": True,
    "loss-broadcast": True,
    "class-index": True,
    "optimizer-parameters": True,
    "kept-graph": True,
    "no-zero-grad": True,
    "unregistered-layers": True,
    "shape-comment": True,
    "torn-view": True,
    "batch-first": True,
    "batch-mix": True,
    "attention-axis": True,
}


@dataclass(frozen=True)
class Setting:
    """One setting.

    type: "string", "boolean", "number", "memory", "string[]", "string-map", "switches" (names to booleans) or "examples".
    """

    name: str  # the editor's: "hints.placement"; in pyproject.toml each part is kebab-case
    attribute: str  # of Settings
    type: str
    default: Any
    description: str
    choices: tuple[str, ...] = ()  # of a string, or of the values of a map
    factor: int = 1  # from the unit that the user writes to that of the attribute
    most: float = 0  # of a number, in the unit that the user writes
    is_users_own: bool = False  # no project says it

    @property
    def pyproject_name(self) -> str:
        """The dotted path below `[tool.shapelens]`."""
        return "".join("-" + letter.lower() if letter.isupper() else letter for letter in self.name)


SETTINGS = (
    Setting("enable", "enable", "boolean", True, "Look at the files that are open in an editor; off, nothing runs and nothing is shown."),
    Setting(
        "runOn",
        "run_on",
        "string",
        "type",
        "When a file that is open runs again: as it is typed, or when it is saved.",
        ("type", "save"),
    ),
    Setting("interpreter", "interpreter", "string", "", "The Python interpreter that has your torch."),
    Setting("examples", "examples", "examples", {}, "Example inputs by file: each a list of expressions that build a model and call it."),
    Setting("hints.layers", "hints_layers", "boolean", True, "Show the output shapes of a layer beside the line that constructs it."),
    Setting(
        "hints.values",
        "hints_values",
        "boolean",
        True,
        "Show the shape of a tensor, or a size that follows from shapes, beside the assignment or `return` that makes it.",
    ),
    Setting("hints.parameters", "hints_parameters", "boolean", True, "Show the shapes of a method's parameters."),
    Setting(
        "hints.unchanged",
        "hints_unchanged",
        "boolean",
        False,
        "Show hints also where nothing is new: behind Dropout, ReLU, LayerNorm and the like, where a line keeps a shape and repeats the "
        "hint above, for sizes that are read, tensors of no dims.",
    ),
    Setting("hints.placement", "hints_placement", "string", "endOfLine", "Where hints stand.", ("endOfLine", "afterName")),
    Setting("dims", "dims", "string", "names", "Whether dims that the example names are shown by name.", ("names", "numbers")),
    Setting("findings.severity", "findings_severity", "string-map", {}, "The severity of findings by code.", SEVERITIES),
    Setting("select", "select", "string[]", [], "Codes of the findings that are shown; all are where it is empty."),
    Setting("ignore", "ignore", "string[]", [], "Codes of findings that are never shown."),
    Setting(
        "exclude",
        "exclude",
        "string[]",
        [],
        "Files and folders that `shapelens check` leaves out, as globs: `legacy`, `models/old/*`, `*_pb2.py`.",
    ),
    Setting(
        "baseline", "baseline", "string", "", "A file of known findings, which are faint: `shapelens check --update-baseline` writes it."
    ),
    Setting("lints", "lints", "switches", LINTS, 'Which lints are on: `{"unused-layer": false}`.', tuple(LINTS)),
    Setting(
        "program",
        "program",
        "boolean",
        True,
        "Follow the file as a program too: the shapes of training steps, loops, functions and statements at module level.",
    ),
    Setting(
        "notebooks.order",
        "notebooks_order",
        "string",
        "document",
        "In which order the cells of a notebook follow each other: as they stand, or those that have run as the kernel ran them.",
        ("document", "execution"),
    ),
    Setting(
        "deadline",
        "deadline",
        "number",
        10,
        "The seconds after which a run is stopped, once what it imports is loaded; at most 3600. The model view has six times as long.",
        most=3600,
    ),
    Setting(
        "memoryLimit",
        "memory_limit",
        "number",
        4096,
        "The memory that a run may take, in MiB; at most 1048576.",
        factor=1 << 20,
        most=1 << 20,
    ),
    Setting(
        "deviceMemory",
        "device_memory",
        "memory",
        0,
        "The memory of your GPU, as `24 GB` or `RTX 4090`: a training step that does not fit it is a warning, and the lens of a class says "
        "the largest batch that does. 0: none.",
    ),
    Setting(
        "allow",
        "allow",
        "string[]",
        [],
        "What your code may do while it is looked at: `network`, `processes`, or write below a folder. Not from a project's file.",
        is_users_own=True,
    ),
    Setting("cache", "cache", "boolean", True, "Keep on disk what runs saw, so that an unchanged file is shown without running again."),
    Setting("serverInterpreter", "server_interpreter", "string", "", "The Python that runs the language server, 3.10 or newer."),
    Setting("log.level", "log_level", "string", "info", "How much the log holds.", ("debug", "info", "warning", "error")),
)


@dataclass(frozen=True)
class Settings:
    """All settings. What is wrong with those that were given is in `problems`, as text; the default or the weaker source holds for them."""

    interpreter: str | None = None
    examples: dict[str, list[str]] = field(default_factory=dict)  # by absolute path, with "/"
    enable: bool = True
    run_on: str = "type"
    hints_layers: bool = True
    hints_values: bool = True
    hints_parameters: bool = True
    hints_unchanged: bool = False
    hints_placement: str = "endOfLine"
    dims: str = "names"
    findings_severity: dict[str, str] = field(default_factory=dict)  # by code
    select: list[str] = field(default_factory=list)  # codes; all of them where it is empty
    ignore: list[str] = field(default_factory=list)  # codes
    exclude: list[str] = field(default_factory=list)  # globs, from `folder`
    baseline: str = ""  # an absolute path
    lints: dict[str, bool] = field(default_factory=lambda: dict(LINTS))  # by code
    program: bool = True
    notebooks_order: str = "document"
    deadline: float = 10.0  # seconds
    memory_limit: int = 4096 << 20  # bytes
    device_memory: int = 0  # bytes
    allow: list[str] = field(default_factory=list)  # "network", "processes", absolute paths of folders
    cache: bool = True
    server_interpreter: str | None = None
    log_level: str = "info"
    folder: str = ""  # of the pyproject.toml that was read, else the one that was asked for
    examples_from: str = "settings"
    proposed_interpreter: str | None = None  # what the pyproject.toml names: `interpreter` is what the user has said
    problems: list[str] = field(default_factory=list)

    @staticmethod
    def from_pyproject(folder: str, top: str) -> Settings:
        """The settings of `[tool.shapelens]` in the nearest pyproject.toml that has it, from a folder upwards to `top`.

        Nothing above `top` configures anything, and nothing at all does where the folder does not lie in it. Never raises for what is in
        the file.
        """
        start = Path(folder).absolute()
        for place in (start, *start.parents):
            if not top or not place.is_relative_to(top):
                break
            file = place / "pyproject.toml"
            try:
                content = tomllib.loads(read_regular(file, LARGEST_PROJECT_FILE).decode("utf-8-sig"))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except RecursionError:
                return Settings(folder=str(place), problems=[f"{file}: its values are nested too deeply"])
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                return Settings(folder=str(place), problems=[f"{file}: {reason}"])
            tool = content.get("tool")
            table = tool.get("shapelens") if isinstance(tool, dict) else None
            if table is None:
                continue
            own = Settings(folder=str(place), examples_from="pyproject.toml")
            if not isinstance(table, dict):
                return replace(own, problems=[f"{file}: tool.shapelens must be a table"])
            own = own._with(table, lambda setting: setting.pyproject_name, str(place), f"{file}: ")
            return replace(own, interpreter=None, proposed_interpreter=own.interpreter)
        return Settings(folder=str(start))

    def merged(self, editor: Mapping[str, Any], root: str | None = None) -> Settings:
        """These settings with the editor's on top: its section `shapelens`, nested or with dotted keys.

        Relative paths in its examples start at `root`, which is the pyproject's folder if not given. A map is merged key by key.
        A value that equals the default is no choice of the user: an editor sends all settings, those that nobody has touched too.
        """
        defaults = {setting.name: setting.default for setting in SETTINGS}
        touched = {name: value for name, value in _flat(editor, defaults) if name not in defaults or value != defaults[name]}
        return self._with(touched, lambda setting: setting.name, root or self.folder or str(Path.cwd()), "")

    def examples_for(self, path: str) -> list[str]:
        """The expressions for a file."""
        return self.examples.get(_key(path), [])

    def shows(self, code: str) -> bool:
        """True if findings of this code are shown."""
        return code not in self.ignore and (not self.select or code in self.select)

    def excludes(self, path: Path) -> bool:
        """True if a glob of `exclude` matches a file, its name, its path from `folder`, or a folder that it lies in."""
        if not self.exclude:
            return False
        absolute = PurePath(os.path.abspath(path))  # noqa: PTH100
        inside = absolute.relative_to(self.folder) if absolute.is_relative_to(self.folder) else absolute
        names = [name for place in (inside, *inside.parents[:-1]) for name in (place.as_posix(), f"./{place.as_posix()}", place.name)]
        globs = [glob.rstrip("/").removeprefix("./") for glob in self.exclude]
        return any(fnmatchcase(name, glob) for glob in globs for name in names)

    def _with(self, table: Mapping[str, Any], name_of: Callable[[Setting], str], folder: str, source: str) -> Settings:
        known = {name_of(setting): setting for setting in SETTINGS}
        values: dict[str, Any] = {}
        problems = list(self.problems)
        for name, value in _flat(table, known):
            setting = known.get(name)
            if setting is None:
                problems.append(f"{source}there is no setting {name}")
            elif setting.is_users_own and source:
                problems.append(f"{source}{name} is for you to say, in the editor's settings for all workspaces or on the command line")
            elif value is not None:  # An editor's null: not set.
                read = _read(setting, value)
                if read is None:
                    problems.append(f"{source}{name} must be {_wanted(setting)}, not {_SHORT.repr(value)}")
                    continue
                if setting.most and value > setting.most:
                    problems.append(f"{source}{name} must be at most {setting.most}, which holds instead of {_SHORT.repr(value)}")
                values[setting.attribute] = read
        if "examples" in values:
            given = {_key(os.path.join(folder, os.path.expanduser(file))): texts for file, texts in values["examples"].items()}  # noqa: PTH111, PTH118
            values["examples"] = {**self.examples, **given}
        if values.get("baseline"):
            values["baseline"] = os.path.join(folder, os.path.expanduser(values["baseline"]))  # noqa: PTH111, PTH118
        if "allow" in values:
            values["allow"], wrong = allowed_acts(values["allow"])
            problems += wrong
        if "findings_severity" in values:
            values["findings_severity"] = {**self.findings_severity, **values["findings_severity"]}
        if "lints" in values:
            # An editor sends all of them; one that has its default is no choice of the user.
            values["lints"] = {**self.lints, **{name: on for name, on in values["lints"].items() if on != LINTS[name]}}
        return replace(self, problems=problems, **values)


def allowed_acts(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """(what user code may do, with the absolute paths of folders; what is wrong with the rest)."""
    allowed, wrong = [], []
    for each in given:
        folder = Path(each).expanduser()
        if each in ACTS:
            allowed.append(each)
        elif folder.is_absolute():
            allowed.append(os.path.realpath(folder))
        else:
            wrong.append(f"allow: {_SHORT.repr(each)} is none of {', '.join(ACTS)}, nor the absolute path of a folder")
    return list(dict.fromkeys(allowed)), wrong


def acts_from_here(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """The same of what a command line or a program says: a relative path starts at the working directory, and is to be a folder."""
    allowed, wrong = allowed_acts([each if each in ACTS else str(Path(each).expanduser().absolute()) for each in given])
    return allowed, wrong + [f"allow: {each} is not a folder" for each in allowed if each not in ACTS and not Path(each).is_dir()]


# Values in messages: any depth and length may stand in a file.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def _flat(table: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted names and values of a table, down to the settings and no further."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name not in known and isinstance(value, Mapping) and any(item.startswith(f"{name}.") for item in known):
            yield from _flat(value, known, f"{name}.")
        else:
            yield name, value


def _read(setting: Setting, value: Any) -> Any:
    """The value for the attribute; None if it is of the wrong kind."""
    return _READ_AS[setting.type](setting, value)


def _boolean(setting: Setting, value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(setting: Setting, value: Any) -> float | None:
    """A number above 0, at most as large as it may be, in the unit of the attribute."""
    right = isinstance(value, int | float) and not isinstance(value, bool) and (0 < value < float("inf") or value == setting.default)
    if not right:
        return None
    value = min(value, setting.most)
    return int(value * setting.factor) if setting.factor > 1 else float(value)


def _memory(setting: Setting, value: Any) -> Any:
    """The bytes of a device's memory."""
    try:
        return device_memory(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except ValueError:  # One of its kind is of an integer that is too long to be written.
        return None


def _string(setting: Setting, value: Any) -> str | None:
    """One of the choices, if there are any."""
    if not isinstance(value, str) or (setting.choices and value not in setting.choices):
        return None
    return value if value or setting.default else ""


def _strings(setting: Setting, value: Any) -> list[str] | None:
    return list(value) if _texts(value) else None


def _switches(setting: Setting, value: Any) -> dict[str, bool] | None:
    """Returns which of the choices are on and which are off."""
    right = isinstance(value, Mapping) and all(name in setting.choices and isinstance(on, bool) for name, on in value.items())
    return dict(value) if right else None


def _examples(setting: Setting, value: Any) -> dict[str, Any] | None:
    """Lists of texts, of which one may stand for itself."""
    lists = {key: [item] if isinstance(item, str) else item for key, item in value.items()} if isinstance(value, Mapping) else None
    return lists if lists is not None and all(_texts(item) for item in lists.values()) else None


def _string_map(setting: Setting, value: Any) -> dict[str, str] | None:
    """Choices by names."""
    right = isinstance(value, Mapping) and _texts(list(value.values())) and all(item in setting.choices for item in value.values())
    return dict(value) if right else None


# How a value is read, by the type of its setting.
_READ_AS: dict[str, Callable[[Setting, Any], Any]] = {
    "boolean": _boolean,
    "number": _number,
    "memory": _memory,
    "string": _string,
    "string[]": _strings,
    "switches": _switches,
    "examples": _examples,
    "string-map": _string_map,
}


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _wanted(setting: Setting) -> str:
    choices = ", ".join(setting.choices)
    return {
        "boolean": "true or false",
        "number": "a number above 0",
        "memory": f"an amount like 24 GB, or one of {', '.join(DEVICES)}",
        "string": f"one of {choices}" if choices else "a text",
        "string[]": "a list of texts",
        "string-map": f"a table of codes, each with one of {choices}",
        "switches": f"a table of true or false for any of {choices}",
        "examples": "a table of files, each with a list of expressions",
    }[setting.type]


def _key(path: str) -> str:
    return os.path.normcase(os.path.normpath(os.path.abspath(path))).replace(os.sep, "/")  # noqa: PTH100
