"""What user code may not do while it runs: exceed its time and memory, use the network, write outside a scratch folder, start programs.

The limits on time and memory are the kernel's. The rest is an audit hook (`sys.addaudithook`): a guard against accidents, not a boundary
against an attacker, which is why nothing runs in an untrusted workspace.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, Iterator, Optional, Set, Tuple

MOST_WAITING = 3  # times the seconds that something may take of the machine's time, where other processes get most of that
_TICK = 0.05  # seconds between looks at an import that takes long
GRACE = 1.0  # seconds that a run has to end by itself after its deadline


class TooLong(BaseException):
    """Something took longer than it was given (`within`). No `Exception`, so that user code does not catch it."""


class DeadlineReached(BaseException):
    """The run's time is up. A BaseException, so that user code's `except Exception` lets it pass."""


class Interrupted(BaseException):
    """What goes on is not needed any more, nor what came of it."""


_TEMPORARY = tempfile.gettempdir()  # as it is outside of a run


class _State:
    scratch: Optional[str] = None  # set: the guard is up
    is_hooked = False
    trusts = False  # no user code is running
    real_scratch = ""


opened: Set[str] = set()  # what was opened for reading since the guard is up, under the names that were given

NETWORK = {
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "urllib.Request",
    "ftplib.connect",
    "smtplib.connect",
}
PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn", "os.startfile"}
SIGNALS = {"os.kill", "os.killpg", "signal.pthread_kill"}
CHANGES = {
    "os.remove": (0,), "os.rename": (0, 1), "os.rmdir": (0,), "os.mkdir": (0,), "os.link": (1,), "os.symlink": (1,), "os.truncate": (0,),
    "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "shutil.rmtree": (0,), "shutil.move": (0, 1), "shutil.copyfile": (1,),
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def limit_time(seconds: float) -> None:
    """Raise DeadlineReached in the main thread after this many seconds, where the platform has interval timers."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _deadline)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))


def no_time_limit() -> None:
    """End what `limit_time` began."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Limit]:
    """Let something take `seconds` at most, and raise TooLong in it then. The deadline of the whole goes on, and is not put off.

    Seconds of this process's own work, as what is found must not depend on what else the machine does. Imports do not count: an import
    that is cut short leaves its package half done for whoever needs it next.
    """
    if not hasattr(signal, "setitimer"):
        yield Limit(seconds, 0.0, None)
        return
    start = time.perf_counter()
    left = signal.getitimer(signal.ITIMER_REAL)[0]
    limit = Limit(seconds, left, sys._getframe(2))  # Between it and this one is contextlib's.
    if 0 < left <= seconds:
        yield limit
        return
    before = signal.getsignal(signal.SIGALRM)
    try:
        signal.signal(signal.SIGALRM, limit.reached)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - start), 0.001))


def half_of_what_is_left(most: float) -> float:
    """`most` seconds, or half of those that are left to whatever is under way, if that is less."""
    left = signal.getitimer(signal.ITIMER_REAL)[0] if hasattr(signal, "setitimer") else 0.0
    return min(most, left / 2) if left > 0 else most


class Limit:
    """The seconds that something may take, and what imports took besides."""

    def __init__(self, seconds: float, left: float, outermost: Any) -> None:
        self.importing = 0.0
        self._outermost = outermost  # the frame that set the limit
        self._seconds = seconds
        self._end = time.perf_counter() + left if left else float("inf")  # of the whole
        self._waits = False  # for an import to end
        self._restart()

    def _restart(self) -> None:
        self._wall, self._worked = time.perf_counter(), time.process_time()

    def reached(self, number: int, frame: Any) -> None:
        """The timer went off: raise TooLong, or set it again. `frame` is what runs."""
        now = time.perf_counter()
        worked = time.process_time() - self._worked
        if now >= self._end:
            raise TooLong()
        if self._imports(frame):
            self._waits = True
            signal.setitimer(signal.ITIMER_REAL, _TICK)
        elif self._waits:  # What runs gets its time once more.
            self._waits = False
            self.importing += now - self._wall
            self._restart()
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
        elif worked < 0.9 * self._seconds and now - self._wall < MOST_WAITING * self._seconds:
            signal.setitimer(signal.ITIMER_REAL, self._seconds - worked)
        else:
            raise TooLong()

    def _imports(self, frame: Any) -> bool:
        """Whether an import is under way that began within the limit."""
        while frame is not None and frame is not self._outermost:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                return True
            frame = frame.f_back
        return False


def _deadline(number: int, frame: Any) -> None:
    raise DeadlineReached()


def limit_memory(more: int) -> None:
    """Let this process map `more` bytes on top of what it has; past that, allocations raise MemoryError or torch's own error."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + more, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (ImportError, OSError, ValueError):
        pass  # No such limit on this platform: the deadline still holds.


