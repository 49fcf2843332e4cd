"""A document as a program: its statements one after the other, in a namespace of their own, as `python file.py` would run them."""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Callable, Container, ContextManager, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ...notebooks import UNKNOWN, is_in_cells
from ..calls.sure_mistakes import name_of_called_tensor
from ..evaluation.evaluation import is_failure
from ..loading.definitions import KEPT, Definitions
from ..loading.importer import parse
from ..loading.statements import DEFINES, bound_names, future_flags, is_operator_declaration
from ..loading.unobserved import Unobserved
from ..meta import op_cache
from ..meta.backward_hooks import hooks
from ..meta.gradients import training
from ..rewrite.resilient import MISSING, resilient
from ..rewrite.sites import NodePlace, place_of
from ..sandbox.clocks import WorkClock
from ..sandbox.draws import of_statement
from ..sandbox.limits import TooLong, within
from ..search.usages.scripts.called_tests import CalledTests
from ..search.usages.scripts.module_names import is_main_block
from ..trace.mutable_defaults import mutable_defaults
from ..trace.recorder import Recorder
from ..unknown.stand_ins import BEHAVIOURS, absent, is_absent, unknown_value
from .flow import Branch, Branches, Flow

MAIN = "__main__"
# What only writes to people: it costs time, and what it would write is not known.
SILENT = ("print", "input", "breakpoint")


