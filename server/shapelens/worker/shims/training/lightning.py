"""Lightning's trainer: it takes a model through one batch of each of its loaders, and a model without a trainer has a quiet one.

For `lightning.pytorch` and `pytorch_lightning`, by the names that both have.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import weakref
from types import ModuleType
from typing import Any, Dict, List, Optional

import torch

from ...unknown.stand_ins import absent, is_absent
from .. import checkpoints
from ..compilers import Replacement, nothing
from .lightning_cli import command_line

# Methods of a module that only tell its trainer of something.
_TELLING = "log log_dict print toggle_optimizer untoggle_optimizer clip_gradients save_hyperparameters_to_logger"
# By stage: the hook before it, the step, and where its batches come from.
_FIT = (("training_step", "train_dataloader"), ("validation_step", "val_dataloader"))
_VALIDATE = (("validation_step", "val_dataloader"),)
_TEST = (("test_step", "test_dataloader"),)
_PREDICT = (("predict_step", "predict_dataloader"),)
_OPTIONS = ("map_location", "hparams_file", "strict", "weights_only")  # of `load_from_checkpoint`, in their order
_STAGE_ENDS = {
    "training_step": "on_train_epoch_end",
    "validation_step": "on_validation_epoch_end",
    "test_step": "on_test_epoch_end",
}


class _Trainer:
    """The stand-in for `Trainer`. What nobody needs for a shape is a stand-in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)
        self.max_epochs = kwargs.get("max_epochs") or 1
        self.current_epoch = self.global_step = self.local_rank = self.global_rank = 0
        self.world_size = self.num_devices = self.num_nodes = 1
        self.is_global_zero, self.sanity_checking, self.training = True, False, True
        self.callback_metrics: Dict[str, Any] = {}
        self.logged_metrics: Dict[str, Any] = {}
        self.optimizers: List[Any] = []
        self.datamodule: Any = kwargs.get("datamodule")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent("Trainer.%s" % name, "definition")

    def fit(self, model: Any, train_dataloaders: Any = None, val_dataloaders: Any = None, datamodule: Any = None, **kwargs: Any) -> None:
        """A training step, then a validation step."""
        train_dataloaders = kwargs.get("train_dataloader", train_dataloaders)  # As it was called before 1.6.
        if hasattr(train_dataloaders, "setup") and not is_absent(train_dataloaders):
            train_dataloaders, datamodule = None, train_dataloaders
        self._run(model, _FIT, [train_dataloaders, val_dataloaders], datamodule, "fit")

    def validate(self, model: Any = None, dataloaders: Any = None, datamodule: Any = None, **kwargs: Any) -> Any:
        """A validation step: a list of what was logged."""
        self._run(model, _VALIDATE, [dataloaders], datamodule, "validate")
        return [absent("what was logged", "definition")]

    def test(self, model: Any = None, dataloaders: Any = None, datamodule: Any = None, **kwargs: Any) -> Any:
        """A test step: a list of what was logged."""
        self._run(model, _TEST, [kwargs.get("test_dataloaders", dataloaders)], datamodule, "test")
        return [absent("what was logged", "definition")]

    def predict(self, model: Any = None, dataloaders: Any = None, datamodule: Any = None, **kwargs: Any) -> Any:
        """A prediction step: a list of what it gave."""
        return self._run(model, _PREDICT, [dataloaders], datamodule, "predict")

    def save_checkpoint(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """The state of the model and what it was built with, kept until the end of the run."""
        model = self.__dict__.get("model")
        if isinstance(model, torch.nn.Module):
            named = {"hparams_name": model.__dict__["_hparams_name"]} if model.__dict__.get("_hparams_name") else {}
            saved = dict(model.__dict__.get("_hparams") or {})
            checkpoints.keep({"state_dict": model.state_dict(), "hyper_parameters": saved, **named}, filepath)

    def _run(self, model: Any, stages: Any, loaders: List[Any], datamodule: Any, stage: str) -> Any:
        model = model if model is not None else self.__dict__.get("model")
        if model is None or is_absent(model):
            return []
        self.model = self.lightning_module = model
        _trained[_name_of(type(model))] = model
        self.datamodule = datamodule if datamodule is not None else self.datamodule
        model.__dict__["_trainer"] = self
        for owner in (self.datamodule, model):
            for hook in ("prepare_data", "setup"):
                _called(owner, hook, *([stage] if hook == "setup" else []))
        self.optimizers = _optimizers(_called(model, "configure_optimizers")) if stage == "fit" else []
        results = []
        for (step, source), loader in zip(stages, loaders):
            loader = loader if loader is not None else _called(self.datamodule, source) or _called(model, source)
            results += [_called(model, step, batch, 0, *more) for batch in _first(loader) for more in self._more(model, step)]
            _called(model, _STAGE_ENDS.get(step, ""))
        return results

    def _more(self, model: Any, step: str) -> List[Any]:
        """Returns what a step is given besides: before 2.0 `training_step` was called for each optimizer, where it takes
        `optimizer_idx`."""
        code = getattr(getattr(type(model), step, None), "__code__", None)
        takes = code is not None and "optimizer_idx" in code.co_varnames[: code.co_argcount]
        return [(number,) for number in range(max(len(self.optimizers), 1))] if takes else [()]


def _called(owner: Any, name: str, *args: Any) -> Any:
    """Returns what a method gives, with as many of these arguments as it takes; None where there is none."""
    method = getattr(type(owner), name, None) if owner is not None and name else None
    code = getattr(method, "__code__", None)
    if method is None or code is None:
        return getattr(owner, name)(*args) if callable(method) else None
    takes_more = bool(code.co_flags & 0x04)  # *args
    count = code.co_argcount - 1
    return getattr(owner, name)(*(args if takes_more else args[:count]))


def _first(loader: Any) -> List[Any]:
    """The first batch of a loader, or of the first of several."""
    while isinstance(loader, (list, tuple)) and loader:
        loader = loader[0]
    if isinstance(loader, dict) and loader:
        loader = next(iter(loader.values()))
    if loader is None:
        return []
    if is_absent(loader):
        return [absent("a batch", "definition")]
    for batch in loader:
        return [batch]
    return []


def _optimizers(configured: Any) -> List[Any]:
    """The optimizers in what `configure_optimizers` gives: one, a list, (optimizers, schedulers), or dicts with a key `optimizer`."""
    if isinstance(configured, dict):
        return [configured.get("optimizer")]
    if isinstance(configured, tuple) and configured and isinstance(configured[0], list):
        configured = configured[0]
    if isinstance(configured, (list, tuple)):
        return [found for each in configured for found in _optimizers(each)]
    return [configured] if configured is not None else []


def _trainer_of(module: Any) -> Any:
    trainer = module.__dict__.get("_trainer")
    if trainer is None:
        trainer = module.__dict__["_trainer"] = _Trainer()
        trainer.model = trainer.lightning_module = module
    return trainer


def _attach(module: Any, trainer: Any) -> None:
    module.__dict__["_trainer"] = trainer


def _optimizers_of(module: Any, use_pl_optimizer: bool = True) -> Any:
    trainer = _trainer_of(module)
    if not trainer.optimizers:
        trainer.optimizers = _optimizers(_called(module, "configure_optimizers"))
    return trainer.optimizers[0] if len(trainer.optimizers) == 1 else trainer.optimizers


_trained: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()  # by class: the model that a trainer was given last


def _name_of(cls: type) -> str:
    return "%s.%s" % (cls.__module__, cls.__qualname__)


def _from_checkpoint(cls: Any, checkpoint_path: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`load_from_checkpoint`: a model whose state is compared with the file, where that is there or the run has saved it; else the model
    that was trained, or one of the arguments that are given besides."""
    options: Dict[str, Any] = dict(zip(_OPTIONS, args))
    options.update({name: kwargs[name] for name in _OPTIONS if name in kwargs})
    given = {name: value for name, value in kwargs.items() if name not in _OPTIONS}
    known = _trained.get(_name_of(cls))
    if options.get("hparams_file") is None and (known is None or checkpoints.is_kept(checkpoint_path)):  # Training may write other files.
        held = checkpoints.load(checkpoint_path) if isinstance(checkpoint_path, (str, os.PathLike)) else None
        arguments = _saved_arguments(cls, held, given)
        if arguments is not None and _is_enough(cls, arguments):
            return _with_state(cls(**arguments), held, options.get("strict"))
    if known is not None:
        return known
    return cls(**given) if _is_enough(cls, given) else absent("a checkpoint of %s" % cls.__name__, "definition")


def _is_enough(cls: Any, given: Dict[str, Any]) -> bool:
    """True if a constructor can be called so."""
    taken = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return all(each.name in given for each in taken if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD)


def _saved_arguments(cls: Any, held: Any, given: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Returns what a constructor is given of a checkpoint's hyperparameters and of the call; None where the checkpoint does not say."""
    if is_absent(held) or not isinstance(held, dict) or not isinstance(held.get("state_dict"), dict):
        return None
    saved: Dict[str, Any] = {}
    for key in ("hparams", "module_arguments", "hyper_parameters"):  # The older ones first, as Lightning has it.
        part = held.get(key)
        saved.update(part if isinstance(part, dict) else {})
    if "_instantiator" in saved:  # Of Lightning's command line, which builds the parts.
        return None
    parameters = inspect.signature(cls.__init__).parameters
    name = str(held.get("hparams_name"))  # Of the parameter that takes all of them.
    arguments = {**({name: saved} if saved and name in parameters else saved), **given}
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return arguments if takes_all else {name: value for name, value in arguments.items() if name in parameters}


def _with_state(model: Any, held: Any, strict: Optional[bool]) -> Any:
    """A model into which the state of a checkpoint is loaded."""
    for hook, given in (("configure_model", ()), ("on_load_checkpoint", (held,))):
        _called(model, hook, *given)
    model.load_state_dict(held["state_dict"], strict=getattr(model, "strict_loading", True) if strict is None else strict)
    return model


def _backward(module: Any, loss: Any, *args: Any, **kwargs: Any) -> None:
    loss.backward()


def _schedulers_of(module: Any) -> Optional[Any]:
    return absent("lr_schedulers()", "definition")


def modules(module: ModuleType) -> List[Replacement]:
    """`lightning.pytorch.core.module`: what a module asks of its trainer."""
    owner = module.LightningModule
    return [
        *[(owner, name, nothing) for name in _TELLING.split() if hasattr(owner, name)],
        (owner, "trainer", property(_trainer_of, _attach)),
        (owner, "load_from_checkpoint", classmethod(_from_checkpoint)),
        (owner, "optimizers", _optimizers_of),
        (owner, "lr_schedulers", _schedulers_of),
        (owner, "manual_backward", _backward),
        (owner, "all_gather", lambda self, data, *args, **kwargs: data),
        (owner, "logger", property(lambda self: absent("logger", "definition"))),
    ]


def _from_arguments(cls: Any, args: Any = None, **kwargs: Any) -> Any:
    """`Trainer.from_argparse_args(args)`, of a data module too: what the class takes of the arguments."""
    given = dict(vars(args)) if isinstance(args, argparse.Namespace) else {}
    taken = inspect.signature(cls.__init__).parameters
    return cls(**{name: value for name, value in {**given, **kwargs}.items() if name in taken or name in kwargs})


def _add_arguments(cls: Any, parent_parser: Any, **kwargs: Any) -> Any:
    """`DataModule.add_argparse_args(parser)`: an argument for each parameter that has a plain default."""
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if parameter.default is None or isinstance(parameter.default, (bool, int, float, str)):
            with contextlib.suppress(argparse.ArgumentError):  # The parser has it.
                parent_parser.add_argument("--" + name, default=parameter.default)
    return parent_parser


def _before_version_2(owner: Any) -> List[Replacement]:
    """Returns what a class read from a command line before version 2.0."""
    methods: Dict[str, Any] = {"add_argparse_args": _add_arguments, "from_argparse_args": _from_arguments}
    return [(owner, name, classmethod(method)) for name, method in methods.items() if not hasattr(owner, name)]


def data_modules(module: ModuleType) -> List[Replacement]:
    """`lightning.pytorch.core.datamodule`."""
    return _before_version_2(module.LightningDataModule)


def trainers(module: ModuleType) -> List[Replacement]:
    """`lightning.pytorch.trainer.trainer`: the trainer itself."""
    owner = module.Trainer
    names = ("__init__", "__getattr__", "fit", "validate", "test", "predict", "save_checkpoint", "_run", "_more")
    found: List[Replacement] = [(owner, name, _Trainer.__dict__[name]) for name in names]
    # Properties of the class would hide what an instance of it holds.
    shown = [name for name, value in vars(owner).items() if isinstance(value, property) and not name.startswith("__")]
    return found + [(owner, name, _Held(name)) for name in shown] + _before_version_2(owner)


class _Held:
    """An attribute that an instance holds, or a stand-in for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        return instance.__dict__[self._name] if self._name in instance.__dict__ else instance.__getattr__(self._name)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = value


_IN_PACKAGE = {"core.module": modules, "core.datamodule": data_modules, "trainer.trainer": trainers, "cli": command_line}
IN_MODULE = {
    "%s.%s" % (package, name): replacements
    for package in ("lightning.pytorch", "pytorch_lightning")
    for name, replacements in _IN_PACKAGE.items()
}
