"""Lightning's command line: model and data are built with their defaults, and the model is fit and tested with them.

What the program says of the defaults counts (`set_defaults`, `link_arguments`). Where it gives arguments of its own or a file of
settings, or where an argument has no default, nobody knows what is built.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ...unknown.stand_ins import absent, is_absent
from ..compilers import Replacement

_MODEL, _DATA = "model", "data"
_LIBRARIES = ("lightning.", "pytorch_lightning.")
# What the command line is asked for, by the step that it runs: each that the model has is run.
_COMMANDS = {"fit": "training_step", "test": "test_step", "predict": "predict_step"}


class _Parser:
    """The arguments that a program tells the parser."""

    def __init__(self) -> None:
        self.defaults: Dict[str, Any] = {}
        self.links: List[Tuple[Tuple[str, ...], str, Optional[Callable[..., Any]]]] = []

    def set_defaults(self, *args: Any, **kwargs: Any) -> None:
        for given in (*args, kwargs):
            self.defaults.update(given)

    def link_arguments(self, source: Any, target: str, compute_fn: Any = None, apply_on: str = "parse") -> None:
        self.links.append(((source,) if isinstance(source, str) else tuple(source), target, compute_fn))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent("the parser's %s" % name, "definition")


class _CommandLine:
    """The stand-in for `LightningCLI`."""

    _trainer_class: Any = None
    """The trainer of Lightning's own package."""

    def __init__(
        self,
        model_class: Any = None,
        datamodule_class: Any = None,
        save_config_callback: Any = None,
        save_config_kwargs: Any = None,
        trainer_class: Any = None,
        trainer_defaults: Any = None,
        seed_everything_default: Any = True,
        parser_kwargs: Any = None,
        parser_class: Any = None,
        subclass_mode_model: bool = False,
        subclass_mode_data: bool = False,
        args: Any = None,
        run: bool = True,
        **more: Any,
    ) -> None:
        self.parser = parser = _Parser()
        self.config = self.config_init = absent("the command line's settings", "definition")
        self.subcommand = "fit" if run else None
        _told(self, "add_arguments_to_parser", parser)
        _told(self, "before_instantiate_classes")
        is_known = args is None and not parser_kwargs
        self.datamodule = None if datamodule_class is None else _unknown(_DATA)
        self.model = _unknown(_MODEL)
        if is_known and datamodule_class is not None:
            self.datamodule = _built(datamodule_class, _DATA, parser, {})
        if is_known and model_class is not None:
            self.model = _built(model_class, _MODEL, parser, {_DATA: self.datamodule})
        self.trainer = (trainer_class or type(self)._trainer_class)(**(trainer_defaults or {}))
        _told(self, "after_instantiate_classes")
        for command, step in _COMMANDS.items() if run and not is_absent(self.model) else ():
            if _has_own(self.model, step):
                _told(self, "before_" + command)
                getattr(self, command, getattr(self.trainer, command))(model=self.model, datamodule=self.datamodule)
                _told(self, "after_" + command)


def _told(command_line: Any, name: str, *args: Any) -> None:
    """Call a method that a class of the program may have."""
    method = getattr(type(command_line), name, None)
    if method is not None and not method.__module__.startswith(_LIBRARIES):
        method(command_line, *args)


def _built(cls: Any, group: str, parser: _Parser, known: Dict[str, Any]) -> Any:
    """An object of a class with its defaults, and what the program says of them; a stand-in where one has no default."""
    if cls is None:
        return None
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return _unknown(group)
    named = [each for each in parameters.values() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    given = {name: parser.defaults["%s.%s" % (group, name)] for name in parameters if "%s.%s" % (group, name) in parser.defaults}
    for sources, target, compute in parser.links:
        outer, _, name = target.partition(".")
        if outer == group and name in parameters:
            values = [_linked(source, parser, known) for source in sources]
            given[name] = compute(*values) if compute is not None else values[0]
    if any(each.default is each.empty and each.name not in given for each in named):
        return _unknown(group)
    return cls(**given)


def _linked(source: str, parser: _Parser, known: Dict[str, Any]) -> Any:
    """Returns what an argument is linked to: an attribute of what has been built, or else the value of another argument."""
    outer, _, path = source.partition(".")
    if source in parser.defaults:
        return parser.defaults[source]
    found = known.get(outer)
    for name in path.split(".") if path else ():
        if found is None or not hasattr(found, name):
            return _unknown(source)
        found = getattr(found, name)
    return found if found is not None else _unknown(source)


def _unknown(name: str) -> Any:
    return absent("the command line's %s" % name, "definition")


def _has_own(model: Any, step: str) -> bool:
    """True if a model has a step that Lightning's base class does not have."""
    method = getattr(type(model), step, None)
    return method is not None and not method.__module__.startswith(_LIBRARIES)


def command_line(module: ModuleType) -> List[Replacement]:
    """`lightning.pytorch.cli`."""
    owner = module.LightningCLI
    return [(owner, "__init__", _CommandLine.__init__), (owner, "_trainer_class", module.Trainer)]
