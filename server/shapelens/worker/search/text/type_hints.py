"""Shapes in the annotations of parameters: jaxtyping, torchtyping, `Annotated`, torch's tensor types, containers of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Dict, List, Optional, Sequence

from ....stated.shape_words import REST, Dim, Dims, is_batch, is_dim_word, is_open_rank, jaxtyping_dims, read_dims
from ....stated.syntax_trees import expression_of, last_name
from ...evaluation.dtype_names import BY_NAME, BY_TENSOR_TYPE
from ..evidence import InputShape

# jaxtyping's words for dtypes; Num, Shaped and Real leave it open.
_JAXTYPING = {
    "Float": "f32", "Float16": "f16", "BFloat16": "bf16", "Float32": "f32", "Float64": "f64", "Inexact": "f32", "Real": "f32",
    "Num": "", "Shaped": "", "Int": "i64", "Integer": "i64", "Int8": "i8", "Int16": "i16", "Int32": "i32", "Int64": "i64",
    "UInt": "u8", "UInt8": "u8", "Bool": "bool", "Complex": "c64", "Complex64": "c64",
}  # fmt: skip
_TENSOR_TYPES = {"Tensor": "", **BY_TENSOR_TYPE}
_DTYPE_NAMES = {**BY_NAME, "int": "i64"}  # Python's int is meant.
_CONTAINERS = {
    "list": "list", "List": "list", "Sequence": "list", "Iterable": "list", "MutableSequence": "list", "tuple": "tuple", "Tuple": "tuple",
    "dict": "dict", "Dict": "dict", "Mapping": "dict", "MutableMapping": "dict", "OrderedDict": "dict",
}  # fmt: skip
_NOT_TENSORS = frozenset((
    "int", "float", "bool", "str", "bytes", "complex", "None", "Callable", "Module", "device", "dtype", "Size", "Path", "Generator",
    "ndarray", "Literal", "type", "Type", "object",
))  # fmt: skip

Aliases = Dict[str, ast.expr]


def tensor_dtype(name: str) -> Optional[str]:
    """The dtype shorthand of a tensor type's name, "" where it leaves the dtype open; None for what is no tensor type."""
    return _TENSOR_TYPES.get(name.rsplit(".", 1)[-1])


def aliases_of(module: Optional[ast.Module]) -> Aliases:
    """The names that a module gives to types: `Image = Float[Tensor, "b c h w"]`, `type Image = …`."""
    found: Aliases = {}
    for statement in module.body if module is not None else ():
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            found[statement.targets[0].id] = statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
            found[statement.target.id] = statement.value
        elif type(statement).__name__ == "TypeAlias":  # Python 3.12 has it
            found[statement.name.id] = statement.value  # type: ignore[attr-defined]
    return found


def from_annotation(annotation: Optional[ast.expr], aliases: Aliases) -> Optional[InputShape]:
    """Returns the shape that an annotation says; None where the annotation is not of a tensor (`int`, `Foo`, no annotation)."""
    return _read(annotation, aliases, 0) if annotation is not None else None


def excludes_tensors(annotation: Optional[ast.expr]) -> bool:
    """True if an annotation says that the parameter holds no tensor: `int`, `Optional[str]`, `Tuple[int, int]`, `Callable[…]`."""
    if annotation is None:
        return False
    annotation = _parsed(annotation)
    if isinstance(annotation, ast.Constant):
        return annotation.value is None or annotation.value is Ellipsis
    name = last_name(annotation)
    if name:
        return name in _NOT_TENSORS
    if isinstance(annotation, ast.BinOp):
        return excludes_tensors(annotation.left) and excludes_tensors(annotation.right)
    if isinstance(annotation, ast.Subscript):
        base = last_name(annotation.value)
        return base in _NOT_TENSORS or (
            (base in _CONTAINERS or base in ("Optional", "Union")) and all(excludes_tensors(one) for one in _elements(annotation.slice))
        )
    return False


