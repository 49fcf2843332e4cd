"""Attacks and accidents that are no fixtures, as their texts are too large, or what they do is: each with what has to be said of it,
by kind.

`STAYS` stands below each of them. Whatever is above, its hints are shown, unless Python cannot read the text at all.
"""

from __future__ import annotations

from dataclasses import dataclass

STAYS = """\
from torch import nn


# shapelens: Stays()(f32[B:2, 8])
class Stays(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 6)

    def forward(self, x):
        y = self.fc(x)
        return y
"""
IN_FORWARD = """\
import ctypes, os, re, shutil, signal, socket, sqlite3, subprocess, sys, threading
import numpy, torch
from torch import nn

C = ctypes.CDLL(None, use_errno=True)


# shapelens: Attacks()(f32[B:2, 8])
class Attacks(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = self.fc(x)
        {}
        return y


"""
AT_LOADING = """\
import os, sys, threading
import torch


{}


"""


ENDLESS = """\
class Endless:
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""


@dataclass(frozen=True)
class Text:
    """A text, what is said of it, and whether there is anything to show below it."""

    text: str
    codes: frozenset[str]  # of the findings; {""}: nothing has to be said
    stays: bool = True
    attacked: int = 0  # hints that the attacked class has at least, of what ran before the attack


def _forward(*lines: str, codes: str = "") -> Text:
    return Text(IN_FORWARD.format("\n        ".join(lines)) + STAYS, frozenset(codes.split(" ")), attacked=3)


def _loading(text: str, codes: str = "") -> Text:
    return Text(AT_LOADING.format(text) + STAYS, frozenset(codes.split(" ")))


def _whole(text: str, codes: str = "") -> Text:
    return Text(text, frozenset(codes.split(" ")), stays=False)


NEVER_END = {
    "an endless loop": _forward("while True: pass", codes="deadline"),
    "an endless loop that nothing ends": _forward(
        "while True:",
        "    try:",
        "        while True: pass",
        "    except BaseException: pass",
        codes="deadline",
    ),
    "an endless loop in C": _forward("sum(iter(int, 1))", codes="deadline"),
    "an endless pattern": _forward("re.match('(a+)+$', 'a' * 64 + 'b')", codes="deadline"),
}
USE_UP = {
    "ten million operations": _forward("for _ in range(10**7): y = y + 1", codes="deadline"),
    "memory bit by bit": _forward("kept = []", "while True: kept.append(bytearray(1 << 24))", codes="exception memory deadline"),
    "a thread that spins": _forward("threading.Thread(target=lambda: sum(iter(int, 1)), daemon=True).start()", codes=" deadline"),
}
END = {
    "recursion without end": _forward("return self.forward(x)", codes="exception"),
    "memory at once": _forward("b = bytearray(1 << 45)", codes="exception memory"),
    "a flood of output": _forward("print('x' * 10**8)", codes=" deadline"),
    "a hundred threads that wait": _forward("[threading.Thread(target=threading.Event().wait).start() for _ in range(100)]"),
    "ends by sys.exit": _forward("sys.exit(3)", codes="exit exception"),
    "ends by C": _forward("C._exit(3)", codes="exit crash"),
    "aborts in C": _forward("C.abort()", codes="exit crash"),
    "reads where nothing is": _forward("ctypes.string_at(8)", codes="exit crash"),
    "interrupts": _forward("raise KeyboardInterrupt", codes="exit"),
}
REACH_OUT = {
    "forks": _forward("os.fork()", codes=" unavailable"),
    "forks in C, and leaves": _forward("if C.fork() == 0:", "    C.setsid()", "    while True: pass"),
    "starts a program": _forward("subprocess.run(['touch', 'left.txt'])", codes=" unavailable"),
    "starts a program by C": _forward("C.system(b'touch left.txt')"),
    "writes beside the file": _forward("open(os.path.join(os.path.dirname(__file__), 'left.txt'), 'w')", codes=" unavailable"),
    "writes beside the file, in C": _forward("C.creat(os.path.join(os.path.dirname(__file__), 'left.txt').encode(), 0o600)"),
    "writes by numpy": _forward("numpy.save(os.path.join(os.path.dirname(__file__), 'left'), numpy.zeros(3))", codes=" unavailable"),
    "writes by torch": _forward("torch.save({}, os.path.join(os.path.expanduser('~'), 'left.pt'))", codes=" unavailable exception"),
    "writes by sqlite": _forward(
        "sqlite3.connect(os.path.join(os.path.dirname(__file__), 'left.db')).execute('create table t (a)')", codes=" unavailable exception"
    ),
    "removes itself": _forward("os.remove(__file__)", codes=" unavailable"),
    "removes itself, in C": _forward("C.unlink(__file__.encode())"),
    "removes its folder": _forward("shutil.rmtree(os.path.dirname(__file__))", codes=" unavailable"),
    "empties itself, in C": _forward("C.truncate(__file__.encode(), 0)"),
    "renames itself, in C": _forward("C.rename(__file__.encode(), (__file__ + '.left').encode())"),
    "connects": _forward("socket.create_connection(('127.0.0.1', 9))", codes=" unavailable"),
    "listens": _forward("socket.socket().listen()", codes=" unavailable"),
    "kills its parent": _forward("os.kill(os.getppid(), signal.SIGKILL)", codes=" unavailable"),
    "kills its parent, in C": _forward("C.kill(os.getppid(), 9)"),
    "attaches to its parent": _forward("C.ptrace(16, os.getppid(), None, None)"),
    "reads its parent's memory": _forward("open(f'/proc/{os.getppid()}/mem', 'rb')", codes=" unavailable missing-file"),
    "closes all descriptors": _forward("os.closerange(0, 4096)"),
    "writes to all descriptors": _forward("for fd in range(3, 64):", "    C.write(fd, b'garbage', 7)"),
}
LOADING = {
    "a class that never ends": _loading("class Endless:\n    while True:\n        pass", "definition"),
    "a class that ends the process": _loading("class Ends:\n    os._exit(3)", "definition"),
    "a class without end that nothing ends": _loading(ENDLESS, "definition"),
    "a default that never ends": _loading("def f(x=sum(iter(int, 1))):\n    return x", "definition"),
    "a metaclass that raises": _loading(
        "class Meta(type):\n    def __new__(cls, *args):\n        raise SystemExit(3)\n\n\nclass Made(metaclass=Meta):\n    pass",
        "definition",
    ),
    "a decorator that clears the modules": _loading("@lambda f: sys.modules.clear() or f\ndef f():\n    pass"),
    "a thread that spins while loading": _loading(
        "class Spins:\n    threading.Thread(target=lambda: sum(iter(int, 1)), daemon=True).start()", " definition"
    ),
    "ends as a program": _loading("print('so far')\nsys.exit(3)"),
    "never ends as a program": _loading("n = 0\nwhile True:\n    n += 1", " deadline"),
    "imports itself": _loading("import imports_itself"),
    "imports what is not there": _loading("import not_there_at_all", "missing-import"),
}
WHOLE = {
    "many lines": Text("x = 1\n" * 30_000 + STAYS, frozenset([""])),
    "a long line": Text("x = '" + "a" * (1 << 20) + "'\n" + STAYS, frozenset([""])),
    "mixed line ends": Text("x = 1\r\ny = 2\rz = 3\n\r\n" + STAYS, frozenset([""])),
    "only carriage returns": Text(STAYS.replace("\n", "\r"), frozenset([""])),
    "a byte order mark": Text("\ufeff" + STAYS, frozenset([""])),
    "a zero byte": _whole("x = 1\0\n" + STAYS, "syntax"),
    "a lone surrogate": Text("x = '\ud800'\n" + STAYS, frozenset(["", "syntax"]), stays=False),
    "brackets": _whole("x = " + "[" * 50_000 + "]" * 50_000 + "\n" + STAYS, "syntax"),
    "minuses": _whole("x = " + "-" * 100_000 + "1\n" + STAYS, "syntax"),
    "a class nested a thousand times": _whole("".join(" " * n + f"class C{n}:\n" for n in range(1000)) + " " * 1000 + "pass\n", "syntax"),
    "a mistake of syntax": _whole("import torch\n\n\ndef f(:\n    pass\n\n\n" + STAYS, "syntax"),
    "nothing": _whole(""),
    "binary": _whole("".join(chr(n % 256) for n in range(5000)), "syntax"),
}
TEXTS = {
    "never end": NEVER_END,
    "use up what there is": USE_UP,
    "end": END,
    "reach out": REACH_OUT,
    "while loading": LOADING,
    "whole texts": WHOLE,
}
