"""How the arguments of an attempt are written."""

from __future__ import annotations

from shapelens.worker.search.inputs.choices import with_sizes_once


def test_a_size_is_said_in_one_tensor() -> None:
    assert with_sizes_once("f32[B:2, N:10], f32[B:2, N:10, N:10], i64[B:2]") == "f32[B:2, N:10], f32[B, N, N], i64[B]"
    # A name is not known yet in the tensor that says its size.
    assert with_sizes_once("f32[N:10, N:10], f32[N:10]") == "f32[N:10, N:10], f32[N]"