class Program:
    """The statements of a document, rewritten so that each can fail alone and its values report themselves.

    loaded: the document's module as its definitions were loaded; names that a statement fails to make are taken from there.
    """

    def __init__(self, file: str, text: str, loaded: ModuleType, unobserved: Unobserved) -> None:
        self.file = file
        self.failures: List[Tuple[int, BaseException]] = []  # line and exception of the statements that failed, in the order of failing
        self.failed_at: Dict[int, Tuple[str, int]] = {}  # by the id of an exception: the file and line of the statement
        self.tensors_called: Dict[int, str] = {}  # by the id of an exception: the name of a tensor that was called
        self.gone: Dict[int, AttributeError] = {}  # by line: methods that are gone, and that the program has got on without
        self.names: Dict[str, Any] = {}  # of the program, once it was followed
        self.executed: List[NodePlace] = []  # of the statements that were executed
        self.earlier: List[type] = []  # module classes that the program has held under a name that another class has now
        self.not_taken: Dict[Branches, Branch] = {}  # the branches that the program did not come to, by their conditions
        self._unobserved = unobserved
        self.flow = Flow(self._missing, self._failed, unobserved)  # that the functions of the program call
        self._text = text
        self._loaded = loaded
        self._statements, self._declared = _compiled(file, text, unobserved.recorder)
        refused = {each.place for each in self._statements if each.is_refused}
        self.refused = _refusals(file, text, refused) if refused else []  # what Python says of the statements that it refuses
        self._redefined = _defined_again(text)

    def follow(
        self, seconds: float, aside: Callable[[], ContextManager[None]], last_turn: Optional[Callable[[str], ContextManager[None]]] = None
    ) -> bool:
        """Execute the statements for so many seconds at most; whether that was enough. Raises what ends a run.

        aside: a context for turns of loops that are none of those which the program begins with; last_turn: for the last, smaller batch of
        a loader, with why it is smaller.
        """
        self.flow = flow = Flow(self._missing, self._failed, self._unobserved, aside=aside, last_turn=last_turn)
        with self._as_main() as self.names:
            finished = self._execute_all(flow, seconds, self._failed, self.names, self._note_executed)
        self.not_taken, self.gone = flow.not_taken(), flow.gone
        return finished

    def look_again(self, seconds: float, turned: Iterable[Branches]) -> None:
        """Execute the statements once more, with the conditions `turned` going the other way. What fails there is forgotten."""

        def forgotten(*failure: Any) -> None:
            """Nobody takes these branches."""

        with self._as_main() as names:
            self._execute_all(Flow(self._missing, forgotten, self._unobserved, turned), seconds, forgotten, names)

    def held(self) -> List[NodePlace]:
        """The places of the statements that were executed, and in which nothing failed or was got on without."""
        failed = {line for line, _ in self.failures} | self.gone.keys()
        return [place for place in self.executed if failed.isdisjoint(range(place[0], place[2] + 1))]

    def _note_executed(self, statement: "ProgramStatement", held: Dict[str, type]) -> None:
        if not statement.is_refused:
            self.executed.append(statement.place)
        for name in statement.bound:
            if isinstance(self.names.get(name), (type, FunctionType)):
                mutable_defaults.note(self.names[name])
        self._keep_earlier(held)

    def _keep_earlier(self, held: Dict[str, type]) -> None:
        """Keep the classes that a statement has put others in the place of. held: those of the names in question, before it."""
        for name in self._redefined:
            value = self.names.get(name)
            if name in held and value is not held[name]:
                self.earlier.append(held.pop(name))
            if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == MAIN:
                held[name] = value

    def _execute_all(
        self,
        flow: Flow,
        seconds: float,
        on_failure: Callable[..., None],
        names: Dict[str, Any],
        then: Callable[["ProgramStatement", Dict[str, type]], None] = lambda statement, held: None,
    ) -> bool:
        """then: is called after each statement with it, and with the same dict each time."""
        names.update(flow.names())
        try:
            with gradients_assumed(), within(seconds):
                held: Dict[str, type] = {}
                clock, finished = WorkClock(), True
                for statement in self._statements:
                    left = seconds - clock()
                    finished &= self._execute(statement, left if statement is self._statements[-1] else left / 2, names, on_failure)
                    then(statement, held)
        except TooLong:
            return False
        return finished

    def _execute(self, statement: "ProgramStatement", seconds: float, names: Dict[str, Any], on_failure: Callable[..., None]) -> bool:
        """Execute a statement; whether its time was enough: what it would have made is not known then, and the next one goes on."""
        try:
            with within(seconds), of_statement(self.file, statement.bound):
                exec(statement.code, names)
        except TooLong as error:
            if statement is self._statements[-1]:
                raise
            on_failure(error, None, statement.code.co_firstlineno)
            names.update((name, self._missing(name)) for name in statement.bound if names.get(name) is None)
            return False
        except BaseException as error:  # Of what is not guarded by itself: the report of a value, say, or a test that skips itself.
            if not is_failure(error) or isinstance(error, KeyboardInterrupt):
                raise
            on_failure(error, None, statement.code.co_firstlineno)
        finally:
            self._unobserved.restore()
        return True

    def _missing(self, name: str) -> Any:
        """Returns the replacement for the value of a name that a statement failed to make."""
        known = self._loaded.__dict__.get(name)
        is_unknown = known is None or (is_absent(known) and known.__name__ not in BEHAVIOURS)
        return absent(name, "definition") if is_unknown else known

    def _failed(self, error: BaseException, frame: Optional[FrameType], line: int) -> None:
        self.failures.append((line, error))
        self.failed_at[id(error)] = (frame.f_code.co_filename if frame is not None else self.file), line
        name = name_of_called_tensor(error)  # It is given another value now.
        if name:
            self.tensors_called[id(error)] = name

    @contextlib.contextmanager
    def _as_main(self) -> Iterator[Dict[str, Any]]:
        """The names of a new module that is the one which Python would run; the old one is back at the end."""
        module = ModuleType(MAIN)
        names = module.__dict__
        loaded = self._loaded.__dict__
        names.update({name: loaded[name] for name in ("__package__", "__spec__", "__path__", "__doc__") if name in loaded})
        names.update({name: value for name, value in loaded.items() if name.startswith("__shapelens_")})
        names.update({name: loaded[name] for name in self._declared if name in loaded})
        names["__file__"] = self.file
        names["__builtins__"] = _ProgramBuiltins(loaded)
        if UNKNOWN in self._text:
            names[UNKNOWN] = unknown_value()
        before = sys.modules.get(MAIN)
        sys.modules[MAIN] = module
        try:
            yield names
        finally:
            if before is not None:
                sys.modules[MAIN] = before


