"""One run: load the document, evaluate its examples, and send what was seen.

Each example is evaluated as it is, and the trace is sent at once, as findings need nothing more. Then each is evaluated again with other
sizes (dim_names.py), and the trace is sent again with its dims named.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from ..protocol import PATIENT_SECONDS, Deepened, Evaluating, ExampleRun, Executing, Finished, Profiled, Run, Trace, Traced
from .calls.mismatches import one_line
from .deep.stage import examine
from .evaluation.axis_run import is_worth_following
from .evaluation.evaluated import Evaluated, as_seen
from .evaluation.evaluation import EXITS, exit_message
from .evaluation.example_runner import ExampleRunner
from .evaluation.run_context import RunContext
from .loading.load_progress import RunningStatement, ToldProgress, shared
from .memo import early_diagnosis
from .meta import (  # noqa: F401  These modules add their rules to those of the mode.
    constants,
    data_dependent,
    gradients,
    known_outcomes,
    shape_rules,
    sparse,
)
from .profile.stage import profile
from .program.stage import follow_program
from .reload.loaded_project import LoadedProject, Unsuitable
from .sandbox import read_files
from .sandbox.clocks import WorkClock
from .sandbox.limits import DeadlineReached
from .search_stage import find_examples, let_guesses_give_way

Send = Callable[[Any], None]
Load = Callable[[], Dict[str, Any]]

SOON_NAMED = 0.2  # seconds for which what is complete but for the names of dims is not worth sending


def execute(run: Run, send: Send, project: Optional[LoadedProject] = None, known: Callable[[], None] = lambda: None) -> Finished:
    """Do a run, sending `Traced` messages; returns the `Finished` that ends it. A bug of ours is called one, its traceback in the log.

    `known` is called when it is known what is wrong: what follows takes its time.

    project: what an earlier run has loaded. Raises Unsuitable where the run cannot be done with that.
    """
    try:
        if project is not None:
            return Stages(run, send, project.context, known, project).done(lambda: project.reload(run))
        context = RunContext(run)
        with context.environment():
            return Stages(run, send, context, known).done(context.load)
    except Unsuitable:
        raise
    except (DeadlineReached, MemoryError) as error:
        return Finished(run.run_id, "deadline" if isinstance(error, DeadlineReached) else "memory", "the run was stopped")
    except Exception as error:
        traceback.print_exc()
        return Finished(run.run_id, "crash", "ShapeLens failed: %s: %s" % (type(error).__name__, one_line(error)))


class Stages:
    """The stages of a run under way."""

    def __init__(
        self, run: Run, send: Send, context: RunContext, known: Callable[[], None], project: Optional[LoadedProject] = None
    ) -> None:
        self.run = run
        self.send = send
        self.project = project
        self.context = context
        self.trace = context.trace = Trace(run.file)
        self.runner = ExampleRunner(run, send, context, known)
        self.evaluated: List[Evaluated] = []
        self.number: Optional[int] = None  # of the example that is evaluated, among those of the run

    def done(self, load: Load) -> Finished:
        """Go through all stages; says how that ended. What ends a run (evaluation.py) may do so in any of them."""
        clock = WorkClock()
        outcome, detail, hurried = "ok", "", False
        try:
            self.context.progress.look()
            if self._load(load):
                self.context.progress.look()
                if self.run.profile is not None:
                    self.send(Evaluating(self.run.run_id, ""))
                    profile(self.runner, self.run.profile, lambda found: self.send(Profiled(self.run.run_id, found)))
                    return Finished(self.run.run_id, outcome, detail, clock(), read_files.files())
                if self.run.deep is not None:
                    self.send(Evaluating(self.run.run_id, ""))
                    self.send(Deepened(self.run.run_id, examine(self.runner, self.run.deep)))
                    return Finished(self.run.run_id, outcome, detail, clock(), read_files.files())
                self._take_part_in_rehearsals()
                self._run_given_examples()
                in_time = self._find_examples()
                self._say_what_is_wrong()
                self._send_what_was_seen(in_time)
                hurried = not self._follow_program() and self.run.program < PATIENT_SECONDS
        except DeadlineReached:
            outcome, detail = "deadline", "the run took longer than its deadline of %g s" % self.run.deadline
            self._stopped(outcome, detail)
        except MemoryError:
            outcome, detail = "memory", "the run needed more than its memory limit of %d MB" % (self.run.memory_limit >> 20)
            self._stopped(outcome, detail)
        except EXITS as error:
            outcome, detail = "exit", exit_message(error)
            self._stopped(outcome, detail)
        finally:
            self.runner.past.restore()
        return Finished(self.run.run_id, outcome, detail, clock(), read_files.files(), hurried=hurried)

    def _follow_program(self) -> bool:
        """Follow the document as a program, if that is wanted; whether there was time for all of it."""
        if not self.run.program:
            return True
        return follow_program(self.runner, lambda: self.send(Traced(self.run.run_id, "program", self.trace)))

    def _load(self, load: Load) -> bool:
        """Load the document; whether that is possible."""
        if self.run.line_by_line:
            shared.progress = ToldProgress(self.run.file, self._tell_of_statement)
        try:
            self.runner.names = load()
        except SyntaxError as error:
            # The server knows better where; a run of such a text happens only in a race.
            message = "%s (line %s)" % (error.msg, error.lineno)
            self.trace.examples = [
                ExampleRun(request.target, request.expression, error=message, error_kind="syntax") for request in self.run.examples
            ]
            self.send(Traced(self.run.run_id, "run", self.trace))
            return False
        finally:
            if self.run.line_by_line:
                shared.progress = None
        return True

    def _tell_of_statement(self, running: Optional[RunningStatement]) -> None:
        where = (running.line, running.end_line, running.is_import) if running is not None else (0,)
        self.send(Executing(self.run.run_id, *where))

    def _take_part_in_rehearsals(self) -> None:
        """Write down what is built and called where this run is rehearsed, or say what is wrong by what was written down."""
        rehearsed: Optional[early_diagnosis.RehearsedExamples] = self.project.rehearsed_examples if self.project is not None else None
        if rehearsed is None:
            return
        if rehearsed.is_open:
            self.runner.first_path = lambda example, follow: rehearsed.record(self.runner, example, follow)
        elif self.run.findings_first and self.run.search is None and not early_diagnosis.diagnose_early(self.runner, rehearsed):
            raise Unsuitable("running the document has changed it")

    def _run_given_examples(self) -> None:
        for number, request in enumerate(self.run.examples):
            self.send(Evaluating(self.run.run_id, request.target, number))
            self.number = number
            found = self.runner.evaluate(ExampleRun(request.target, request.expression))
            if found is None:
                continue
            if self._is_alone:
                self.runner.findings.say(self.trace, partial(found.calls.layers, 0, as_seen))
            self.runner.record(found)
            self.evaluated.append(found)
            self.context.evaluation.watch_anew()
        self.number = None
        self.send(Evaluating(self.run.run_id, ""))

    def _find_examples(self) -> bool:
        """Look for examples where that is wanted, and run them; whether that was done before the deadline."""
        if self.run.search is None:
            return True
        if self.evaluated:  # What was asked for does not wait for what is looked for.
            self.send(Traced(self.run.run_id, "given", self.trace))
        return find_examples(self.runner, self.run.search, self.evaluated)

    def _say_what_is_wrong(self) -> None:
        if not self._is_alone:
            self.runner.findings.say(self.trace, lambda wanted: [self.trace.layers[index] for index in sorted(wanted)])

    @property
    def _is_alone(self) -> bool:
        """True if there is one example, of which it is said at once what is wrong."""
        return len(self.run.examples) == 1 and self.run.search is None

    def _send_what_was_seen(self, in_time: bool) -> None:
        """Send the whole trace, and once more when its dims have names.

        Remarks come with the last one: they can wait, and the names of dims help to judge them.
        """
        run, runner = self.run, self.runner
        # In a brief run only the dims count that are spoken of.
        worth_naming = [found for found in self.evaluated if not run.brief or found.remarks or found.calls.mismatches]
        followed = [found for found in self.evaluated if is_worth_following(found)]
        to_be_named = run.named and in_time and (any(found.sizes for found in worth_naming) or bool(followed))
        if not to_be_named:
            self.trace.remarks = self._remarks()
        if run.search is not None:
            let_guesses_give_way(self.trace)
        if not (to_be_named and runner.findings.said is not None and runner.seconds_to_name(worth_naming) < SOON_NAMED):
            self.send(Traced(run.run_id, "run", self.trace))
        if to_be_named:
            with contextlib.suppress(DeadlineReached):  # The run itself is complete: what could not be named in time stays numbers.
                runner.name_dims(worth_naming)
                runner.follow_axes(followed)
            self.trace.remarks = self._remarks()
            if run.search is not None:
                let_guesses_give_way(self.trace)
            self.send(Traced(run.run_id, "named", self.trace))

    def _remarks(self) -> List[Any]:
        return [remark for found in self.evaluated for remark in found.remarks]

    def _stopped(self, kind: str, message: str) -> None:
        """The run ended early: what was seen so far is sent, with the place where it was, at the example that ended it. What that kept from
        being evaluated is for a run without it.
        """
        trail = self.context.frames.trail_of(sys.exc_info()[2])
        last = len(self.run.examples) if self.number is None else self.number + 1
        for request in self.run.examples[len(self.trace.examples) : last]:
            self.trace.examples.append(ExampleRun(request.target, request.expression))
        for number, example in enumerate(self.trace.examples):
            if number == self.number or (self.number is None and (not example.parameter_count or example.error)):
                example.error, example.error_kind = message, kind
                example.error_span = trail[-1] if trail else None
        self.send(Traced(self.run.run_id, "run", self.trace))
