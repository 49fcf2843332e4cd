"""Refuses what user code may not do while it runs: use the network, write outside its scratch folder, start programs, send signals.

This is an audit hook (`sys.addaudithook`): a guard against accidents, not a boundary against an attacker, which is why nothing runs in an
untrusted workspace.
"""

from __future__ import annotations

import tempfile
from sys import addaudithook
from typing import Any, Optional, Set, Tuple

from .allowed_acts import allowed
from .originals import os
from .scratch_folder import scratch_of


class _HookState:
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
# By event: where its arguments have the paths that are changed, and the descriptors of folders that these start from.
CHANGES = {
    "os.remove": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.rmdir": ((0, 1),), "os.mkdir": ((0, 2),), "os.link": ((1, 3),),
    "os.symlink": ((1, 2),), "os.truncate": ((0, None),), "os.chmod": ((0, 2),), "os.chown": ((0, 3),), "os.utime": ((0, 3),),
    "shutil.rmtree": ((0, 1),), "shutil.move": ((0, None), (1, None)), "shutil.copyfile": ((1, None),),
}  # fmt: skip
OF_PROCESSES = {"mem", "environ", "maps", "smaps", "cmdline", "auxv", "stack", "pagemap"}
_HOME = os.path.expanduser("~")
# Where programs keep keys and passwords, in the home folder.
_KEYS = tuple(
    os.path.join(_HOME, *name.split("/"))
    for name in (
        ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc",
        ".pgpass", ".my.cnf", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/hub", ".local/share/keyrings",
        ".huggingface/token", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle", ".password-store", ".mozilla",
        ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history", ".python_history",
    )
)  # fmt: skip
_PLACES_BEGIN = ("/proc/", _HOME)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def forbid() -> None:
    """Put up the guard of this process: an audit hook cannot be taken away. User code gets PermissionError for what it may not do."""
    if _HookState.scratch != scratch_of(os.getpid()):
        _HookState.trusts = True
        _HookState.scratch = scratch_of(os.getpid())
        os.makedirs(_HookState.scratch, exist_ok=True)
        _HookState.real_scratch = os.path.realpath(_HookState.scratch) + os.sep
        tempfile.tempdir = _HookState.scratch
        if not _HookState.is_hooked:
            _HookState.is_hooked = True
            addaudithook(_audit)
    _HookState.trusts = False


def trust() -> None:
    """Let down the guard until `forbid` is called again: from here on our own code runs."""
    _HookState.trusts = True


def _audit(event: str, args: Tuple[Any, ...]) -> None:
    if _HookState.trusts:
        return
    if event == "open":
        path, _, flags = args
        if not isinstance(path, (str, bytes)):
            return
        if not (isinstance(flags, int) and flags & WRITES):
            if _holds_secrets(os.fsdecode(path)):
                raise FileNotFoundError("ShapeLens: keys and other processes are not read while a model is looked at")
            opened.add(os.fsdecode(path))
        elif not _is_writable(path):
            raise PermissionError("ShapeLens: files are not written while a model is looked at (%s)" % os.fsdecode(path))
    elif event in CHANGES:
        for index, start in CHANGES[event]:
            path = args[index]
            if isinstance(path, (str, bytes)) and not _is_writable(_from_folder(path, args, start), strictly=True):
                raise PermissionError("ShapeLens: %s is not allowed while a model is looked at" % event)
    elif event in NETWORK and not allowed().network:
        raise PermissionError("ShapeLens: the network is not available while a model is looked at")
    elif event in PROGRAMS and not allowed().processes:
        raise PermissionError("ShapeLens: no program is started while a model is looked at (%s)" % event)
    elif event in SIGNALS and args and args[0] != os.getpid() and not allowed().processes:
        raise PermissionError("ShapeLens: no signal is sent to other processes while a model is looked at")


def _holds_secrets(path: str) -> bool:
    """True if a path is one of the well-known places of keys, or belongs to another process."""
    if not (path.startswith(_PLACES_BEGIN) or ".." in path or not os.path.isabs(path)):
        return False
    full = os.path.abspath(path)
    if full.startswith("/proc/"):
        parts = full.split("/")
        return parts[2].isdigit() and parts[2] != str(os.getpid()) and parts[-1] in OF_PROCESSES
    return full.startswith(_KEYS)


def _from_folder(path: Any, args: Tuple[Any, ...], start: Optional[int]) -> Any:
    """A path that starts from an open folder, as `shutil.rmtree` gives it, as one that says so itself."""
    number = args[start] if start is not None and start < len(args) else None
    if not isinstance(number, int) or number < 0:
        return path
    try:
        return os.path.join(os.readlink("/proc/self/fd/%d" % number), os.fsdecode(path))
    except OSError:  # A system without such names: it stays a relative path.
        return path


def _is_writable(path: Any, strictly: bool = False) -> bool:
    """True if a path lies in the scratch folder or in one that the user allows, or is that folder.

    strictly: the scratch folder itself does not count, as it has to stay.
    """
    text = os.fsdecode(path)
    if text in ("/dev/null", "nul", "NUL"):
        return True
    full = os.path.realpath(text)
    if (full if strictly else full + os.sep).startswith(_HookState.real_scratch):
        return True
    return any((full + os.sep).startswith(os.path.join(folder, "")) for folder in allowed().folders)