class _ProgramBuiltins(Dict[str, Any]):
    """Python's builtins for a program, then what only branches would bind that nobody has taken: `if HAS_GYM: import gym`."""

    def __init__(self, loaded: Dict[str, Any]) -> None:
        super().__init__({**builtins.__dict__, **dict.fromkeys(SILENT, _says_nothing)})
        self._definitions: Optional[Definitions] = loaded.get(KEPT)

    def __missing__(self, name: str) -> Any:
        if self._definitions is None:
            raise KeyError(name)
        return self._definitions.of_branch(name)


def _defined_again(text: str) -> Set[str]:
    """The names of classes that a text defines more than once."""
    names = [node.name for node in ast.parse(text.lstrip("\ufeff")).body if isinstance(node, ast.ClassDef)]
    return {name for name in names if names.count(name) > 1}


def _says_nothing(*args: Any, **kwargs: Any) -> str:
    """In the place of print and input."""
    return ""


@contextlib.contextmanager
def gradients_assumed() -> Iterator[None]:
    """Meanwhile `backward` costs nothing, and what it would have done is known."""
    training.steps = 0
    hooks.clear()
    with op_cache.assuming_gradients():
        yield


class ProgramStatement(NamedTuple):
    """A statement of a program: its code, the names that it binds, where it stands, and whether Python refuses it."""

    code: CodeType
    bound: List[str]
    place: NodePlace
    is_refused: bool


def _compiled(file: str, text: str, recorder: Recorder) -> Tuple[List[ProgramStatement], Set[str]]:
    """The statements, with those of a `__main__` block one by one, and the names that those bind which are not executed once more.

    Raises SyntaxError.
    """
    tree = parse(text, file)
    declarations = list(filter(is_operator_declaration, tree.body))
    declared = {name for node in declarations for name in bound_names(node)}
    tree.body = [node for node in tree.body if node not in declarations]
    flags = future_flags(tree)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    tree.body = [part for node in tree.body for part in _parts(node)]
    tests = CalledTests(tree, file)
    first = len(recorder.sites)
    recorder.add_program(file)
    try:
        resilient(tree, recorder.sites)
        recorder.end_program(file, first)
        in_cells = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if is_in_cells(file, text) else 0
        return [_statement(node, file, flags, in_cells) for node in [*tree.body, *tests.calls]], declared
    except RecursionError:
        del recorder.sites[first:]
        return [], declared


def _statement(node: ast.stmt, file: str, flags: int, in_cells: int) -> ProgramStatement:
    """A statement; of one that Python refuses here (`return`, `await`), with code that makes its names without their values.

    in_cells: compiler flags for what else is taken here.
    """
    code: CodeType
    names, is_refused = _own_names(node), False
    try:
        code = compile(ast.Module([node], []), file, "exec", flags, dont_inherit=True)
    except SyntaxError:
        text = "; ".join("%s = %s(%r)" % (name, MISSING, name) for name in names)
        code = compile(text, file, "exec", flags, dont_inherit=True)
        is_refused = not in_cells or _refusal(node, file, flags | in_cells) is not None
    return ProgramStatement(code, names, place_of(node), is_refused)


def _refusals(file: str, text: str, places: Container[NodePlace]) -> List[SyntaxError]:
    """Returns the compiler's errors in the statements at these places; definitions apart, whose loading reports their errors."""
    tree = parse(text, file)
    flags = future_flags(tree)
    nodes = [part for node in tree.body for part in _parts(node) if place_of(part) in places and not isinstance(part, DEFINES)]
    return [error for node in nodes if (error := _refusal(node, file, flags)) is not None]


def _refusal(node: ast.stmt, file: str, flags: int) -> Optional[SyntaxError]:
    try:
        compile(ast.Module([node], []), file, "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return error
    return None


def _own_names(node: ast.stmt) -> List[str]:
    """The names of the user's that a statement binds."""
    return [name for name in bound_names(node) if not name.startswith("__shapelens_")]


def _parts(node: ast.stmt) -> List[ast.stmt]:
    """The statements of a `__main__` block; any other statement itself."""
    is_equal = isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Eq)
    return node.body if isinstance(node, ast.If) and is_equal and is_main_block(node) and not node.orelse else [node]