def _elements(node: ast.AST) -> List[ast.expr]:
    if isinstance(node, ast.Index):  # Python 3.8 wrote subscripts so; a stub for it is all that newer ones have
        node = node.value  # type: ignore[attr-defined]
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]  # type: ignore[list-item]


def _parsed(node: ast.expr) -> ast.expr:
    """The annotation that a string holds."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return expression_of(node.value.strip()) or node
    return node


def _read(node: ast.expr, aliases: Aliases, depth: int) -> Optional[InputShape]:
    node = _parsed(node)
    if depth > 6:
        return None
    name = last_name(node)
    if name:
        dtype = _TENSOR_TYPES.get(name)
        if dtype is not None:
            return InputShape(dtype=dtype)
        return _read(aliases[name], aliases, depth + 1) if isinstance(node, ast.Name) and name in aliases else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right], aliases, depth)
    if isinstance(node, ast.Subscript):
        return _subscript(last_name(node.value), _elements(node.slice), aliases, depth)
    return None


def _union(nodes: Sequence[ast.expr], aliases: Aliases, depth: int) -> Optional[InputShape]:
    members = [_read(node, aliases, depth + 1) for node in nodes]
    said = [member for member in members if member is not None]
    if not said:
        return None
    optional = any(member.optional for member in said) or any(isinstance(node, ast.Constant) and node.value is None for node in nodes)
    others = tuple(member.dims for member in said[1:] if member.dims is not None and member.dims != said[0].dims)
    return replace(said[0], optional=optional, alternatives=said[0].alternatives + others)


def _subscript(base: str, elements: List[ast.expr], aliases: Aliases, depth: int) -> Optional[InputShape]:
    if base == "Optional":
        inner = _read(elements[0], aliases, depth + 1)
        return replace(inner, optional=True) if inner is not None else None
    if base == "Union":
        return _union(elements, aliases, depth)
    if base == "Annotated":
        return _annotated(elements, aliases, depth)
    if base in _CONTAINERS:
        return _container(_CONTAINERS[base], elements, aliases, depth)
    if base in _JAXTYPING:
        return _jaxtyping(base, elements, aliases, depth)
    if base in ("TensorType", "TT"):
        return _torchtyping(elements)
    if base in _TENSOR_TYPES and elements:
        dims = _generic_dims(elements)
        return input_shape(dims, _TENSOR_TYPES[base]) if dims is not None else InputShape(dtype=_TENSOR_TYPES[base])
    return None


def _container(kind: str, elements: List[ast.expr], aliases: Aliases, depth: int) -> Optional[InputShape]:
    if kind == "dict":
        inner = _read(elements[1], aliases, depth + 1) if len(elements) == 2 else None
        return _each(inner, kind)
    variadic = kind == "list" or (len(elements) == 2 and isinstance(elements[1], ast.Constant) and elements[1].value is Ellipsis)
    if variadic:
        inner = _read(elements[0], aliases, depth + 1)
        return _each(inner, kind)
    parts = [_read(element, aliases, depth + 1) for element in elements]
    said = [part for part in parts if part is not None]
    return InputShape(container=kind, parts=tuple(said)) if len(said) == len(elements) else None


def _each(inner: Optional[InputShape], kind: str) -> Optional[InputShape]:
    """A container of what is said of each element; of containers in containers no more than that."""
    if inner is None:
        return None
    return InputShape(container=kind) if inner.container else replace(inner, container=kind)


def _jaxtyping(base: str, elements: List[ast.expr], aliases: Aliases, depth: int) -> Optional[InputShape]:
    """`Float[Tensor, "b c"]`, and `Float["b c"]` of those who wrap jaxtyping so that the tensor need not be said."""
    text = elements[-1]
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str) or len(elements) > 2:
        return None
    if len(elements) == 2 and _read(elements[0], aliases, depth + 1) is None:
        return None  # of another array type
    dims = jaxtyping_dims(text.value)
    return input_shape(dims, _JAXTYPING[base]) if dims is not None else InputShape(dtype=_JAXTYPING[base])


def _torchtyping(elements: List[ast.expr]) -> InputShape:
    """`TensorType["batch", "x": 3, ..., float]`."""
    dims: List[Dim] = []
    dtype = ""
    for element in elements:
        if isinstance(element, ast.Slice) and isinstance(element.upper, ast.Constant):
            dims.append(element.upper.value if isinstance(element.upper.value, int) else None)
        elif isinstance(element, ast.Slice):
            dims.append(None)
        elif isinstance(element, ast.Constant) and element.value is Ellipsis:
            dims.append(REST)
        elif isinstance(element, ast.Constant):
            dims.append(_constant_dim(element.value))
        elif isinstance(element, ast.UnaryOp):
            dims.append(None)  # -1: any size
        elif last_name(element) in _DTYPE_NAMES:
            dtype = _DTYPE_NAMES[last_name(element)]
    return input_shape(tuple(dims), dtype)


def _constant_dim(value: object) -> Dim:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    return value if isinstance(value, str) and value.isidentifier() else None


def _is_dim(value: object) -> bool:
    return type(value) is int or (isinstance(value, str) and value.isidentifier() and is_dim_word(value))


def _generic_dims(elements: List[ast.expr]) -> Optional[Dims]:
    """The dims of `Tensor[B, T, 3]` and `Tensor["b t"]`."""
    if len(elements) == 1 and isinstance(elements[0], ast.Constant) and isinstance(elements[0].value, str):
        return jaxtyping_dims(elements[0].value)
    dims: List[Dim] = []
    for element in elements:
        if isinstance(element, ast.Constant):
            dims.append(REST if element.value is Ellipsis else _constant_dim(element.value))
        elif isinstance(element, ast.Name) and element.id not in _DTYPE_NAMES:
            dims.append(element.id)
        elif isinstance(element, ast.BinOp):
            dims.append(None)
        else:
            return None
    return tuple(dims)


def _annotated(elements: List[ast.expr], aliases: Aliases, depth: int) -> Optional[InputShape]:
    """`Annotated[Tensor, "B C H W"]`, `Annotated[Tensor, (3, "h", "w")]`, `Annotated[Tensor, "B", 3, "H", "W"]`."""
    inner = _read(elements[0], aliases, depth + 1)
    if inner is None or inner.container:
        return inner
    metadata = elements[1:]
    if len(metadata) > 1 and all(isinstance(one, ast.Constant) and _is_dim(one.value) for one in metadata):
        return input_shape(tuple(_constant_dim(one.value) for one in metadata if isinstance(one, ast.Constant)), inner.dtype)
    for one in metadata:
        if isinstance(one, ast.Call):
            dims = (
                _generic_dims([*one.args])
                if one.args and last_name(one.func).lower() in ("shape", "dims", "tensorshape", "tensorspec")
                else None
            )
        elif isinstance(one, (ast.Tuple, ast.List)):
            dims = _generic_dims(list(one.elts))
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            dims = _words(one.value)
        else:
            dims = None
        if dims is not None:
            return replace(input_shape(dims, inner.dtype), optional=inner.optional)
    return inner


def _words(text: str) -> Optional[Dims]:
    """The dims of a string among the metadata, unless it is prose."""
    text = text.strip()
    bracketed = text[:1] in "([" and text[-1:] in ")]"
    dims = read_dims(text[1:-1]) if bracketed else read_dims(text) if "," in text else jaxtyping_dims(text)
    names = [dim for dim in dims or () if isinstance(dim, str) and dim != REST]
    if not dims or not all(is_dim_word(name) for name in names) or not (names or len(dims) > 1):
        return None
    return dims if len(dims) > 1 or is_batch(dims[0]) or len(text) <= 2 else None


def input_shape(dims: Dims, dtype: str = "") -> InputShape:
    """The input shape of dims, whether or not they leave the rank open."""
    if is_open_rank(dims):
        return InputShape(dtype=dtype, pattern=dims, min_rank=len(dims) - 1)
    return InputShape(dims=dims, dtype=dtype, min_rank=len(dims))
