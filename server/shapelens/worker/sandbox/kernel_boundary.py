"""A boundary that the kernel holds around a process which runs user code: Linux's Landlock, where the kernel has it.

From then on the process, and whatever it starts, writes, makes and removes files below the given folder only, also from C code that no
audit hook sees (`sqlite3`, `safetensors`, `cv2.imwrite`, `ctypes`); it neither connects nor binds over TCP, and signals no process
outside. What it has open already stays open; reading stays allowed. The audit hook (audit_hook.py) says what was refused; this sees to it.

Numbers and structures: the kernel's `include/uapi/linux/landlock.h`, documented in `Documentation/userspace-api/landlock.rst`.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Iterator, Optional, Tuple

from .allowed_acts import allowed
from .originals import os

# System calls of x86-64 and arm64 alike.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_MACHINES = ("x86_64", "aarch64", "arm64")
_PR_SET_NO_NEW_PRIVS = 38
_ASK_FOR_VERSION = 1
_PATH_BENEATH = 1
# Rights by the version of Landlock that has them first.
_WRITES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))  # write_file, remove_*, make_*
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_WRITE_FILE = 1 << 1
_TCP = 0b11  # bind, connect
_ABSTRACT_SOCKETS, _SIGNALS = 0b01, 0b10  # the scopes


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64), ("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _BoundaryState:
    held: Optional[int] = None  # the process that is held; one that it has forked is held to the same, and may be held to less


def version() -> int:
    """The version of Landlock that this kernel has; 0 where it has none."""
    if not sys.platform.startswith("linux") or os.uname().machine not in _MACHINES:
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_FOR_VERSION))))


def was_confined() -> bool:
    """True if this process is held to a folder, or was forked from one that is."""
    return _BoundaryState.held is not None


def confine_to(folder: str) -> bool:
    """Let the kernel hold this process to `folder`, and to what is allowed, from now on, once and for all; whether it does."""
    if _BoundaryState.held == os.getpid():
        return True
    known = version()
    if not known:
        return False
    libc = _libc()
    files = _WRITES | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    network = allowed().network
    scopes = _SIGNALS if network else _SIGNALS | _ABSTRACT_SOCKETS
    rules = _Ruleset(files, _TCP if known >= 4 and not network else 0, scopes if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for path, rights in _places(folder, files):
            number = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                rule = _PathBeneath(rights, number)
                if libc.syscall(_ADD_RULE, ruleset, ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0)):
                    return False
            finally:
                os.close(number)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            return False
        if libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)):
            return False
    finally:
        os.close(ruleset)
    _BoundaryState.held = os.getpid()
    return True


def _places(folder: str, files: int) -> Iterator[Tuple[str, int]]:
    """The places that may be written to, and how: devices such as /dev/null may be opened, but nothing is made there."""
    for each in (folder, *allowed().folders):
        yield each, files
    if os.path.isdir("/dev"):
        yield "/dev", files & (_WRITE_FILE | _TRUNCATE)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
