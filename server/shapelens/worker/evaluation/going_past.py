"""Going on past an exception of Python's: a name that is not there yet, an attribute that nobody sets, wrong arguments of a function.

An operation or a layer that fails gives a stand-in where it stands (calls/recovery.py); an exception has left its function by then. So the
function gets other code, in which each statement can fail alone (rewrite/guarded.py), and the example is evaluated once more. What is
healthy pays nothing for it.

The first exception is said, as it would be had it ended the example; of what comes after it only what is a mistake in any case (`is_sure`),
as the rest may follow from the first.
"""

from __future__ import annotations

import ast
import re
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any, Dict, Iterator, Optional, Set, Tuple

import torch

from ...protocol import Mismatch
from ..calls.exception_handlers import handled_by_user, is_raised_here
from ..calls.mismatches import meant_name, mismatch_of, one_line
from ..calls.misused_layers import made_at
from ..calls.sure_mistakes import code_of_sure, is_sure, may_be_of_another_class, tuple_of_layer
from ..calls.uninitialised_modules import assign_after_all, is_assigned_too_early
from ..loading.code_objects import codes_in, function_of_frame
from ..loading.importer import UserFinder
from ..loading.incremental_parse import MOVED
from ..loading.statements import future_flags
from ..rewrite.guarded import INSTEAD, STATEMENT_FAILED, guarded_function
from ..sandbox.exceptions import is_raise, traceback_of
from ..unknown import unknown_sizes
from ..unknown.stand_ins import absent, cause_of
from .evaluation import Evaluation

MOST_FUNCTIONS = 8  # that get other code in a run
# What says nothing of the statement: it is too much for the machine, or is meant to be raised.
_NOT_GONE_PAST = (MemoryError, RecursionError, NotImplementedError, StopIteration, GeneratorExit)
_OUTSIDE = re.compile(r"(list|tuple|string|deque) index out of range")  # what Python says of an item that is not there
_FAILED = "what failed", "definition"  # the name of what takes the place of a value, and the code of a finding that it leads to


