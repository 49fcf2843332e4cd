"""Sparse tensors: the meta device has few kernels for them, and of shapes they are like any other tensor.

So a sparse tensor of data is a plain one of its shape, that remembers how many of its elements are given.
"""

from __future__ import annotations

from typing import Any, Callable, Tuple

import torch

from ..unknown import unknown_sizes
from .mode import META, SPECIAL, Args, Kwargs, made, named

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

SPARSE = "_shapelens_sparse"  # of a tensor's __dict__: (number of elements that are given, how many dims they are sparse in)


def _sparse(shape: Any, dtype: torch.dtype, given: int, dims: int, requires_grad: bool = False) -> Tensor:
    tensor = made([unknown_sizes.size() if size is None else int(size) for size in shape], dtype, requires_grad)
    tensor.__dict__[SPARSE] = (given, dims)
    return tensor


def _known(tensor: Tensor) -> Tuple[int, int]:
    found: Tuple[int, int] = tensor.__dict__.get(SPARSE) or (unknown_sizes.size(), tensor.dim())
    return found


def _coordinates(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.sparse_coo_tensor(indices [sparse dims, n], values [n, ...], size)."""
    given = {**dict(zip(("indices", "values", "size"), args)), **kwargs}
    indices, values, size = given.get("indices"), given.get("values"), given.get("size")
    if not isinstance(indices, Tensor):  # A size alone, or lists.
        alone = len(args) == 1 and not isinstance(indices, str)
        return _sparse(args[0], kwargs.get("dtype") or torch.get_default_dtype(), 0, len(args[0])) if alone else func(*args, **kwargs)
    with _plainly():
        values = values if isinstance(values, Tensor) else torch.empty(indices.shape[1:], device=META)
        dims = indices.shape[0]
        shape = tuple(size) if size is not None else (*[None] * dims, *values.shape[1:])
        return _sparse(shape, kwargs.get("dtype") or values.dtype, indices.shape[1], dims, values.requires_grad)


def _compressed(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.sparse_csr_tensor(crow_indices, col_indices, values, size) and its like."""
    given = {**dict(zip(("crow", "col", "values", "size"), args)), **kwargs}
    with _plainly():
        values, size = given["values"], given.get("size")
        values = values if isinstance(values, Tensor) else torch.tensor(values)
        return _sparse(size if size is not None else (None, None), kwargs.get("dtype") or values.dtype, values.shape[0], 2)


def _on_data(rule: Callable[..., Any]) -> Callable[..., Any]:
    def apply(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
        with _plainly():
            return rule(args[0], *args[1:]) if args[0].is_meta and args[0].layout is torch.strided else func(*args, **kwargs)

    return apply


def _to_sparse(tensor: Tensor, *rest: Any) -> Tensor:
    return _sparse(tensor.shape, tensor.dtype, unknown_sizes.size(), tensor.dim(), tensor.requires_grad)


def _coalesced(tensor: Tensor) -> Tensor:
    """Elements that are given twice become one."""
    return _sparse(tensor.shape, tensor.dtype, unknown_sizes.size(), _known(tensor)[1], tensor.requires_grad)


def _dense(tensor: Tensor, *rest: Any) -> Tensor:
    return made(tuple(tensor.shape), tensor.dtype, tensor.requires_grad)


def _indices(tensor: Tensor) -> Tensor:
    given, dims = _known(tensor)
    return made((dims, given), torch.int64)


def _values(tensor: Tensor) -> Tensor:
    given, dims = _known(tensor)
    return made((given, *tensor.shape[dims:]), tensor.dtype, tensor.requires_grad)


def _rows(tensor: Tensor) -> Tensor:
    return made((tensor.shape[-2] + 1,), torch.int64)


def _columns(tensor: Tensor) -> Tensor:
    return made((_known(tensor)[0],), torch.int64)


def _product(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    """torch.sparse.mm and addmm: as the dense ones, whose checks are the same."""
    dense = torch.addmm if len(args) > 2 else torch.matmul
    with _plainly():
        return dense(*[_dense(part) if isinstance(part, Tensor) else part for part in args])


def _is_sparse(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    with _plainly():
        return SPARSE in args[0].__dict__ or func(*args, **kwargs)


def _getter(name: str) -> Any:
    return getattr(Tensor, name).__get__


for _rule, _functions in (
    (_coordinates, named(torch, "sparse_coo_tensor")),
    (_compressed, named(torch, "sparse_csr_tensor sparse_csc_tensor")),
    (_on_data(_to_sparse), named(Tensor, "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc")),
    (_on_data(_coalesced), {Tensor.coalesce}),
    (_on_data(_dense), {Tensor.to_dense}),
    (_on_data(_indices), named(Tensor, "indices _indices")),
    (_on_data(_values), named(Tensor, "values _values")),
    (_on_data(_rows), named(Tensor, "crow_indices ccol_indices")),
    (_on_data(_columns), named(Tensor, "col_indices row_indices")),
    (_on_data(lambda tensor: _known(tensor)[0]), named(Tensor, "_nnz")),
    (_on_data(lambda tensor: _known(tensor)[1]), named(Tensor, "sparse_dim")),
    (_on_data(lambda tensor: tensor.dim() - _known(tensor)[1]), named(Tensor, "dense_dim")),
    (_product, named(torch.sparse, "mm addmm")),
    (_is_sparse, {_getter("is_sparse"), Tensor.is_coalesced}),
):
    SPECIAL.update(dict.fromkeys(_functions, _rule))
