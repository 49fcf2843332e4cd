"""A process that has imported the libraries that the user's files import, and forks zygotes and children from there.

A library is user code too: one may end its process at import, crash or never come back. The process that holds the server's pipes imports
none of them, and waits for none that the newest text does not import. The process that imports them is held to what a run may do.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import importlib.util
import re
import socket
import sys
import traceback
from functools import partial
from importlib.machinery import ModuleSpec
from typing import Any, Callable, List, Optional, Sequence, Set

from ...protocol import HEADER, Run, decode, encode
from ..loading.compile_cache import PREPARED
from ..meta import op_cache
from ..sandbox import import_boundary, system_calls
from ..sandbox.clocks import RunClock
from ..sandbox.limits import DeadlineReached, limit_time, no_time_limit
from ..sandbox.monkeypatches import package_has_patched_others
from ..sandbox.originals import gc, os, signal, time
from ..shims import file_access
from .event_loop import READ_SIZE, EventLoop, Timer, kill
from .forks import Begin, Forks
from .framing import FrameSplitter
from .messages import Ended, Fork, Forked, Import, ImportEnded, OpCacheAdditions, Prepare

SECONDS = 20.0  # for one library; one that takes longer is left to the run
GRACE = 2.0  # seconds after which a process is killed that does not keep to this
ANSWER_SECONDS = 2.0  # in which a process that has nothing else to do forks
COMPILING_NICENESS = 10
MOST_DESCRIPTORS = 8  # in one message


class Libraries:
    """The process that forks all others, as the main process sees it: itself at first, then one that has imported libraries.

    For further libraries another one is forked from there, so that one that does not survive them takes nothing along.
    settled: called when it is known of some libraries whether they can be imported.
    """

    def __init__(self, loop: EventLoop, begin: Begin, settled: Callable[[], None]) -> None:
        self._loop = loop
        self._begin = begin
        self._here = Forks(loop, begin)
        self._settled = settled
        self._ready: List[LibraryProcess] = []  # the last one has loaded most; the others have forked what still lives
        self._coming: Optional[LibraryProcess] = None  # that still imports
        self._wanted: List[str] = []
        self._refused: Set[str] = set()  # libraries that ended a process, or took too long
        self._parts: Set[str] = set()  # "library:name" that documents take from libraries
        self._offered: Set[str] = set()  # those of them all that a library loads only when it is asked for it
        self._allow: List[str] = []  # what the user allows
        self._uncompiled: List[str] = []

    def load(self, modules: List[str], allow: List[str]) -> None:
        """Import what is installed and not yet loaded; all of it anew where the user allows something else than before."""
        if allow != self._allow:
            modules = [*self._loaded(), *self._to_come(), *modules]
            self._allow, self._wanted = allow, []
            self._refused.clear()
        if not modules:
            return
        self._parts.update(name for name in modules if ":" in name)
        self._wanted += [name for name in modules if not self._is_known(name) and self._is_to_be_loaded(name)]
        self._start()

    def _is_known(self, name: str) -> bool:
        return any(name in names for names in (self._loaded(), self._to_come(), self._refused, sys.modules))

    def _is_to_be_loaded(self, name: str) -> bool:
        return name in self._offered if ":" in name else is_library(name)

    def are_had_by(self, packages: Set[str]) -> bool:
        """True if a process with these outermost packages has all libraries that could be imported."""
        return all(outermost(name) in packages for name in self._loaded())

    def are_awaited_by(self, run: Run) -> bool:
        """True if a library is being imported that the document of a run imports."""
        return any(_imports(run.text, name) for name in self._to_come())

    def fork(self, order: Fork, numbers: List[int]) -> int:
        """Fork from the process that has loaded most: the id of a new one, whose own these descriptors are from now on."""
        newest = self._newest()
        pid = newest.fork(order, numbers) if newest is not None else None
        return self._here.fork(order, numbers) if pid is None else pid

    def learn(self, additions: str) -> None:
        """Hands what has been learnt about operations to all that are forked."""
        op_cache.learn(additions)
        for process in self._ready[-1:]:
            process.send(OpCacheAdditions(additions))

    def prepare(self, file: str) -> bool:
        """Parse, rewrite and compile a file ahead of the next runs; whether there is something new."""
        for process in self._ready[-1:]:
            process.send(Prepare([file]))
        return PREPARED.prepare(file)

    def compile(self) -> None:
        """Have a process of its own compile files of libraries for later imports, as Python does where it may write beside them."""
        if self._uncompiled:
            files, self._uncompiled = self._uncompiled, []
            self._here.fork(Fork("compiler", files=files), [])

    def end(self) -> None:
        """End all of them."""
        for process in [*self._ready, *([self._coming] if self._coming is not None else [])]:
            process.kill()

    def _newest(self) -> Optional[LibraryProcess]:
        """The one that has loaded most; none that is held to other bounds than those of now."""
        return self._ready[-1] if self._ready and self._ready[-1].allow == self._allow else None

    def _loaded(self) -> List[str]:
        newest = self._newest()
        return newest.loaded if newest is not None else []

    def _to_come(self) -> List[str]:
        coming = self._coming if self._coming is not None and self._coming.allow == self._allow else None
        return self._wanted + (coming.wanted if coming is not None else [])

    def _start(self) -> None:
        if self._coming is None and self._wanted:
            modules, self._wanted = self._wanted, []
            self._coming = LibraryProcess(self._loop, self, self._loaded(), modules, self._allow, self._notify)

    def _notify(self, process: LibraryProcess) -> None:
        """A process has imported all that it was to import, or it has gone, or what it forked has."""
        self._uncompiled += process.uncompiled
        process.uncompiled = []
        if process.offered:
            self._offered.update(process.offered)
            process.offered = []
            self._wanted += sorted(name for name in self._parts & self._offered if not self._is_known(name))
        if process.has_ended:
            self._ready = [each for each in self._ready if each is not process]
        if process is self._coming and (process.has_ended or not process.wanted):
            self._coming = None
            if process.allow != self._allow:
                process.kill()
            elif process.has_ended:  # The first one that it has not said to be done with is what it died of.
                self._refused.update(process.wanted[:1])
                self._wanted = process.imported + process.wanted[1:] + self._wanted
            else:
                self._ready.append(process)
            self._start()
            self._settled()
        for each in [each for each in self._ready[:-1] if not each.living]:
            each.kill()


class LibraryProcess:
    """A process that has imported libraries, or still does so: `wanted` are those to come. notify: called when something has changed."""

    def __init__(
        self, loop: EventLoop, forks: Any, loaded: List[str], wanted: List[str], allow: List[str], notify: Callable[[LibraryProcess], None]
    ) -> None:
        self.wanted = list(wanted)
        self.allow = allow
        self.imported: List[str] = []  # of these
        self.uncompiled: List[str] = []  # files, as of the last import
        self.offered: List[str] = []  # "library:name", as of the last import: what the library loads only when it is asked for it
        self.living: Set[int] = set()  # what it has forked
        self.has_ended = False
        self._before = loaded
        self._loop = loop
        self._notify = notify
        self._splitter = FrameSplitter()
        self._limit: Optional[Timer] = None
        self._socket, theirs = socket.socketpair()
        loop.own(self._socket.fileno())
        self._pid = forks.fork(Fork("libraries"), [theirs.detach()])
        loop.watch(self._socket.fileno(), self._read)
        self.send(Import(wanted, allow))
        self._set_limit()

    @property
    def loaded(self) -> List[str]:
        """All libraries that it has."""
        return self._before + self.imported

    def send(self, message: Any, numbers: Sequence[int] = ()) -> bool:
        """Write a message to it; whether it is still there."""
        frame = encode(message)
        try:
            sent = socket.send_fds(self._socket, [frame], list(numbers))
            self._socket.sendall(frame[sent:])
        except OSError:  # Its end says so.
            return False
        return True

    def fork(self, order: Fork, numbers: List[int]) -> Optional[int]:
        """Have it fork another process; None where it does not."""
        if self.has_ended or not self.send(order, numbers):
            return None
        answer: Optional[Forked] = None
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            while answer is None:
                chunk = self._socket.recv(READ_SIZE)
                if not chunk:
                    return None
                for message in self._messages(chunk):
                    if isinstance(message, Forked):
                        answer = message
                    else:  # Whoever has asked for a process is in the middle of something.
                        self._loop.at(time.monotonic(), partial(self._receive, message))
        except OSError:
            return None
        finally:
            self._socket.settimeout(None)
        self.living.add(answer.pid)
        for number in numbers:
            os.close(number)
        return answer.pid

    def kill(self) -> None:
        """End it; what it has forked goes on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _set_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._clock = RunClock(self._pid)
        self._limit = self._loop.at(time.monotonic() + SECONDS + GRACE, self._look) if self.wanted else None

    def _look(self) -> None:
        """The time for an import is up, unless other programs have taken it."""
        left = SECONDS + GRACE - self._clock()
        if left > 0:
            self._limit = self._loop.at(time.monotonic() + left, self._look)
        else:
            self.kill()

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(READ_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # `fork` has read what the loop was told of.
        except OSError:
            chunk = b""
        for message in self._messages(chunk):
            self._receive(message)
        if not chunk:
            self._ended()

    def _messages(self, chunk: bytes) -> List[Any]:
        return [decode(frame[HEADER.size :]) for frame in self._splitter.feed(chunk)]

    def _receive(self, message: Any) -> None:
        if isinstance(message, Ended):
            self.living.discard(message.pid)
            self._loop.ended(message.pid, message.status)
            self._notify(self)
        elif isinstance(message, ImportEnded):
            self.uncompiled, self.offered = message.uncompiled, message.offered
            self.wanted.remove(message.module)
            self.imported.append(message.module)
            self._set_limit()
            self._notify(self)

    def _ended(self) -> None:
        self.has_ended = True
        self.kill()
        if self._limit is not None:
            self._limit.cancel()
        self._loop.close(self._socket.detach())
        living, self.living = self.living, set()
        for pid in living:  # Nobody will say how these end.
            kill(pid)
            self._loop.ended(pid, signal.SIGKILL)
        self._notify(self)


def _imports(text: str, name: str) -> bool:
    last = re.split("[.:]", name)[-1]  # of `a.b`, which a file of the package a may import as `.b`, or of `a:b`
    return re.search(r"^[ \t]*(?:from|import)\b[^#\n(]*(?:\([^)]*)?\b%s\b" % re.escape(last), text, re.MULTILINE) is not None


# --- within the process ---


def serve(number: int, begin: Begin) -> None:
    """Import and fork as the main process says. Ends the process with it."""
    try:
        system_calls.end_with_parent(signal.SIGKILL)
        connection = socket.socket(fileno=number)
        loop = EventLoop()
        own = _LibraryServer(loop, connection, begin)
        loop.watch(number, own.read)
        loop.run()
    except BaseException:  # Nothing may get past this point: the stack of the process that forked this one is below.
        traceback.print_exc()
    finally:
        os._exit(0)


class _LibraryServer:
    def __init__(self, loop: EventLoop, connection: socket.socket, begin: Begin) -> None:
        self._loop = loop
        self._connection = connection
        self._forks = Forks(loop, begin)
        self._splitter = FrameSplitter()
        self._numbers: List[int] = []  # descriptors that came, for the next process

    def read(self) -> None:
        """Do what the main process says."""
        chunk, numbers, _, _ = socket.recv_fds(self._connection, READ_SIZE, MOST_DESCRIPTORS)
        self._numbers += numbers
        if not chunk:
            self._loop.stopping = True
        for frame in self._splitter.feed(chunk):
            self._handle(decode(frame[HEADER.size :]))

    def _handle(self, message: Any) -> None:
        if isinstance(message, Import):
            import_boundary.confine(message.allow)
            for name in message.modules:
                with file_access.no_file_changed():
                    import_boundary.foreign_code_begins()
                    import_library(name)
                    import_boundary.foreign_code_ended()
                if package_has_patched_others():
                    os._exit(0)  # It is for those who import it. The main process takes it for a library that ends its process.
                self._send(ImportEnded(name, _uncompiled(), _offered(name)))
            gc.freeze()
        elif isinstance(message, OpCacheAdditions):
            op_cache.learn(message.additions)
        elif isinstance(message, Prepare):
            for file in message.files:
                PREPARED.prepare(file)
        elif isinstance(message, Fork):
            numbers, self._numbers = self._numbers, []
            pid = self._forks.fork(message, numbers)
            self._loop.when_ended(pid, lambda status: self._send(Ended(pid, status)))
            self._send(Forked(pid))

    def _send(self, message: Any) -> None:
        try:
            self._connection.sendall(encode(message))
        except OSError:
            self._loop.stopping = True


def import_library(name: str) -> None:
    """Import a library in this process, or of "library:name" what the library then loads. One that fails is left to the run, which
    reports it.
    """
    library, _, part = name.partition(":")
    if name in sys.modules or not is_library(library):
        return
    previous = signal.getsignal(signal.SIGALRM)
    limit_time(SECONDS)
    try:
        imported = importlib.import_module(library)
        if part:
            getattr(imported, part)
    except (Exception, DeadlineReached, SystemExit):
        for part in [part for part in sys.modules if part == name or part.startswith(name + ".")]:
            del sys.modules[part]
    finally:
        no_time_limit()
        signal.signal(signal.SIGALRM, previous)


def is_library(name: str) -> bool:
    """True if an absolute import finds an installed package, or a module of one: code of the workspace changes, and is never kept."""
    name = outermost(name)  # To find a module of a package, Python would import the package.
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return is_installed(getattr(spec, "origin", None) or "") or name in getattr(sys, "stdlib_module_names", ())


def outermost(name: str) -> str:
    """The outermost package of a module, or of "library:name"."""
    return re.split("[.:]", name)[0]


def is_installed(file: str) -> bool:
    """True if a file is one of an installed package."""
    return "site-packages" in file or "dist-packages" in file


def compile_files(files: List[str]) -> None:
    """Compile files of installed packages; nothing of them is executed. Ends the process."""
    try:
        system_calls.end_with_parent(signal.SIGKILL)
        os.nice(COMPILING_NICENESS)
        for file in filter(is_installed, files):
            compileall.compile_file(file, quiet=2)
    finally:
        os._exit(0)


def _offered(name: str) -> List[str]:
    """ "library:name" for each name that a library loads something for when it is asked for it, as transformers does."""
    library = sys.modules.get(name)
    if library is None or not (hasattr(type(library), "__getattr__") or "__getattr__" in vars(library)):
        return []
    try:
        return ["%s:%s" % (name, each) for each in dir(library) if each not in vars(library)]
    except Exception:  # `__dir__` is the library's own.
        return []


def _uncompiled() -> List[str]:
    """Files of packages that this process has had to compile."""
    if sys.dont_write_bytecode:
        return []
    specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
    found = [(spec.origin, spec.cached) for spec in specs if isinstance(spec, ModuleSpec) and spec.cached and spec.origin]
    return [file for file, cached in found if file.endswith(".py") and is_installed(file) and not os.path.exists(cached)]
