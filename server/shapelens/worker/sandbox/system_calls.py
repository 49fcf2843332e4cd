"""System calls that a process which runs user code does not make any more: a filter that the kernel holds (seccomp), where it has that.

Landlock (kernel_boundary.py) has no word for most of them: other processes (`ptrace`, signals, `fork`, `exec`), connections that are not
TCP, attributes of files, namespaces, and what only an administrator may do. A call is refused with an error number, so that code which is
prepared for that goes on; one that only changes attributes of a file does nothing and says that all went well. Threads stay possible.

Numbers: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h` (arm64). The filter's program:
`Documentation/userspace-api/seccomp_filter.rst`.
"""

from __future__ import annotations

import ctypes
import errno
import struct
import sys
from typing import Dict, List, Optional, Tuple

from .allowed_acts import AllowedActs, allowed
from .originals import os

# By name: the numbers on x86-64 and on arm64; None where there is no such call.
_REFUSED: Dict[str, Tuple[Optional[int], Optional[int]]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "fork": (57, None), "vfork": (58, None), "execve": (59, 221),
    "execveat": (322, 281), "setsid": (112, 157), "setpgid": (109, 154), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    # the network, and sockets of other programs
    "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # what outlives a process
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219),
    # ways around: what reads and writes without the calls that are looked at
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "open_by_handle_at": (304, 265),
    # the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "reboot": (169, 142), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "swapon": (167, 224), "swapoff": (168, 225), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "sethostname": (170, 161), "acct": (163, 89), "iopl": (172, None), "ioperm": (173, None), "quotactl": (179, 60),
}  # fmt: skip
# What is not refused where the user allows the network, or other processes.
_OF_NETWORK = {"connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg"}
_OF_PROCESSES = {"fork", "vfork", "execve", "execveat", "setsid", "setpgid", "pidfd_open", "pidfd_send_signal"}
_FORKING = {"fork", "vfork", "setsid", "setpgid"}
# These change no more than attributes of files: nothing is done, and that is no error.
_PASSED_OVER: Dict[str, Tuple[Optional[int], Optional[int]]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88),
}  # fmt: skip
_CLONE, _CLONE3, _KILL, _TGKILL, _SENDTO, _PRLIMIT = (56, 220), (435, 435), (62, 129), (234, 131), (44, 206), (302, 261)
_CLONE_THREAD = 0x00010000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # which of the numbers, and the kernel's name of the machine
_OTHER_NUMBERING = 0x40000000  # calls of x86-64's x32 begin here

# The filter's language: a word of four numbers an instruction.
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets of what the filter sees of a call; each argument has eight bytes
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 1, 21, 22, 38, 2

Instruction = Tuple[int, int, int, int]  # code, jumps where it holds and where not, operand


class _FilterState:
    held: Optional[int] = None  # the process that is held


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def is_known(machine: str = "") -> bool:
    """True if the numbers of this machine's system calls are known."""
    return sys.platform.startswith("linux") and sys.byteorder == "little" and (machine or os.uname().machine) in _MACHINES


def are_filtered() -> bool:
    """True if this kernel takes a filter (`refuse`)."""
    return is_known() and int(ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def refuse(*, forks: bool = False) -> bool:
    """Have the kernel refuse these calls to this process from now on, once and for all; whether it does.

    forks: the process has to fork others and to end them; these refuse the rest.
    """
    if _FilterState.held == os.getpid():
        return True
    if not is_known():
        return False
    words = program(os.uname().machine, os.getpid(), allowed(), forks=forks)
    packed = b"".join(struct.pack("<HBBI", *word) for word in words)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    given = _Program(len(words), packed)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(given), 0, 0):
        return False
    _FilterState.held = os.getpid()
    return True


def end_with_parent(signal_number: int) -> None:
    """Have the kernel end this process when the one that has forked it ends, where it can do that."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def adopt_orphans() -> bool:
    """Have the kernel make this process the parent of its descendants whose own parents end; whether it does."""
    if not sys.platform.startswith("linux"):
        return False
    return int(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


def program(machine: str, own_pid: int, acts: AllowedActs, *, forks: bool = False) -> List[Instruction]:
    """The filter for a process of this id. forks: see `refuse`."""
    not_refused = (_OF_NETWORK if acts.network else set()) | (_OF_PROCESSES if acts.processes else _FORKING if forks else set())
    forks = forks or acts.processes
    which, name = _MACHINES[machine]
    refused, nothing_done = (_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ERROR)
    words: List[Instruction] = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, name), refused, (_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":
        words += [(_AT_LEAST, 0, 1, _OTHER_NUMBERING), refused]
    for calls, answer in ((_REFUSED, refused), (_PASSED_OVER, nothing_done)):
        for call, numbers in calls.items():
            number = numbers[which]
            if number is not None and call not in not_refused:
                words += [(_EQUAL, 0, 1, number), answer]
    # A thread is made by clone with a flag that is seen; clone3 hides its flags, and whoever is told that there is none takes clone.
    words += [(_EQUAL, 0, 1, _CLONE3[which]), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    if not forks:
        words += [(_EQUAL, 0, 4, _CLONE[which]), _argument(0), (_HAS_BITS, 0, 1, _CLONE_THREAD), (_RETURN, 0, 0, _ALLOW), refused]
    for numbers in () if forks else (_KILL, _TGKILL):  # Landlock keeps signals to what this process has started.
        words += [(_EQUAL, 0, 4, numbers[which]), _argument(0), (_EQUAL, 0, 1, own_pid), (_RETURN, 0, 0, _ALLOW), refused]
    words += [(_EQUAL, 0, 5, _PRLIMIT[which]), _argument(0), (_EQUAL, 1, 0, own_pid), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW), refused]
    if acts.network:
        return [*words, (_RETURN, 0, 0, _ALLOW)]
    # An address may be given to sendto, which then needs no connection.
    words += [
        (_EQUAL, 0, 6, _SENDTO[which]),
        _argument(4), (_EQUAL, 0, 3, 0), (_LOAD, 0, 0, _ARGUMENTS + 8 * 4 + 4), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW), refused,
    ]  # fmt: skip
    return [*words, (_RETURN, 0, 0, _ALLOW)]


def _argument(index: int) -> Instruction:
    """Load the lower half of an argument."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)