class GoingPast:
    """The functions of a run that go on past what fails in them. `restore` gives them their own code back."""

    def __init__(self, evaluation: Evaluation, finder: UserFinder) -> None:
        self._evaluation = evaluation
        self._finder = finder
        self._changed: Dict[CodeType, Tuple[FunctionType, CodeType]] = {}  # by their other code
        self.guesses = True  # whether a value that a failed statement would have made is taken to be like a tensor of the statement
        self._assigned: Optional[Tuple[Any]] = None  # what was assigned after all by the statement that has just failed
        self._given_up: Set[CodeType] = set()  # the own code of functions that an exception ends all the same

    def is_prepared_for(self, error: Optional[BaseException]) -> bool:
        """True if a function now goes on past the end of an evaluation, or of a module in it, and did not before."""
        errors = [*([error] if isinstance(error, Exception) else []), *self._evaluation.calls.ended_modules]
        return any(self._give_up(each) or self._prepare(each) for each in errors)

    def follows(self, error: BaseException) -> bool:
        """True if an exception comes from an unknown, the result of a statement that the function went past: `a, b = self.failed(x)`."""
        cause = cause_of(error) if self._changed and isinstance(error, Exception) else None
        return cause is not None and cause[0] == _FAILED[1] and _FAILED[0] in cause[1]

    def _give_up(self, error: BaseException) -> bool:
        """True if a function has its own code again, as an exception ends it all the same: the trace is then as if nothing was tried."""
        left = {frame.f_code for frame, _ in _frames(error)} & self._changed.keys()
        for code in left:
            function, own = self._changed.pop(code)
            function.__code__ = own
            self._given_up.add(own)
        return bool(left)

    def restore(self) -> None:
        """Give all functions their own code."""
        for function, code in self._changed.values():
            function.__code__ = code
            for name in (STATEMENT_FAILED, INSTEAD):
                function.__globals__.pop(name, None)
        self._changed.clear()
        self._given_up.clear()

    def _prepare(self, error: BaseException) -> bool:
        found = mismatch_of(error, 0, self._evaluation.frames, self._evaluation.meta, self._evaluation.calls)
        is_said = _is_of_python(found) or is_sure(error) or self.follows(error)
        if isinstance(error, _NOT_GONE_PAST) or not is_said or not found.trail:
            return False
        for frame, line in reversed(list(_frames(error))):
            code = frame.f_code
            is_user = self._evaluation.frames.is_user_file(code.co_filename)
            if not is_user or code.co_name.startswith("<") or code in self._given_up or is_raise(code.co_filename, line):
                continue
            if len(self._changed) == MOST_FUNCTIONS:
                return False
            function = function_of_frame(frame)
            other = self._other_code(code) if function is not None else None
            if function is not None and other is not None:
                self._changed[other] = function, code
                function.__code__ = other
                function.__globals__.update({STATEMENT_FAILED: self._statement_failed, INSTEAD: self._instead})
                return True
        return False

    def _other_code(self, code: CodeType) -> Optional[CodeType]:
        statements = self._finder.rewritten_statements(code.co_filename)
        for statement in statements:
            node = guarded_function(statement, code.co_name, code.co_firstlineno, statement.__dict__.get(MOVED, 0))
            if node is None:
                continue
            tree = ast.Module([node], [])
            flags = future_flags(ast.Module(statements, []))
            try:
                made = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError):
                return None
            return next((each for each in codes_in(made) if each.co_name == code.co_name and each.co_freevars == code.co_freevars), None)
        return None

    # --- what the code calls ---

    def _statement_failed(self, error: Exception) -> None:
        """A statement has failed. Raises the error where it is to end the function."""
        try:
            is_gone_past = self._goes_past(error, sys._getframe(1))
        except Exception:  # What the code has done to Python keeps us from looking at it.
            is_gone_past = False
        if not is_gone_past:
            raise error

    def _goes_past(self, error: Exception, frame: FrameType) -> bool:
        """True if a function goes on after a statement that has failed. Adds the mistake there to the findings."""
        evaluation, calls, sure = self._evaluation, self._evaluation.calls, is_sure(error)
        in_search = calls.refuse is not None
        if isinstance(error, _NOT_GONE_PAST) or calls.aside or is_raised_here(error, frame):
            return False
        if in_search and not (sure or calls.gone_past or calls.has_no_choice or self.follows(error)):
            return False
        if frame.f_back is not None and handled_by_user(error, frame.f_back):
            return False
        trail = [*evaluation.frames.trail()[:-1], *evaluation.frames.trail_of(traceback_of(error))]
        with torch._C.DisableTorchFunction():
            found = mismatch_of(error, calls.example, evaluation.frames, evaluation.meta, calls, trail)
        if sure:
            found.code, found.message = code_of_sure(error), one_line(error)
            found.sure = not may_be_of_another_class(error)
            calls.met_sure |= found.sure
            found.origins = found.origins or made_at(tuple_of_layer(error), calls.recorder)
        elif found.code != "definition" and (in_search or not _is_of_python(found)):  # It is what failed before.
            return False
        calls.gone_past = True
        said = [each for each in calls.mismatches if _is_of_python(each)]
        is_another = not said or (sure and all(each.message != found.message for each in said) and not is_assigned_too_early(error))
        self._assigned = assign_after_all(error)
        if not in_search and found.code != "definition" and is_another:
            found.meant = meant_name(error)
            calls.add_mismatch(found)
        return True

    def _instead(self, names: Tuple[str, ...]) -> Any:
        """Returns the replacement for a value: a tensor of as many dims as the first one among these names, or something unknown."""
        assigned, self._assigned = self._assigned, None
        if assigned is not None:
            return assigned[0]
        try:
            held = sys._getframe(1).f_locals
            of_it = names if self.guesses else ()
            like = next((held[name] for name in of_it if type(held.get(name)) is torch.Tensor), None)
            if like is not None:
                return self._evaluation.calls.recovery.instead(like)
            lasting = unknown_sizes.state.lasting
            made = absent(*_FAILED)
            unknown_sizes.state.lasting = lasting  # It ends with the example.
            return made
        except Exception:  # As above.
            return None


def _is_of_python(found: Mismatch) -> bool:
    """True if a mismatch is Python's error in a statement, rather than torch's in an operation."""
    return found.code in ("exception", "call-arguments", "layer-input") or (
        found.code == "index" and _OUTSIDE.fullmatch(found.message) is not None
    )


def _frames(error: BaseException) -> Iterator[Tuple[FrameType, int]]:
    """The frames that an exception passed, with the lines that they were at, the innermost last."""
    traceback = traceback_of(error)
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
