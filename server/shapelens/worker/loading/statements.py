"""Tells what a statement of a module says by itself: which names it binds and reads, whether it runs at once, whether it is a loop that
trains.

Answers that are asked for again and again are kept on the statement.
"""

from __future__ import annotations
import __future__

import ast
from types import CodeType
from typing import Iterator, List, Optional, Set, Tuple, Union

# Attributes of statements: what is known of them.
CODE, BOUND, READ = "shapelens_code", "shapelens_bound", "shapelens_read"
GLOBALS, AT_ONCE = "shapelens_globals", "shapelens_at_once"
DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

MODULE_NAMES = {"__path__", "__getattr__", "__all__"}

# Calls at module level that are harmless and that later definitions may rely on.
HARMLESS = {
    "logging.getLogger", "getLogger", "TypeVar", "typing.TypeVar", "ParamSpec", "NewType", "namedtuple", "collections.namedtuple",
    "partial", "functools.partial", "dict", "list", "set", "tuple", "frozenset", "OrderedDict", "defaultdict", "Path", "range", "len",
    "int", "float", "str", "sys.path.append", "sys.path.insert", "warnings.filterwarnings", "warnings.simplefilter", "__all__.append",
    "__all__.extend", "__shapelens_value__", "__shapelens_int__", "__shapelens_max__", "__shapelens_min__",
    "torch.set_default_dtype", "torch.set_default_tensor_type", "torch.device",
    "os.environ.get", "os.getenv",
    "os.environ.setdefault", "flags.DEFINE_integer", "flags.DEFINE_float", "flags.DEFINE_string", "flags.DEFINE_bool",
    "flags.DEFINE_boolean", "flags.DEFINE_enum", "flags.DEFINE_list", "flags.DEFINE_spaceseplist",
}  # fmt: skip

# Calls that declare operators of the user's own, and their methods (`torch.library.CustomOpDef`, `torch.library.Library`).
LIBRARIES = {"Library", "torch.library.Library"}
KINDS_OF_LIBRARY = {"DEF", "FRAGMENT", "IMPL"}
OF_LIBRARIES = {"define", "impl"}  # of which the first argument is a text
OF_OPERATORS = {"register_autograd", "register_autocast", "register_fake", "register_kernel", "register_vmap"}


# Methods that, called as a statement of their own, do work rather than build up the value of the name that they belong to.
WORKS = {
    "backward", "close", "download", "evaluate", "validate", "write",
    "fit", "fit_transform", "launch", "main", "mainloop", "play", "plot", "predict", "run", "save",
    "savefig", "savetxt", "show", "start", "serve", "step", "test", "train", "train_model",
}  # fmt: skip

# Methods that put something into a list, a dict or a set.
FILLS = ("append", "extend", "insert", "add", "update", "setdefault")


def imports(node: ast.stmt) -> bool:
    """True if a statement is an import, or one with conditions."""
    if isinstance(node, (ast.If, ast.Try, ast.With)):
        return any(isinstance(part, (ast.Import, ast.ImportFrom)) for part in ast.walk(node))
    return isinstance(node, (ast.Import, ast.ImportFrom))


def computes(node: ast.stmt) -> bool:
    """True if a statement executes more than an import, a `def`, or `name = 1`."""
    if isinstance(node, DEFINES):
        return isinstance(node, ast.ClassDef) or bool(getattr(node, "decorator_list", ()))
    names_constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    return not (names_constant and all(isinstance(target, ast.Name) for target in node.targets))  # type: ignore[attr-defined]


def compiled(node: ast.stmt, file: str, flags: int) -> CodeType:
    """The code of one statement; it is compiled once. Raises SyntaxError, ValueError and RecursionError."""
    code: Optional[CodeType] = node.__dict__.get(CODE)
    if code is None:
        code = node.__dict__[CODE] = compile(ast.Module([node], []), file, "exec", flags, dont_inherit=True)
    return code


def future_flags(tree: ast.Module) -> int:
    """The compiler flags of a module's `from __future__` imports."""
    names = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__" for alias in node.names}
    return sum({getattr(__future__, name).compiler_flag for name in names if hasattr(__future__, name)})


def runs_at_once(node: ast.stmt) -> bool:
    """The same as `is_definition`, decided once: a table of a thousand lines takes its time."""
    known: Optional[bool] = node.__dict__.get(AT_ONCE)
    if known is None:
        known = node.__dict__[AT_ONCE] = is_definition(node)
    return known


def is_definition(node: ast.stmt) -> bool:
    """True if a statement at module level runs at once."""
    if isinstance(node, DEFINES + (ast.Pass, ast.Global)) or _shapes_module(node):
        return True
    if isinstance(node, (ast.If, ast.Try)):
        inner = [child for field in ("body", "orelse", "finalbody") for child in getattr(node, field, [])]
        inner += [child for handler in getattr(node, "handlers", []) for child in handler.body]
        return (not isinstance(node, ast.If) or is_plain(node.test)) and all(map(is_definition, inner))
    if isinstance(node, ast.Assign):
        return is_plain(node.value) and all(map(is_plain, node.targets))
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return (node.value is None or is_plain(node.value)) and is_plain(node.target)
    if isinstance(node, ast.Expr):
        # One without a call does nothing, but a name that is being typed would be an unknown one.
        return isinstance(node.value, ast.Call) and is_plain(node.value)
    return type(node).__name__ == "TypeAlias"


def _shapes_module(node: ast.stmt) -> bool:
    """True if a statement decides what the module itself is: where its parts are found, what it exports, or what takes its place."""
    names = bound_names(node)
    if MODULE_NAMES.intersection(names):
        return True
    if "sys" not in names:
        return False
    stored = (part for part in ast.walk(node) if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store))
    return any(ast.unparse(part.value) == "sys.modules" for part in stored)


