"""Other processes: there are none. Pools and executors work in a thread, programs that are started have ended well and said nothing, and
what processes share (locks, queues, shared memory, a manager's values) is shared by the threads of this one.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.context
import multiprocessing.pool
import multiprocessing.process
import os
import queue
import subprocess
import tempfile
import threading
import types
from types import ModuleType
from typing import Any, Callable, List, Optional

import torch.multiprocessing

from ..sandbox.allowed_acts import allowed
from .compilers import Replacement, nothing

_RECURSIVE = 0  # of the two kinds of locks that Python's own SemLock knows


# --- processes and programs ---


def _spawn(fn: Callable[..., Any], args: Any = (), nprocs: int = 1, *rest: Any, **kwargs: Any) -> None:
    """torch.multiprocessing.spawn: what its first process would do."""
    fn(0, *args)


def _pool(*args: Any, **kwargs: Any) -> Any:
    """A pool of one thread in the place of one of processes."""
    return multiprocessing.pool.ThreadPool(1, *args[1:3])


class _ThreadExecutor(concurrent.futures.ThreadPoolExecutor):
    """In the place of an executor with processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(max_workers=1)


def _completed(command: Any = None, *args: Any, **kwargs: Any) -> Any:
    return subprocess.CompletedProcess(command, 0, _output(**kwargs), _output(**kwargs))


def _output(*args: Any, **kwargs: Any) -> Any:
    return "" if kwargs.get("text") or kwargs.get("universal_newlines") or kwargs.get("encoding") else b""


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


_PROGRAMS: List[Replacement] = [
    (subprocess, "run", _completed),
    (subprocess, "call", _zero),
    (subprocess, "check_call", _zero),
    (subprocess, "check_output", _output),
    (subprocess, "getoutput", lambda *args, **kwargs: ""),
    (os, "system", _zero),
]


def joblib(module: ModuleType) -> List[Replacement]:
    """`joblib.Parallel`: its jobs are done one after the other."""
    parallel: Any = getattr(module, "Parallel", None)
    if not isinstance(parallel, type):
        return []
    make: Any = parallel.__init__  # type: ignore[misc]

    def made(self: Any, n_jobs: Any = None, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("backend", None)
        make(self, 1, **kwargs)

    return [(parallel, "__init__", made)]


# --- what processes share ---


class _Lock:
    """In the place of `_multiprocessing.SemLock`, the kernel's semaphore with a name that locks, queues and events are made of."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue, self.name, self.handle = kind, maxvalue, name, 0
        self._value = value
        self._changed = threading.Condition()
        self._owner: Optional[int] = None
        self._times = 0  # that the owner has taken it

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        """Take one, as Python's own does."""
        me = threading.get_ident()
        with self._changed:
            if not (self.kind == _RECURSIVE and self._owner == me):
                if not self._changed.wait_for(lambda: self._value > 0, timeout if block else 0):
                    return False
                self._value -= 1
            self._owner = me
            self._times += 1
            return True

    def release(self) -> None:
        """Give one back. Raises what Python's own raises."""
        with self._changed:
            if self.kind == _RECURSIVE:
                if self._owner != threading.get_ident():
                    raise AssertionError("attempt to release recursive lock not owned by thread")
                self._times -= 1
                if self._times:
                    return
                self._owner = None
            elif self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            else:
                self._times -= 1
            self._value += 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: Any) -> None:
        self.release()

    def _count(self) -> int:
        return self._times

    def _is_mine(self) -> bool:
        return self._times > 0 and self._owner == threading.get_ident()

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return self._value == 0

    def _after_fork(self) -> None:
        pass


class _Manager:
    """In the place of a manager, whose values another process holds."""

    dict, list, Namespace, Array = dict, list, types.SimpleNamespace, staticmethod(lambda code, values, lock=True: list(values))
    Queue, JoinableQueue = queue.Queue, queue.Queue
    Lock, RLock, Condition, Event = (staticmethod(getattr(threading, name)) for name in ("Lock", "RLock", "Condition", "Event"))
    Semaphore, BoundedSemaphore, Barrier = threading.Semaphore, threading.BoundedSemaphore, threading.Barrier
    Pool = staticmethod(_pool)
    start = shutdown = connect = nothing

    @staticmethod
    def Value(code: Any, value: Any, lock: Any = True) -> Any:
        """A value that is asked for by name or by method."""
        from multiprocessing.managers import Value  # type: ignore[attr-defined]

        return Value(code, value)

    def __enter__(self) -> _Manager:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def _file_of(name: str) -> str:
    return os.path.join(tempfile.gettempdir(), "shared-memory-" + name.strip("/"))


def _open_shared(name: str, flags: int, mode: int = 0o600) -> int:
    return os.open(_file_of(name), flags, mode)


def _remove_shared(name: str) -> None:
    os.unlink(_file_of(name))


def _shared() -> List[Replacement]:
    """The replacements below `multiprocessing`, where this platform has what they take the place of."""
    out: List[Replacement] = [
        (multiprocessing.context.BaseContext, "Manager", lambda self: _Manager()),
        (multiprocessing, "Manager", _Manager),
        (torch.multiprocessing, "Manager", _Manager),
    ]
    with contextlib.suppress(ImportError):
        import _multiprocessing  # type: ignore[import-not-found]

        if hasattr(_multiprocessing, "SemLock"):
            out.append((_multiprocessing, "SemLock", _Lock))
    with contextlib.suppress(ImportError, AttributeError):
        from multiprocessing import heap, resource_tracker

        tracker: Any = resource_tracker
        out += [(tracker, name, nothing) for name in ("register", "unregister", "ensure_running")]
        arena: Any = heap.Arena
        if hasattr(arena, "_dir_candidates"):
            out.append((arena, "_dir_candidates", []))
    with contextlib.suppress(ImportError):
        import _posixshmem  # type: ignore[import-not-found]

        memory: Any = _posixshmem
        out += [(memory, "shm_open", _open_shared), (memory, "shm_unlink", _remove_shared)]
    return out


# --- threads ---


def _in_mode(start: Callable[..., Any], mode: Any) -> Callable[..., Any]:
    def in_mode(thread: threading.Thread) -> None:
        """Modes belong to a thread: one that user code starts gets that of the run."""
        run = thread.run

        def run_in_mode() -> None:
            with mode:
                run()

        thread.run = run_in_mode  # type: ignore[method-assign]
        start(thread)

    return in_mode


def replacements(mode: Any) -> List[Replacement]:
    """Returns what takes the place of torch's and Python's functions for the time of a run under this mode."""
    process: Any = multiprocessing.process.BaseProcess
    context: Any = multiprocessing.context.BaseContext
    return [
        (torch.multiprocessing, "spawn", _spawn),
        (process, "start", nothing),
        (process, "join", nothing),
        (process, "is_alive", lambda self: False),
        (process, "exitcode", 0),
        (context, "Pool", lambda self, *args, **kwargs: _pool(*args, **kwargs)),
        (multiprocessing, "Pool", _pool),
        (torch.multiprocessing, "Pool", _pool),
        (multiprocessing, "set_start_method", nothing),
        (torch.multiprocessing, "set_start_method", nothing),
        *_shared(),
        (concurrent.futures, "ProcessPoolExecutor", _ThreadExecutor),
        *([] if allowed().processes else _PROGRAMS),
        (threading.Thread, "start", _in_mode(threading.Thread.start, mode)),
    ]
