"""Which hints would say nothing new: those of lines whose result has the shape and dtype of what came in, and that could not change it.

Only elementwise and normalising operations and layers count. `self.query(x)` of a Linear has a hint also where it gives as many features as
it gets, unless the hint above reads the same. Each line that changes a shape or a dtype has its hint.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from shapelens.analysis.shapes import has_dims, has_tensor, tensors_in
from shapelens.protocol import FileSpan, LayerSeen, Observation, Trace, Value
from shapelens.source.module import Module
from shapelens.stated.syntax_trees import program_of, root_name

# Of torch: the modules whose layers give the shape of their input.
_ROOMS = ("activation", "dropout", "batchnorm", "instancenorm", "normalization")
_NOT_ELEMENTWISE = ("MultiheadAttention", "GLU")
# Of anybody else, where what such a layer holds is elementwise too: what is in a `PreNorm` is not.
_NAMES = re.compile(
    r"(?:\w*Norm(?:alization)?|\w*Dropout|DropPath|StochasticDepth|LayerScale|Identity|\w*ReLU6?|\w*GELU|SiLU|Swish|Mish)(?:[123][dD])?"
)
_ELEMENTWISE = """
relu relu_ relu6 gelu silu sigmoid tanh softmax log_softmax softplus softsign leaky_relu leaky_relu_ elu selu celu mish hardtanh
hardswish hardsigmoid logsigmoid prelu rrelu threshold dropout dropout_ dropout1d dropout2d dropout3d alpha_dropout
feature_alpha_dropout drop_path layer_norm batch_norm group_norm instance_norm local_response_norm rms_norm normalize exp log log2
log10 log1p expm1 sqrt rsqrt square abs neg negative sin cos tan sinh cosh asin acos atan erf erfinv clamp clamp_ clip floor ceil
round trunc frac sign pow add add_ sub sub_ mul mul_ div div_ true_divide multiply subtract divide reciprocal masked_fill
masked_fill_ where maximum minimum nan_to_num lerp addcmul addcdiv to type type_as float half double bfloat16 long int bool cuda
cpu contiguous clone detach requires_grad_ zeros_like ones_like rand_like randn_like empty_like full_like
"""
_FUNCTIONS = frozenset(_ELEMENTWISE.split())
_ASIDE = ("shape", "device", "dtype", "size", "dim", "ndim", "training")  # what is asked of a tensor or layer, and is none
_Key = tuple[tuple[str, tuple[object, ...], tuple[str, ...], str], ...]  # of the distinct tensors that something held: kind, shape, dtype


@dataclass
class _Operands:
    """The operands of an expression: of names, whose shapes were shown above, and of attributes, as parameters and buffers are."""

    names: list[list[Value]] = field(default_factory=list)
    parts: list[list[Value]] = field(default_factory=list)  # of names, by an index
    attributes: list[list[Value]] = field(default_factory=list)


class Unchanged:
    """Says of layers, and of what statements keep, whether the run saw nothing but tensors that stay as large as they are."""

    def __init__(self, module: Module, trace: Trace) -> None:
        self._module = module
        self._trace = trace

    def layers(self, layers: Sequence[LayerSeen]) -> bool:
        """True if layers are elementwise or normalise, and gave what they were given in all calls."""
        return all(self._is_elementwise(layer) and all(_keeps(call.inputs, call.output) for call in layer.calls) for layer in layers)

    def keeps_input(self, layers: Sequence[LayerSeen]) -> bool:
        """True if layers of any kind returned the shape and dtype of their first input in all calls."""
        return all(_keeps(call.inputs, call.output) for layer in layers for call in layer.calls)

    def keeps_operand(self, statement: FileSpan, values: Sequence[Value]) -> bool:
        """True if a result has the shape and dtype of a name that its statement reads, and so has all that comes in between."""
        result = _key(values)
        read = self._seen_in(statement)
        between = (_key(seen.values) for seen in read if not seen.name)
        return result is not None and any(seen.name and _key(seen.values) == result for seen in read) and set(between) <= {result, None}

    def value(self, statement: FileSpan, values: Sequence[Value]) -> bool:
        """True if the one tensor that a statement keeps or returns is as what the statement reads, or if it returns names as they are."""
        tree = _statement(self._module.lines.text_of(self._module.lines.span_from_bytes(statement)))
        if (
            isinstance(tree, ast.Return)
            and isinstance(tree.value, ast.Tuple)
            and all(isinstance(each, ast.Name) for each in tree.value.elts)
        ):
            return True
        result = _key(values)
        if result is None or not any(_key(seen.values) == result for seen in self._seen_in(statement)):
            return False
        if tree is None or tree.value is None:
            return False
        operands = _Operands()
        if not self._is_plain(tree.value, statement, operands):
            return False
        keys = [
            [_key(held) for held in given if any(map(has_tensor, held)) and not is_scalar(held)]
            for given in (operands.names, operands.parts)
        ]
        return all(key == result for key in keys[0] + keys[1]) and (bool(keys[0]) or isinstance(tree, ast.AugAssign))

    def sizes(self, statement: FileSpan) -> bool:
        """True if a statement keeps nothing but the sizes of a tensor under names: `B, T, C = x.shape`, `batch = x.size(0)`."""
        tree = _statement(self._module.lines.text_of(self._module.lines.span_from_bytes(statement)))
        asked = tree.value if isinstance(tree, ast.Assign) else None
        if isinstance(asked, (ast.Subscript, ast.Call)) and isinstance(
            asked.value if isinstance(asked, ast.Subscript) else asked.func, ast.Attribute
        ):
            asked = asked.value if isinstance(asked, ast.Subscript) else asked.func
        return isinstance(asked, ast.Attribute) and asked.attr in ("shape", "size") and isinstance(asked.value, ast.Name)

    # --- layers ---

    def _is_elementwise(self, layer: LayerSeen) -> bool:
        if layer.qualified_name == "torch.nn.modules.container.Sequential":
            return all(map(self._is_elementwise, self._parts[layer.example, layer.path]))
        if layer.qualified_name.startswith("torch."):
            is_identity = layer.qualified_name == "torch.nn.modules.linear.Identity"
            room = layer.qualified_name.split(".")[-2]
            return is_identity or (room in _ROOMS and layer.class_name not in _NOT_ELEMENTWISE)
        return _NAMES.fullmatch(layer.class_name) is not None and all(map(self._is_elementwise, self._parts[layer.example, layer.path]))

    @cached_property
    def _parts(self) -> dict[tuple[int, str], list[LayerSeen]]:
        """The layers in others, by the example and the path of what holds them."""
        parts: dict[tuple[int, str], list[LayerSeen]] = defaultdict(list)
        for layer in self._trace.layers:
            if layer.path:
                parts[layer.example, layer.path.rpartition(".")[0]].append(layer)
        return parts

    # --- statements ---

    @cached_property
    def _read(self) -> dict[int, list[Observation]]:
        """Returns the observations of the file's expressions, by line."""
        read: dict[int, list[Observation]] = defaultdict(list)
        for seen in self._trace.observations:
            if seen.kind == "expression" and seen.span.file == self._trace.file:
                read[seen.span.line].append(seen)
        return read

    def _seen_in(self, statement: FileSpan) -> list[Observation]:
        return [seen for line in range(statement.line, statement.end_line + 1) for seen in self._read.get(line, ())]

    def _held(self, node: ast.expr, statement: FileSpan) -> list[Value]:
        """Returns the values of a part of a statement. The node's places are those of the statement's text."""

        def column(line: int, offset: int) -> int:
            return offset + (statement.column if line == 1 else 0)

        end, end_offset = node.end_lineno or node.lineno, node.end_col_offset or 0
        start = statement.line + node.lineno - 1, column(node.lineno, node.col_offset)
        place = *start, statement.line + end - 1, column(end, end_offset)
        near = self._read.get(start[0], ())
        found = [seen for seen in near if (seen.span.line, seen.span.column, seen.span.end_line, seen.span.end_column) == place]
        return [value for seen in found for value in seen.values]

    def _is_plain(self, node: ast.expr, statement: FileSpan, operands: _Operands) -> bool:
        """True if an expression computes nothing but elementwise; its operands are added to those that are given."""

        def plain(*parts: ast.expr) -> bool:
            return all(self._is_plain(part, statement, operands) for part in parts)

        if isinstance(node, ast.Name):
            operands.names.append(self._held(node, statement))
            return True
        if isinstance(node, ast.Attribute):
            if node.attr not in _ASIDE:
                operands.attributes.append(self._held(node, statement))
            return True
        if isinstance(node, ast.BinOp):
            return not isinstance(node.op, ast.MatMult) and plain(node.left, node.right)
        if isinstance(node, ast.Call):
            return self._is_plain_call(node, statement) and plain(*_tensors_of(node), *node.args, *(each.value for each in node.keywords))
        if isinstance(node, ast.Subscript):
            root = root_name(node)
            if isinstance(node.value, ast.Attribute) and node.value.attr in _ASIDE:
                return True
            (operands.attributes if root == "self" else operands.parts).append(self._held(node, statement))
            return root != ""
        if isinstance(node, (ast.Tuple, ast.List)):  # an argument: a tuple that is kept has no key
            return plain(*node.elts)
        if isinstance(node, ast.IfExp):
            return plain(node.body, node.orelse)
        if isinstance(node, ast.Compare):
            return plain(node.left, *node.comparators)
        return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and plain(node.operand))

    def _is_plain_call(self, node: ast.Call, statement: FileSpan) -> bool:
        """True if what is called is an elementwise layer or function."""
        held = [value.layer for value in self._held(node.func, statement) if value.kind == "layer" and value.layer is not None]
        if held:
            return all(self._is_elementwise(self._trace.layers[index]) for index in held)
        if isinstance(node.func, ast.Name):
            return node.func.id in _FUNCTIONS
        is_method = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        return isinstance(node.func, ast.Attribute) and not is_method and node.func.attr in (*_FUNCTIONS, *_ASIDE)


