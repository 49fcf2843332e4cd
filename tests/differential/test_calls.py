"""Eager's truth: what a run says of small calls of torch, right and wrong ones, is what happens to real tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parent / "harness.py"

# Wrong calls of which nothing is said, as the meta device has no check for them.
NOT_SAID = {
    "missed: a[b] of f32[3, 4], bool[2] (b: bool)",
    "missed: torch.clamp(a, 0, 1) of c64[2, 3] (a: c64)",
    "missed: torch.bucketize(a, b) of c64[2, 3], f32[4] (a: c64)",
    "missed: torch.bucketize(a, b) of f32[2, 3], c64[4] (b: c64)",
    "missed: torch.searchsorted(a, b) of f32[()], f32[2, 3] (a: a dim less)",
    "missed: torch.searchsorted(a, b) of c64[4], f32[2, 3] (a: c64)",
    "missed: torch.searchsorted(a, b) of f32[4], c64[2, 3] (b: c64)",
    "missed: F.conv_transpose2d(a, b, c, stride=2) of f32[2, 3, 5, 5], f32[3, 4, 3, 3], f16[4] (c: f16)",
    'missed: F.pad(a, (2, 2), mode="reflect") of bool[2, 3, 4] (a: bool)',
    "missed: F.scaled_dot_product_attention(a, b, c, attn_mask=d)"
    " of f32[2, 4, 5, 8], f32[2, 4, 6, 8], f32[2, 4, 6, 8], bool[6] (d: a dim less)",
    "missed: F.dropout(a, 0.5) of c64[2, 3] (a: c64)",
}


def disagreements(*options: str) -> tuple[int, list[str]]:
    """How many calls were compared, and those where eager and a run disagree."""
    answer = subprocess.run([sys.executable, str(HARNESS), *options], capture_output=True, text=True, timeout=600, check=True)
    lines = [line for line in answer.stdout.splitlines() if not line.startswith("    ")]
    return int(lines[-1].split()[0]), lines[:-1]


def test_a_part_of_them() -> None:
    count, found = disagreements("--every", "13")
    assert count > 200
    assert set(found) <= NOT_SAID


@pytest.mark.slow("thousands of calls")
@pytest.mark.timeout(600)
def test_all_of_them() -> None:
    count, found = disagreements()
    assert count > 3000
    assert set(found) == NOT_SAID
