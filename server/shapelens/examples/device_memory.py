"""Reads the memory of a device, as people write it: `24 GB`, `24GiB`, or the name of a device, `RTX 4090`, `A100 80GB`.

What its maker says of a device, in GB of 2**30 bytes. What a driver and a CUDA context take of it is not taken off: what does not fit all
of it fits no part of it.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

MOST = 1 << 50  # bytes
_UNITS = {"": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])i?b?|b)?", re.IGNORECASE)
_ACCELERATORS = "https://www.nvidia.com/en-us/data-center"
_GRAPHICS = "https://www.nvidia.com/en-us/geforce/graphics-cards/compare"

# By name, with where its maker says it. A device that comes with several memories is there with each of them.
DEVICES: dict[str, tuple[int, str]] = {
    "T4": (16, f"{_ACCELERATORS}/tesla-t4"),
    "P100 16GB": (16, f"{_ACCELERATORS}/tesla-p100"),
    "V100 16GB": (16, f"{_ACCELERATORS}/v100"),
    "V100 32GB": (32, f"{_ACCELERATORS}/v100"),
    "A10": (24, f"{_ACCELERATORS}/products/a10-gpu"),
    "A10G": (24, "https://aws.amazon.com/ec2/instance-types/g5"),
    "A30": (24, f"{_ACCELERATORS}/products/a30-gpu"),
    "A40": (48, f"{_ACCELERATORS}/a40"),
    "A100 40GB": (40, f"{_ACCELERATORS}/a100"),
    "A100 80GB": (80, f"{_ACCELERATORS}/a100"),
    "L4": (24, f"{_ACCELERATORS}/l4"),
    "L40S": (48, f"{_ACCELERATORS}/l40s"),
    "H100": (80, f"{_ACCELERATORS}/h100"),
    "H100 NVL": (94, f"{_ACCELERATORS}/h100"),
    "H200": (141, f"{_ACCELERATORS}/h200"),
    "MI300X": (192, "https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html"),
    "GTX 1080 Ti": (11, _GRAPHICS),
    "RTX 2080 Ti": (11, _GRAPHICS),
    "RTX 3060 12GB": (12, _GRAPHICS),
    "RTX 3080 10GB": (10, _GRAPHICS),
    "RTX 3080 12GB": (12, _GRAPHICS),
    "RTX 3090": (24, _GRAPHICS),
    "RTX 4060 Ti 8GB": (8, _GRAPHICS),
    "RTX 4060 Ti 16GB": (16, _GRAPHICS),
    "RTX 4070": (12, _GRAPHICS),
    "RTX 4080": (16, _GRAPHICS),
    "RTX 4090": (24, _GRAPHICS),
    "RTX 5080": (16, _GRAPHICS),
    "RTX 5090": (32, _GRAPHICS),
    "RTX A6000": (48, "https://www.nvidia.com/en-us/products/workstations/rtx-a6000"),
    "RTX 6000 Ada": (48, "https://www.nvidia.com/en-us/products/workstations/rtx-6000"),
}
# What `torch.cuda.get_device_name` says besides.
_BESIDE = re.compile(r"nvidia|geforce|tesla|amd|instinct|graphics|generation|sxm\d?|pcie?|hbm\w*|[\s_-]+", re.IGNORECASE)


class UnknownDevice(ValueError):
    """A text that says no memory. The message is one line for the user."""


def device_memory(text: str) -> int:
    """The bytes of a memory; a number alone is one of GB. Raises UnknownDevice."""
    amount = _AMOUNT.fullmatch(text.strip())
    if amount is not None:
        unit = 1 if text.strip()[-1] in "bB" and not amount[2] else _UNITS[(amount[2] or "").lower()]
        return int(min(float(amount[1]) * unit, MOST))
    given, known = _key(text), {_key(name): name for name in DEVICES}
    with_size = {f"{key}{DEVICES[name][0]}gb": name for key, name in known.items()}  # `RTX 4090 24GB`
    name = known.get(given) or with_size.get(given)
    if name is not None:
        return DEVICES[name][0] << 30
    several = [device for key, device in known.items() if given and re.fullmatch(rf"{re.escape(given)}\d+gb", key)]
    if several:
        raise UnknownDevice(f"{text} comes with several memories: {' or '.join(several)}")
    likely = get_close_matches(given, known, 1)
    meant = f" (did you mean {known[likely[0]]}?)" if likely else ""
    raise UnknownDevice(f"{text} is no memory like 24 GB or 800 MB, and no device that is known{meant}: {', '.join(DEVICES)}")


def _key(name: str) -> str:
    return _BESIDE.sub("", name).lower().replace("gib", "gb")
