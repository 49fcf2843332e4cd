"""Results of operations that were computed before: what comes of them, and how one process learns them from another."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from shapelens.worker.meta import op_cache

X = torch.empty(2, 3, 8, 8, device="meta")
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (F.conv2d, (X, torch.empty(4, 3, 3, 3, device="meta")), {"padding": 1}),
    (F.linear, (torch.empty(2, 5, 4, device="meta"), torch.empty(6, 4, device="meta")), {}),
    (torch.Tensor.clamp_, (X, 0.0, 1.0), {}),
    (torch.Tensor.mean, (X, (1, 2)), {"keepdim": True}),
    (torch.Tensor.sum, (X,), {"dtype": torch.float64}),
    (torch.Tensor.clamp_, (X, None, 1.0), {}),
    (F.softmax, (X,), {"dim": None, "_stacklevel": 5}),
    (F.interpolate, (X,), {"scale_factor": 2, "mode": "nearest"}),
    (torch.Tensor.contiguous, (X.transpose(1, 3),), {}),
    (torch.Tensor.contiguous, (X,), {}),
    (torch.Tensor.reshape, (X.transpose(1, 3), 2, -1), {}),
    (torch.Tensor.clone, (X.transpose(1, 3),), {"memory_format": torch.preserve_format}),
]


@pytest.fixture(autouse=True)
def empty_table() -> Any:
    held = dict(op_cache._table), list(op_cache._new)
    op_cache._table.clear()
    op_cache._new.clear()
    yield
    op_cache._table.clear()
    op_cache._table.update(held[0])
    op_cache._new[:] = held[1]


@pytest.mark.parametrize(("function", "args", "kwargs"), CALLS)
def test_a_known_result_is_like_a_computed_one(function: Any, args: Any, kwargs: Any) -> None:
    key = op_cache.key_of(function, args, kwargs)
    assert key is not None and op_cache.known(key, args) is None
    computed = op_cache.call(key, function, args, kwargs)
    known = op_cache.known(key, args)
    assert known is not None and known.is_meta
    assert (known.shape, known.stride(), known.dtype) == (computed.shape, computed.stride(), computed.dtype)
    assert (known is args[0]) == (computed is args[0])


def test_a_view_is_made_each_time() -> None:
    args = (X, (2, 3, 64))
    assert op_cache.key_of(torch.Tensor.view, args, {}) is None
    key = op_cache.key_of(torch.Tensor.reshape, args, {})
    assert key is not None
    for _ in range(2):
        made = op_cache.call(key, torch.Tensor.reshape, args, {})
        assert made.untyped_storage()._cdata == X.untyped_storage()._cdata
        assert op_cache.known(key, args) is None


def test_another_process_can_learn_what_this_one_has() -> None:
    for function, args, kwargs in CALLS:
        key = op_cache.key_of(function, args, kwargs)
        assert key is not None
        op_cache.call(key, function, args, kwargs)
    text, table = op_cache.additions(), dict(op_cache._table)
    op_cache._table.clear()
    op_cache.learn(text)
    assert op_cache._table == table and len(table) == len(CALLS)


def test_nothing_is_learnt_that_could_run_code() -> None:
    text = base64.b64encode(pickle.dumps([(("key",), print)])).decode()
    op_cache.learn(text)
    assert not op_cache._table