def is_scalar(values: Sequence[Value]) -> bool:
    """True if all that something held are tensors without dims: `[]`, `([], [])`, `{loss: []}`."""
    return bool(values) and all(has_tensor(value) and all(each.shape == [] for each in tensors_in(value)) for value in values)


def _tensors_of(call: ast.Call) -> list[ast.expr]:
    """Returns the receivers of a method: `x` of `x.relu()`, but nothing of `x.size(0)`."""
    return [call.func.value] if isinstance(call.func, ast.Attribute) and call.func.attr in _FUNCTIONS else []


def _keeps(inputs: Sequence[Value], output: Value) -> bool:
    """True if a call returned a tensor with the shape and dtype of its first input."""
    first = next((value for value in inputs if has_tensor(value)), None)
    return first is not None and _key([first]) is not None and _key([first]) == _key([output])


def _key(values: Sequence[Value]) -> _Key | None:
    """Returns the key of a tensor's shape and dtype; None for a value that is no tensor."""
    if not values or not all(map(has_dims, values)):
        return None
    return tuple(dict.fromkeys((each.kind, tuple(each.shape or ()), tuple(each.named or ()), each.dtype) for each in values))


@lru_cache(maxsize=4096)
def _statement(text: str) -> ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | None:
    """The statement of a text that keeps a value or returns one."""
    body = program_of(text).body
    return body[0] if len(body) == 1 and isinstance(body[0], (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)) else None