def binds_by_computed_name(node: ast.stmt) -> bool:
    """`globals()[name] = …`, `setattr(sys.modules[__name__], name, …)`, `exec(…)`"""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            if part.func.id in ("globals", "vars", "locals", "exec"):
                return True
            if part.func.id == "setattr" and "sys.modules" in ast.unparse(part):
                return True
    return False


def is_plain(node: ast.AST) -> bool:
    """True if evaluating an expression does no work: nothing in it is called but what is known to be harmless."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, ast.Call) and not _declares_operators(part) and ast.unparse(part.func) not in HARMLESS:
            return False
        if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        todo.extend(ast.iter_child_nodes(part))
    return True


def _declares_operators(call: ast.Call) -> bool:
    texts = [part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "" for part in call.args[:2]]
    if isinstance(call.func, ast.Attribute) and call.func.attr in OF_LIBRARIES:
        return bool(texts and texts[0])
    if isinstance(call.func, ast.Attribute) and call.func.attr in OF_OPERATORS:
        return True
    return len(texts) == 2 and texts[1] in KINDS_OF_LIBRARY and ast.unparse(call.func) in LIBRARIES


def is_operator_declaration(node: ast.stmt) -> bool:
    """True if a statement at module level declares operators, which torch takes once: `library.define("twice(Tensor x) -> Tensor")`."""
    call = node.value if isinstance(node, (ast.Assign, ast.Expr)) else None
    return isinstance(call, ast.Call) and _declares_operators(call) and is_definition(node)


def is_main_block(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`"""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left] + node.test.comparators
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def bound_names(node: ast.AST) -> Tuple[str, ...]:
    """Names that a statement binds, or whose value it changes: `x = …`, `x[…] = …`, `x.append(…)`."""
    names: Optional[Tuple[str, ...]] = node.__dict__.get(BOUND)
    if names is None:  # They are asked for again and again.
        names = node.__dict__[BOUND] = tuple(dict.fromkeys(_bound_names(node)))
    return names


def read_names(node: ast.AST) -> Set[str]:
    """Names that a statement reads; they are looked for once."""
    names: Optional[Set[str]] = node.__dict__.get(READ)
    if names is None:
        parts = (part for part in ast.walk(node) if isinstance(part, ast.Name))
        names = node.__dict__[READ] = {part.id for part in parts if isinstance(part.ctx, ast.Load)}
    return names


def _bound_names(node: ast.AST) -> Iterator[str]:
    todo: List[ast.AST] = [node]
    is_loop = trains(node)
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
            continue
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, ast.comprehension):  # Its targets are names of its own.
            todo.extend([part.iter, *part.ifs])
            continue
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in part.names)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            yield from _owner(part)
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and isinstance(part.value.func, ast.Attribute):
            yield from _owner(part.value.func) if part.value.func.attr not in WORKS and not is_loop else ()
        todo.extend(ast.iter_child_nodes(part))


def trains(node: ast.AST) -> bool:
    """True if a statement is a loop that trains, or holds one."""
    return isinstance(node, (ast.For, ast.While, ast.With)) and any(map(_is_training, ast.walk(node)))


def _is_training(node: ast.AST) -> bool:
    """True if a loop with this in it trains: what it does to a model makes no difference to its shapes."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("backward", "zero_grad", "step")


def first_turn(node: Union[ast.For, ast.While], names: Set[str]) -> ast.stmt:
    """The first turn of a loop, without what these names do not need. Adds the names that it reads for them."""
    body: List[ast.stmt] = []
    for child in reversed(node.body):
        if names.isdisjoint(bound_names(child)):
            continue
        if isinstance(child, (ast.For, ast.While)) and trains(child):
            child = first_turn(child, names)
        else:
            names |= read_names(child)
        body.insert(0, child)
    body.append(ast.copy_location(ast.Break(), node))
    if isinstance(node, ast.For):
        names |= read_names(node.iter)
        return ast.copy_location(ast.For(node.target, node.iter, body, []), node)
    names |= read_names(node.test)
    return ast.copy_location(ast.While(node.test, body, []), node)


def filled_by(node: ast.AST) -> Iterator[str]:
    """The name of what a call puts something into: `losses.append(loss)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
        yield from _owner(node.func)


def stored_into(node: ast.AST) -> Iterator[str]:
    """The name of what an item is stored into: `models[width] = model`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield from _owner(node)


def _owner(node: Optional[ast.AST]) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def with_parts(name: str, statements: List[ast.stmt]) -> Set[str]:
    """A name and those of its parts: what is added to `group = parser.add_argument_group()` makes a difference to `parser`."""
    names = {name}
    for node in statements:
        names.update(_parts_of(node, names))
    return names


def _parts_of(node: ast.stmt, names: Set[str]) -> Iterator[str]:
    """The names that a statement binds to a part of what one of `names` holds: `group = parser.add_argument_group("model")`."""
    value = node.value if isinstance(node, ast.Assign) else None
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id.startswith("__shapelens_"):
        value = value.args[-1]  # What the rewritten text reports.
    if isinstance(node, ast.Assign) and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        of_it = value.func.attr.startswith("add_") and names & set(_owner(value.func))
        for target in node.targets if of_it else ():
            yield from bound_names(target)


def global_assignments(function: ast.AST) -> List[ast.stmt]:
    """The assignments in a function to names that it declares `global`."""
    known: Optional[List[ast.stmt]] = function.__dict__.get(GLOBALS)
    if known is not None:
        return known
    names = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    found = function.__dict__[GLOBALS] = [
        node
        for node in (ast.walk(function) if names else ())
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and names.intersection(bound_names(node))
    ]
    return found
