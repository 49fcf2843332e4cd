"""Calls that make tensors, written as dtype shorthands: `torch.randn(1, 3, 224, 224)` is `f32[B:1, 3, 224, 224]`."""

from __future__ import annotations

import ast
import copy
from typing import Dict, List, Optional, Sequence, Tuple

from .....stated.syntax_trees import dotted, is_none, keyword
from ....evaluation.dtype_names import BY_NAME, BY_TENSOR_TYPE, SHORTHANDS
from .module_names import ModuleNames
from .values import SPELLED, ScriptValue, constant, integer

# By full name: the dtype where none is given.
OF_SIZES = {"torch.randn": "f32", "torch.rand": "f32", "torch.zeros": "f32", "torch.ones": "f32", "torch.empty": "f32"}
OLD = {"torch.Tensor": "f32"}
OLD.update((module + name, dtype) for name, dtype in BY_TENSOR_TYPE.items() for module in ("torch.", "torch.cuda."))
NUMPY = {
    "rand": "f64", "randn": "f64", "random_sample": "f64", "normal": "f64", "uniform": "f64", "random": "f64", "randint": "i64",
}  # fmt: skip
LIKE = {"torch.randn_like", "torch.rand_like", "torch.zeros_like", "torch.ones_like", "torch.empty_like"}
FROM_NUMPY = {"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}
WRAPPERS = {"torch.autograd.Variable", "torch.nn.Parameter", "torch.autograd.variable.Variable"}
CASTS = {
    "float": "f32", "half": "f16", "double": "f64", "bfloat16": "bf16", "long": "i64", "int": "i32", "bool": "bool", "short": "i16",
    "byte": "u8",
}  # fmt: skip
SAME = {
    "to", "cuda", "cpu", "clone", "detach", "contiguous", "pin_memory", "requires_grad_", "normal_", "uniform_", "random_", "fill_",
    "zero_", "abs",
}  # fmt: skip
FUNCTIONS = {"torch", "torch.nn.functional"}
ELEMENTWISE = {"sigmoid", "tanh", "softmax", "log_softmax", "exp", "log", "relu", "clamp", "sign", "abs", "square", "sqrt"}
BATCH = {
    "bs", "batch", "batch_size", "batchsize", "bsz", "n_batch", "num_batch", "batch_sz", "minibatch", "minibatch_size",
}  # fmt: skip
NOT_BATCH = {
    "t", "l", "s", "seq", "seq_len", "seq_length", "seqlen", "sequence_length", "sequence_len", "length", "time", "timesteps",
    "num_steps", "steps", "src_len", "tgt_len", "max_len", "num_nodes", "n_nodes", "nodes", "num_edges",
}  # fmt: skip

Made = Tuple[str, List[ast.expr]]  # a dtype and sizes


class Tensors:
    """Reads the expressions of one module, whose imports say what `torch`, `np` and the like are there."""

    def __init__(self, names: ModuleNames) -> None:
        self.names = names

    def is_made(self, node: Optional[ast.AST]) -> bool:
        """True if an expression is a shorthand, or a tuple, list or dict of them."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return bool(node.elts) and all(map(self.is_made, node.elts))
        if isinstance(node, ast.Dict):
            return bool(node.values) and all(map(self.is_made, node.values))
        return node is not None and self._made(node) is not None

    def item(self, value: ScriptValue) -> Optional[ScriptValue]:
        """A value with its tensors as shorthands; None where some part of it is none."""
        if value.items is not None:
            parts = [self.item(part) for part in value.items]
            known = [part for part in parts if part is not None and part.node is not None]
            return (
                ScriptValue(ast.Tuple([part.resolved() for part in known], ast.Load()), items=tuple(known))
                if len(known) == len(parts)
                else None
            )
        made = self.shorthand(value.node) if value.node is not None else None
        return ScriptValue(made) if made is not None else None

    def arguments(self, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> str:
        """The arguments of a call as text, with shorthands in the place of calls that make tensors, and the batch named."""
        call = ast.Call(ast.Name("f", ast.Load()), list(positional), list(keywords))
        changed = copy.deepcopy(call)
        _ShorthandWriter(self).generic_visit(changed)
        if not _is_list_of_pictures(changed.args[:1]):
            _name_batch([node for node in _in_order(changed) if is_shorthand(node)])
        return ast.unparse(ast.fix_missing_locations(changed))[2:-1]

    def _full(self, node: ast.AST) -> str:
        return self.names.canonical(node)

    def _made(self, node: ast.AST) -> Optional[Made]:
        """Returns the tensor that an expression makes with sizes that the expression says."""
        if is_shorthand(node):
            inner = node.slice  # type: ignore[attr-defined]
            return node.value.id, list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]  # type: ignore[attr-defined]
        if isinstance(node, ast.Subscript):
            return self._sliced(node)
        return self._called(node) if isinstance(node, ast.Call) else self._computed(node)

    def _called(self, node: ast.Call) -> Optional[Made]:
        """Returns the result of a call, by its full name."""
        name = self._full(node.func)
        if name in OF_SIZES or (name in OLD and not (len(node.args) == 1 and isinstance(node.args[0], (ast.Call, ast.List)))):
            found = self._of_sizes(node, OF_SIZES.get(name) or OLD[name], name in OLD)
            if found is not None:
                return found
        if name in LIKE and node.args:
            like = self._made(node.args[0])
            return self._cast(node, like[0], like[1]) if like is not None else None
        if name == "torch.randint":
            return self._randint(node)
        if name == "torch.full" and len(node.args) == 2:
            filled = node.args[1]
            held = type(filled.value) if isinstance(filled, ast.Constant) else float
            sizes = self.sizes(node.args[:1])
            return self._cast(node, {int: "i64", bool: "bool"}.get(held, "f32"), sizes)
        if name in ("torch.normal", "torch.nn.init.normal_") and len(node.args) >= 3:
            return self._cast(node, "f32", self.sizes(node.args[2:3]))
        if name in FROM_NUMPY and len(node.args) == 1:
            made = self._made_by_numpy(node.args[0])
            if made is not None:
                default = OLD.get(name, made[0])
                return self._cast(node, default, made[1])
            return None
        if node.args and (name in WRAPPERS or (name.rpartition(".")[0] in FUNCTIONS and name.rpartition(".")[2] in ELEMENTWISE)):
            return self._made(node.args[0])
        if isinstance(node.func, ast.Attribute) and "torch" not in name.partition(".")[0]:
            return self._method(node.func, node)
        return None

    def _sliced(self, node: ast.Subscript) -> Optional[Made]:
        """Part of a tensor whose sizes are known: `x[:50]`, `x[0:0 + 50, :, 3]`."""
        made = self._made(node.value)
        bounds = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if made is None or len(bounds) > len(made[1]):
            return None
        sizes: List[ast.expr] = []
        for size, bound in zip(made[1], bounds):
            if isinstance(bound, ast.Slice):
                left = _length(integer(size, self._literals()), bound)
                whole = bound.lower is None and bound.upper is None and bound.step is None
                if left is None and not whole:
                    return None
                sizes.append(size if whole or left is None else constant(left))
            elif integer(bound) is None:
                return None
        return made[0], sizes + made[1][len(bounds) :]

    def _computed(self, node: ast.AST) -> Optional[Made]:
        """Arithmetic and comparisons with numbers: `torch.rand(2, 3) * 2 - 1`, `torch.rand(2, 3) > 0.5`."""
        if isinstance(node, ast.BinOp):
            tensor, number = (node.left, node.right) if not _is_number(node.left) else (node.right, node.left)
            made = self._made(tensor) if _is_number(number) else None
            whole = isinstance(number, ast.Constant) and type(number.value) is int and not isinstance(node.op, ast.Div)
            return made if made is None or whole or made[0] not in ("i64", "i32", "bool") else ("f32", made[1])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and _is_number(node.comparators[0]):
            made = self._made(node.left)
            return ("bool", made[1]) if made is not None else None
        return None

    def _of_sizes(self, node: ast.Call, dtype: str, sizes_alone: bool) -> Optional[Made]:
        given = list(node.args) or [keyword.value for keyword in node.keywords if keyword.arg == "size"]
        sizes = self.sizes(given)
        if sizes is None or (sizes_alone and len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List))):
            return None
        return self._cast(node, dtype, sizes)

    def _randint(self, node: ast.Call) -> Optional[Made]:
        given = [keyword.value for keyword in node.keywords if keyword.arg == "size"]
        if not given:
            bounds = sum(keyword.arg in ("low", "high") for keyword in node.keywords)
            given = node.args[-1:] if len(node.args) + bounds >= 2 else []
        return self._cast(node, "i64", self.sizes(given) if len(given) == 1 else None)

    def _cast(self, node: ast.Call, dtype: str, sizes: Optional[List[ast.expr]]) -> Optional[Made]:
        """With what the `dtype` keyword says."""
        given = keyword(node, "dtype")
        if given is not None and not is_none(given):
            dtype = BY_NAME.get(dotted(given).rpartition(".")[2], "")
        return (dtype, sizes) if dtype and sizes is not None else None

    def _made_by_numpy(self, node: ast.AST) -> Optional[Made]:
        if not isinstance(node, ast.Call):
            return None
        name = self._full(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and len(node.args) == 1:
            made = self._made_by_numpy(node.func.value)
            said = node.args[0].value if isinstance(node.args[0], ast.Constant) else dotted(node.args[0]).rpartition(".")[2]
            return (BY_NAME[str(said)], made[1]) if made is not None and str(said) in BY_NAME else None
        if not name.startswith("numpy."):
            return None
        tail = name.rpartition(".")[2]
        size = [keyword.value for keyword in node.keywords if keyword.arg in ("size", "shape")]
        if name.startswith("numpy.random.") and tail in NUMPY:
            given = size or (
                list(node.args) if tail in ("rand", "randn") else node.args[2:3] or node.args[:1] * (tail.startswith("random"))
            )
        elif name in ("numpy.zeros", "numpy.ones", "numpy.empty"):
            given = size or node.args[:1]
        else:
            return None
        sizes = self.sizes(given)
        return self._cast(node, NUMPY.get(tail, "f64"), sizes) if given else None

    def _method(self, function: ast.Attribute, node: ast.Call) -> Optional[Made]:
        made = self._made(function.value)
        if made is None:
            return None
        dtype, sizes = made
        if function.attr in CASTS:
            return CASTS[function.attr], sizes
        if function.attr in ("to", "type") and node.args:
            said = BY_NAME.get(dotted(node.args[0]).rpartition(".")[2])
            return (said or dtype), sizes
        if function.attr == "unsqueeze" and len(node.args) == 1:
            at = integer(node.args[0])
            if at is not None and -len(sizes) - 1 <= at <= len(sizes):
                at = at if at >= 0 else at + len(sizes) + 1
                return dtype, sizes[:at] + [constant(1)] + sizes[at:]
        return made if function.attr in SAME or (function.attr in ELEMENTWISE and dtype.startswith(("f", "bf"))) else None

    def sizes(self, given: Sequence[ast.expr]) -> Optional[List[ast.expr]]:
        """The sizes that a call is given, one by one or as a tuple; None where their number is not known."""
        if len(given) == 1:
            only: Optional[ast.expr] = given[0]
            if isinstance(only, ast.Name):
                only = self.names.literals.get(only.id, only) if self.names.own else only
            if isinstance(only, ast.Call) and self._full(only.func) in ("torch.Size", "tuple", "list") and len(only.args) == 1:
                only = only.args[0]
            shape = self._shape(only)
            if shape is not None:
                return shape
            if isinstance(only, (ast.Tuple, ast.List)):
                given = only.elts
            elif integer(only, self._literals()) is None:
                return None  # It may be a tuple.
        if not given or any(isinstance(size, ast.Starred) for size in given):
            return [] if given is not None and len(given) == 0 else None
        return [self._size(size) for size in given]

    def _shape(self, node: Optional[ast.AST]) -> Optional[List[ast.expr]]:
        """The sizes that `x.shape` and `x.size()` are, where it is known what x is."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args:
            made = self._made(node.func.value)
        else:
            made = self._made(node.value) if isinstance(node, ast.Attribute) and node.attr == "shape" else None
        return made[1] if made is not None else None

    def _size(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            shape = self._shape(node.value)
            if shape is not None and node.slice.value < len(shape):
                return shape[node.slice.value]
        number = integer(node, self._literals())
        if number is not None and number >= 0:
            made = constant(number)
            spelled = node.__dict__.get(SPELLED) or (node.id if isinstance(node, ast.Name) else None)
            if spelled is not None:
                made.__dict__[SPELLED] = spelled
            return made
        if isinstance(node, ast.Name):  # A bare name would name the dim.
            return ast.Call(ast.Name("int", ast.Load()), [node], [])
        return node

    def _literals(self) -> Dict[str, ast.expr]:
        return self.names.literals if self.names.own else {}

    def shorthand(self, node: ast.AST) -> Optional[ast.expr]:
        """The shorthand that says the same as an expression, if there is one."""
        made = self._made(node)
        return shorthand(*made) if made is not None else None


class _ShorthandWriter(ast.NodeTransformer):
    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return node  # Its sizes may be of names that it binds itself.
        made = self.tensors.shorthand(node) if isinstance(node, (ast.Call, ast.BinOp, ast.Compare, ast.Subscript)) else None
        return made if made is not None else self.generic_visit(node)


def _length(size: Optional[int], bounds: ast.Slice) -> Optional[int]:
    """Returns the size that a slice leaves of a dim; None where nobody knows its bounds."""
    given = [integer(part) for part in (bounds.lower, bounds.upper, bounds.step)]
    parts = (bounds.lower, bounds.upper, bounds.step)
    if size is None or any(part is not None and number is None for part, number in zip(parts, given)) or given[2] == 0:
        return None
    return len(range(size)[slice(*given)])


def shorthand(dtype: str, sizes: Sequence[ast.expr]) -> ast.expr:
    """`f32[2, 3]`"""
    return ast.Subscript(ast.Name(dtype, ast.Load()), ast.Tuple(list(sizes), ast.Load()) if len(sizes) != 1 else sizes[0], ast.Load())


def is_shorthand(node: ast.AST) -> bool:
    """True if an expression is one already."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in SHORTHANDS


def _in_order(node: ast.AST) -> List[ast.AST]:
    found = [node]
    for part in ast.iter_child_nodes(node):
        found += _in_order(part)
    return found


def _name_batch(shorthands: Sequence[ast.AST]) -> None:
    """The batch is the dim that the script calls so, or else the first one of the first input."""
    dims = [_dims(node) for node in shorthands]
    chosen = next((size for sizes in dims for size in sizes if _spelling(size) in BATCH and isinstance(size, ast.Constant)), None)
    first = next((sizes[0] for sizes in dims if len(sizes) > 1), None)
    if chosen is None and (not isinstance(first, ast.Constant) or _spelling(first) in NOT_BATCH):
        return
    size = integer(chosen if chosen is not None else first)
    for number, (row, at) in enumerate(sorted(_places_of_batch(dims, size, is_called_so=chosen is not None))):
        name = ast.Name("B", ast.Load())
        dims[row][at] = ast.Slice(name, constant(size)) if number == 0 else name
        inner = shorthands[row].slice  # type: ignore[attr-defined]
        shorthands[row].slice = ast.Tuple(dims[row], ast.Load()) if isinstance(inner, ast.Tuple) else dims[row][0]  # type: ignore[attr-defined]


def _places_of_batch(dims: Sequence[Sequence[ast.expr]], size: Optional[int], *, is_called_so: bool) -> List[Tuple[int, int]]:
    """The dims that are the batch: those that are called so, where the script calls any so; else those of its size that come first."""
    every = [(row, at, dim) for row, sizes in enumerate(dims) for at, dim in enumerate(sizes)] if is_called_so else []
    places = [(row, at) for row, at, dim in every if _spelling(dim) in BATCH and _is(dim, size)]
    rows = {row for row, _ in places}
    return places + [(row, 0) for row, sizes in enumerate(dims) if row not in rows and sizes and _is(sizes[0], size)]


def _is_list_of_pictures(given: Sequence[ast.AST]) -> bool:
    """`[f32[3, 64, 48], f32[3, 32, 32]]`: detectors take their batch so."""
    parts = given[0].elts if given and isinstance(given[0], ast.List) else []
    return bool(parts) and all(is_shorthand(part) and len(_dims(part)) == 3 and integer(_dims(part)[0]) in (1, 3) for part in parts)


def _dims(node: ast.AST) -> List[ast.expr]:
    inner = node.slice  # type: ignore[attr-defined]
    return list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]


def _spelling(node: ast.AST) -> str:
    return str(node.__dict__.get(SPELLED, "")).lower()


def _is(node: ast.AST, size: object) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == size


def _is_number(node: ast.AST) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
