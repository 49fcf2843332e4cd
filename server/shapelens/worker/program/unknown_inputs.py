"""The inputs of a module of the program where nothing is known of them: batches of a missing library, of the program's own iterator.

The module gets the inputs of its class's example, or others that the search finds for this very module, with a batch of unknown size.
Mistakes under such inputs are not reported.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import re
from typing import AbstractSet, Any, Dict, Iterator, List, Mapping, Optional, Tuple

import torch

from ..calls.misused_layers import binds
from ..calls.recovery import is_vague
from ..evaluation.example_runner import ExampleRunner
from ..evaluation.expression import MAKE, Maker, Namespace, compile_expression
from ..meta.mode import made
from ..sandbox.limits import TooLong, within
from ..search.code.sources import function_node
from ..search.evidence import BuildPlan, InputShape
from ..search.inputs.input_search import InputSearch, last_of
from ..search.text.annotations import input_shapes
from ..search.trials.trial import TrialRunner, parameters_of
from ..trace import module_tree
from ..trace.value_summary import LAYER
from ..unknown import unknown_sizes
from ..unknown.stand_ins import absent, is_absent
from .class_examples import ClassExample, NamesAndMore
from .flow import UNKNOWN_KEYWORD

MOST_TRIES = 30
MOST_SECONDS = 1.0  # for one module
_MODEL = "__shapelens_called__"
_NAMED = re.compile(r"\b([A-Za-z_]\w*):\d")


class UnknownInputs:
    """Calls modules that are given stand-ins. `examples`: of the document's classes."""

    def __init__(self, runner: ExampleRunner, examples: Mapping[str, ClassExample], seconds: float) -> None:
        self._runner = runner
        self._examples = examples
        self._seconds = seconds  # that are left for searching
        self._known: Dict[int, Tuple[Any, Optional[str]]] = {}  # by module: itself, and its arguments as text

    def call(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any]]:
        """Returns the result of a module; None where its arguments are known, or where no inputs are found."""
        if not any(_is_unknown(given) for given in (*args, *kwargs.values())):
            return None
        if UNKNOWN_KEYWORD not in kwargs and not binds(module, args, kwargs):
            return None  # The call as it stands says so.
        calls = self._runner.evaluation.calls
        if isinstance(module, torch.nn.modules.loss._Loss):
            if getattr(module, "reduction", "") not in ("mean", "sum") or not any(isinstance(each, torch.Tensor) for each in args):
                return None
            result = made([], torch.get_default_dtype(), torch.is_grad_enabled())
            calls.record(module, args, kwargs, result)
            return (result,)
        text = self._arguments(module)
        if text is None:
            return None
        names = list(dict.fromkeys(_NAMED.findall(text)))
        for unknown in [names, names[:1]] if len(names) > 1 else [names]:
            before = len(calls.mismatches)
            try:
                given, named = self._evaluated(text, unknown)
                result = calls.call(module, given, named)
            except Exception:  # Of the user's code, with what it was not meant for.
                continue
            finally:
                failed = len(calls.mismatches) > before
                del calls.mismatches[before:]
            if not failed:
                missing = kwargs.keys() - named.keys()
                if missing == {UNKNOWN_KEYWORD} and _takes_no_more(module, len(given) + len(named)):
                    missing = set()
                return (_as_called(result, missing),)
        return None

    def _evaluated(self, text: str, unknown: List[str]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        namespace = Namespace(self._runner.names)
        namespace[MAKE] = Maker(namespace, dict.fromkeys(unknown, unknown_sizes.size()), {})
        namespace["__builtins__"] = vars(builtins)
        given: Tuple[Tuple[Any, ...], Dict[str, Any]] = eval(
            compile_expression("(lambda *args, **kwargs: (args, kwargs))(%s)" % text), namespace
        )
        return given

    # --- what fits ---

    def _arguments(self, module: Any) -> Optional[str]:
        known = self._known.get(id(module))
        if known is None or known[0] is not module:
            with self._aside(module):
                known = self._known[id(module)] = module, self._found(module)
        return known[1]

    def _found(self, module: Any) -> Optional[str]:
        seconds = min(self._seconds, MOST_SECONDS * self._runner.run.patience)
        if seconds <= 0 or (not module.__dict__.get("_modules") and type(module).__module__.startswith("torch.")):
            return None
        trials = TrialRunner(self._runner, NamesAndMore(self._runner.names, {_MODEL: module}), seconds)
        try:
            with within(seconds):
                example = self._examples.get(type(module).__qualname__)
                own = ", ".join(example.arguments) if example is not None else ""
                if example is not None and trials.call(module, own).error is None:
                    return own
                inputs = InputSearch(trials, _input_shapes(module), MOST_TRIES, lambda plan, error: [])
                best = last_of(inputs.search(BuildPlan(_MODEL), module))
        except TooLong:
            return None
        finally:
            self._seconds -= trials.clock()
        return best.given if best is not None and best.trial is not None and best.trial.error is None else None

    @contextlib.contextmanager
    def _aside(self, module: Any) -> Iterator[None]:
        """The search leaves nothing behind: neither in what watches the program nor in the module."""
        evaluation, state = self._runner.evaluation, unknown_sizes.state
        meta, recorder = evaluation.meta, evaluation.recorder
        kept = [(each, each.__dict__.get(LAYER), each.training) for each in module_tree.modules(module)]
        before = dict(vars(state)), meta.recover, meta.vague, meta.failure, meta.inside_layer, recorder.last, set(recorder.reached)
        try:
            with evaluation.aside():
                evaluation.watch_anew()
                yield
        finally:
            vars(state).update(before[0])
            meta.recover, meta.vague, meta.failure, meta.inside_layer, recorder.last, recorder.reached = before[1:]
            for each, layer, training in kept:
                each.training = training
                if layer is None:
                    each.__dict__.pop(LAYER, None)
                else:
                    each.__dict__[LAYER] = layer


def _input_shapes(module: Any) -> Dict[str, InputShape]:
    """Returns the shapes of the inputs of a user's module as its text states them."""
    node = function_node(type(module).forward)
    try:
        lines = inspect.getsource(inspect.getmodule(type(module)) or type(module)).splitlines()
    except (OSError, TypeError):
        return {}
    return {} if node is None else input_shapes(node, lines, None, None)


def _takes_no_more(module: Any, count: int) -> bool:
    """True if a module has exactly so many parameters, so that `**batch` can have given it no others."""
    parameters = parameters_of(module.forward)
    return len(parameters) == count and all(each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters)


def _as_called(result: Any, missing: AbstractSet[str]) -> Any:
    """Returns the result of a call with more keywords than the real one: with `labels`, models of transformers put a loss first."""
    fields = getattr(type(result), "__dataclass_fields__", {})
    if not missing or isinstance(result, torch.Tensor):
        return result
    if isinstance(result, dict) and "loss" in fields:
        if result.get("loss") is None:
            is_sure = any("label" in name for name in missing)
            loss = made([], torch.get_default_dtype(), torch.is_grad_enabled()) if is_sure else absent("the loss", "definition")
            return type(result)(**{**result, "loss": loss})
        return result
    return absent("what this call gives", "definition")


def _is_unknown(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(is_absent(each) for each in value[:8])
    if type(value) is dict:
        return any(map(_is_unknown, list(value.values())[:8]))
    return is_absent(value) or (isinstance(value, torch.Tensor) and is_vague(value))