def scratch_of(pid: int) -> str:
    """The folder that the run of this process may write to."""
    return os.path.join(_TEMPORARY, "shapelens-scratch-%d" % pid)


def forbid() -> None:
    """Put up the guard of this process: an audit hook cannot be taken away. User code gets PermissionError for what it may not do."""
    if _State.scratch != scratch_of(os.getpid()):
        _State.trusts = True
        _State.scratch = scratch_of(os.getpid())
        os.makedirs(_State.scratch, exist_ok=True)
        _State.real_scratch = os.path.realpath(_State.scratch) + os.sep
        tempfile.tempdir = _State.scratch
        if not _State.is_hooked:
            _State.is_hooked = True
            sys.addaudithook(_audit)
    _State.trusts = False


def trust() -> None:
    """Let down the guard until `forbid` is called again: from here on our own code runs."""
    _State.trusts = True


def clean_up(pid: int) -> None:
    """Remove the scratch folder of a process that is gone, or of this one, which writes nothing any more."""
    _State.real_scratch = os.sep  # rmtree names files relative to their folder: the guard could not tell where they are.
    shutil.rmtree(scratch_of(pid), ignore_errors=True)


def clean_up_after_the_dead() -> None:
    """Remove the scratch folders of processes that were killed together with their worker."""
    for path in glob.glob(os.path.join(_TEMPORARY, "shapelens-scratch-*")):
        pid = path.rpartition("-")[2]
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (ValueError, OSError):
            pass  # Not ours, or somebody else's process.


def _audit(event: str, args: Tuple[Any, ...]) -> None:
    if _State.trusts:
        return
    if event == "open":
        path, _, flags = args
        if not isinstance(path, (str, bytes)):
            return
        if not (isinstance(flags, int) and flags & WRITES):
            opened.add(os.fsdecode(path))
        elif not _is_scratch(path):
            raise PermissionError("ShapeLens: files are not written while a model is looked at (%s)" % os.fsdecode(path))
    elif event in CHANGES:
        for index in CHANGES[event]:
            if isinstance(args[index], (str, bytes)) and not _is_scratch(args[index]):
                raise PermissionError("ShapeLens: %s is not allowed while a model is looked at" % event)
    elif event in NETWORK:
        raise PermissionError("ShapeLens: the network is not available while a model is looked at")
    elif event in PROGRAMS:
        raise PermissionError("ShapeLens: no program is started while a model is looked at (%s)" % event)
    elif event in SIGNALS and args and args[0] != os.getpid():
        raise PermissionError("ShapeLens: no signal is sent to other processes while a model is looked at")


def _is_scratch(path: Any) -> bool:
    text = os.fsdecode(path)
    if text in ("/dev/null", "nul", "NUL"):
        return True
    return os.path.realpath(text).startswith(_State.real_scratch)


def flush() -> None:
    """Write what was printed so far."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What is printed goes nowhere, also that of C code."""
    flush()
    held = [(number, os.dup(number)) for number in (1, 2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number, _ in held:
        os.dup2(nothing, number)
    os.close(nothing)
    try:
        yield
    finally:
        flush()
        for number, copy in held:
            os.dup2(copy, number)
            os.close(copy)
