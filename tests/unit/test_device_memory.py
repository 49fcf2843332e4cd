"""The memory of a device as it is written: an amount, or a device's name."""

from __future__ import annotations

import pytest

from shapelens.examples.device_memory import DEVICES, UnknownDevice, device_memory

GB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("24 GB", 24 * GB), ("24GiB", 24 * GB), ("24g", 24 * GB), ("24", 24 * GB), ("0.5 gb", GB // 2), ("800MB", 800 << 20),
        ("1 TiB", 1 << 40), ("512 b", 512), ("RTX 4090", 24 * GB), ("rtx4090", 24 * GB), ("RTX 4090 24GB", 24 * GB),
        ("A100 80GB", 80 * GB), ("a100-40gb", 40 * GB), ("t4", 16 * GB), ("h100", 80 * GB), ("H100 80GB", 80 * GB),
        # As `torch.cuda.get_device_name` says them.
        ("Tesla T4", 16 * GB), ("NVIDIA A100-SXM4-80GB", 80 * GB), ("NVIDIA GeForce RTX 3090", 24 * GB),
        ("NVIDIA H100 80GB HBM3", 80 * GB), ("NVIDIA H100 PCIe", 80 * GB), ("NVIDIA RTX 6000 Ada Generation", 48 * GB),
    ],
)  # fmt: skip
def test_a_memory_is_an_amount_or_a_device(text: str, size: int) -> None:
    assert device_memory(text) == size


def test_each_device_is_known_by_its_name() -> None:
    assert {name: device_memory(name) >> 30 for name in DEVICES} == {name: size for name, (size, _) in DEVICES.items()}
    assert all(source.startswith("https://") for _, source in DEVICES.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A100", "A100 comes with several memories: A100 40GB or A100 80GB"),
        ("RTX 4091", "did you mean RTX 4090"),
        ("much", "no device that is known: T4, .*RTX 4090"),
        ("T4 24GB", "no device that is known"),
        ("-1 GB", "no device that is known"),
        ("", "no device that is known"),
    ],
)
def test_what_is_neither_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnknownDevice, match=message):
        device_memory(text)
