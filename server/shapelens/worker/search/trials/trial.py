"""Tries: builds a model and calls it as an example would, but ends at the first thing that does not fit, and tells how far that was."""

from __future__ import annotations

import builtins
import inspect
from typing import Any, Callable, Dict, FrozenSet, Mapping, Optional, Tuple

import torch

from ....protocol import ExampleRun, Mismatch
from ...calls.mismatches import mismatch_of
from ...calls.module_calls import Passes
from ...calls.sure_mistakes import is_sure
from ...evaluation.evaluation import NONE_TURNED, Evaluation
from ...evaluation.example_runner import ExampleRunner
from ...evaluation.expression import MAKE, ONCE, Maker, Namespace, compile_expression
from ...sandbox.clocks import WorkClock
from ...sandbox.limits import TooLong, within
from ...trace.frames import EXAMPLE_FILE
from ...trace.recorder import SeenValues
from ...unknown import unknown_sizes
from ...unknown.conditions import ConditionPlace, branches, gave_up

MODEL = "__shapelens_model__"
_GIVEN = "__shapelens_given__"
_TOO_LONG = object()
_CALL = compile("%s(*%s[0], **%s[1])" % (MODEL, _GIVEN, _GIVEN), EXAMPLE_FILE, "eval")
LONGEST = 0.5  # seconds that an attempt may take in any case


class RefusedInput(BaseException):
    """A layer got what it cannot take, or an operation failed. No `Exception`: what user code catches does not come here."""

    def __init__(self, found: Mismatch) -> None:
        super().__init__(found.message)
        self.found = found


class Trial:
    """The outcome of one attempt."""

    def __init__(self, reached: int, error: Optional[BaseException], found: Optional[Mismatch]) -> None:
        self.reached = reached  # places of the text that it came to
        self.error = error  # None: it ran to its end
        self.found = found  # what did not fit, where that is known
        self.classes: FrozenSet[type] = frozenset()  # of the modules that gave a result
        self.result: Any = None

    @property
    def place(self) -> Any:
        """Where it failed; equal for two attempts that failed at the same place of the text."""
        return (
            None if self.found is None or self.found.span is None else (self.found.span.file, self.found.span.line, self.found.span.column)
        )


class TrialRunner:
    """Where attempts are made: the environment of a run, with the document loaded."""

    def __init__(self, job: ExampleRunner, names: Mapping[str, Any], seconds: float) -> None:
        self.job = job
        self.evaluation: Evaluation = job.evaluation
        self.names = names
        self._worked = WorkClock()
        self._imported = 0.0  # seconds that imports took
        self.until = seconds  # `clock()` at which the search has to have ended
        self.most_seconds = max(LONGEST, seconds / 3)  # that one attempt may take
        self.tried = 0
        self._built_of_unknown = False  # whether there was an unknown size when the model was built that is called now
        self.target = ""  # the class that an example is looked for
        self.seen: Optional[Dict[int, SeenValues]] = None  # what the last attempt saw, where it was a call that ran to its end
        self.passes: Optional[Passes] = None  # whether attempts go past a mismatch, as no example avoids it
        self.wants_batch = False  # whether attempts end where a convolution takes an input for a picture without batch
        self.has_defaults_only = False  # whether a class is built with its defaults
        self._models: Dict[str, Any] = {}
        self._plain: Dict[str, Any] = {}  # numbers and texts that arguments have turned out to be, by their text; TOO_LONG for none
        self._built: Dict[int, SeenValues] = {}  # what was seen while the last model was built
        self._before: Dict[int, SeenValues] = {}  # the same, where that was not part of the last attempt

    @property
    def seen_so_far(self) -> Dict[int, SeenValues]:
        """Returns the values of the last attempt, be it over or not, with those from the construction of its model."""
        return {**self._before, **self.evaluation.recorder.seen}

    @property
    def is_over(self) -> bool:
        """True if the time of the search is up."""
        return self.clock() > self.until

    def clock(self) -> float:
        """Seconds of work since the search began, but for imports: on a busy machine the same is found as on an idle one, if later."""
        return self._worked() - self._imported

    # --- building ---

    def build(self, constructor: str) -> Tuple[Any, Trial]:
        """The model that an expression gives, and how that went."""
        if constructor in self._models:
            return self._models[constructor], Trial(0, None, None)
        self.tried += 1
        self._before = {}
        has_no_choice = self._has_no_choice(constructor)
        self.has_defaults_only = constructor == "%s()" % self.target
        trial = self._evaluated(lambda namespace: eval(compile_expression(constructor, once=True), namespace), has_no_choice=has_no_choice)
        self.has_defaults_only = False
        if trial.error is None:
            self._models = {constructor: trial.result}  # Only the last one: they may be large.
            self._built = self.evaluation.recorder.seen
        return trial.result, trial

    def _has_no_choice(self, constructor: str) -> bool:
        """True if a class is built that has no settings."""
        if constructor != "%s()" % self.target:
            return False
        try:
            return not parameters_of(self.names[self.target])
        except KeyError:
            return False

    def whole(self, expression: str) -> Trial:
        """Evaluate a whole example."""
        self.tried += 1
        self._before = {}
        trial = self._evaluated(lambda namespace: eval(compile_expression(expression, once=True), namespace))
        self.seen = self.evaluation.recorder.seen if trial.error is None else None
        return trial

    def parted(self, constructor: str, arguments: str) -> Trial:
        """Evaluate an example whose model and arguments are known apart: the same model is built once."""
        model, built = self.build(constructor)
        if built.error is not None:
            built.reached = 0
            return built
        return self.call(model, arguments)

    def namespace(self) -> Namespace:
        """The globals of an expression."""
        namespace = Namespace(self.names)
        namespace[MAKE] = Maker(namespace, {}, {})
        namespace[ONCE] = self._once
        namespace["__builtins__"] = vars(builtins)
        return namespace

    def _once(self, text: str, make: Callable[[], Any]) -> Any:
        """The value of an argument. A number or text is computed for one attempt only: `len(Corpus(path).dictionary)` may read a data set.
        Raises TooLong where that attempt had no time for it.
        """
        if text not in self._plain:
            self._plain[text] = _TOO_LONG
            try:
                value = make()
            except TooLong:
                raise
            except BaseException:
                del self._plain[text]
                raise
            if type(value) not in (int, float, bool, str):
                del self._plain[text]
                return value
            self._plain[text] = value
        if self._plain[text] is _TOO_LONG:
            raise TooLong
        return self._plain[text]

    # --- calling ---

    def call(self, model: Any, arguments: str) -> Trial:
        """Call a model with arguments, written as in a call: `f32[B:2, 3], mask=None`."""
        self.tried += 1
        trial = self._call(model, arguments, NONE_TURNED)
        turned = branches.last(self.evaluation.frames.is_user_file)
        if turned and trial.error is not None and self._gave_up(trial):
            # A condition on data led into a path that ends, as it does in a run.
            other = self._call(model, arguments, turned)
            trial = other if other.error is None or other.reached > trial.reached else trial
        return trial

    def _gave_up(self, trial: Trial) -> bool:
        found = [trial.found] if trial.found is not None and isinstance(trial.error, RefusedInput) else []
        return gave_up(None if isinstance(trial.error, RefusedInput) else trial.error, found, self.evaluation.frames.is_user_file)

    def _call(self, model: Any, arguments: str, turned: FrozenSet[ConditionPlace]) -> Trial:
        def evaluate(namespace: Namespace) -> Any:
            namespace[_GIVEN] = eval(compile_expression("(lambda *args, **kwargs: (args, kwargs))(%s)" % arguments), namespace)
            namespace[MODEL] = model
            return eval(_CALL, namespace)

        self._before = self._built
        job = self.job
        if not job.trace.observations:  # A forward that takes long shows what it has come to.
            expression = "%s(%s)" % (next(iter(self._models), ""), arguments)
            job.attempts = [ExampleRun(self.target, expression, evidence="inferred", doubtful=True)]
            job.progress.begin()
        try:
            trial = self._evaluated(evaluate, turned, keeps_modules=True)
        finally:
            job.progress.end()
        self.seen = self.seen_so_far if trial.error is None else None
        return trial

    # --- both ---

    def _evaluated(
        self,
        evaluate: Callable[[Namespace], Any],
        turned: FrozenSet[ConditionPlace] = NONE_TURNED,
        *,
        keeps_modules: bool = False,
        has_no_choice: bool = False,
    ) -> Trial:
        """has_no_choice: what is evaluated is given nothing that could be another, so that what fails in it is wrong in the code."""
        evaluation, result = self.evaluation, None

        def start() -> None:
            self.seen = None
            if not keeps_modules:
                evaluation.watch_anew()
            evaluation.start(0, turned, keeps_modules=keeps_modules)
            unknown_sizes.state.met |= keeps_modules and self._built_of_unknown
            evaluation.meta.recover, evaluation.calls.has_no_choice = evaluation.calls.recovery.unable, has_no_choice
            evaluation.calls.wants_batch = self.wants_batch
            evaluation.calls.passes, evaluation.calls.has_defaults_only = self.passes, self.has_defaults_only

        def run_it() -> None:
            nonlocal result
            result = evaluate(self.namespace())

        error: Optional[BaseException]
        lasting = unknown_sizes.state.lasting
        try:
            with within(self.most_seconds) as limit, evaluation.ending_at_first_mismatch(RefusedInput):
                error = evaluation.run(start, run_it)
                past = self.job.past
                while error is not None and (has_no_choice or is_sure(error) or past.follows(error)) and past.is_prepared_for(error):
                    error = evaluation.run(start, run_it)  # No other example avoids that: the rest tells which one fits.
        except TooLong as reached:
            error = reached
        finally:
            unknown_sizes.state.lasting = lasting  # What an attempt has made is not used by those that follow.
        self._imported += limit.importing
        trial = self._ended(error)
        trial.result = result
        return trial

    def _ended(self, error: Optional[BaseException]) -> Trial:
        evaluation = self.evaluation
        evaluation.meta.inside_layer = 0
        self._built_of_unknown = unknown_sizes.state.met
        found: Optional[Mismatch] = None
        if isinstance(error, RefusedInput):
            found = error.found
        elif error is not None:
            found = mismatch_of(error, 0, evaluation.frames, evaluation.meta, evaluation.calls)
        trial = Trial(len(evaluation.recorder.seen), error, found)
        trial.classes = evaluation.calls.called_classes()
        return trial


def sources_first(runner: TrialRunner, where: str) -> str:
    """Returns the expression to evaluate for an example, with %s for the example's own: before it the functions that say what it is called
    with, as far as they run, so that what they hold shows as well."""
    if where != "get_inputs()":
        return "%s"
    calls = [call for call in ("get_init_inputs()", "get_inputs()") if runner.whole(call).error is None]
    return "(%s, %%s)[-1]" % ", ".join(calls) if calls else "%s"


def parameters_of(function: Any) -> "list[inspect.Parameter]":
    """The parameters of a bound method or class, as a caller sees them; [] where Python cannot tell."""
    try:
        with torch._C.DisableTorchFunction():
            return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
