"""The messages between the server and a worker: stdlib dataclasses, framed as length-prefixed JSON.

Both sides import this file, what it needs (dataclass_json.py, traces.py, profiles.py, dependences.py), notebooks.py, python_sources.py and
regular_files.py; nothing else of ours. They must run on Python 3.9, as the worker does.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON: `{"type": <class name>, ...fields}`. In a `Traced` or
`Profiled`, each span and value is written once, in lists by class under "shared"; elsewhere stands its place there. These are
to be read only.
The first frame that a worker sends is `Hello`; a server that reads another `version` there stops the worker.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from json import dumps, encoder, loads
from typing import Any, Dict, List, Optional

from .dataclass_json import SharedObjects, build, build_tables, plain
from .dependences import CausalClaim, DeepReport, DeepRequest, Dependence
from .profiles import ModelProfile, ProfileRequest
from .timeouts import TIMEOUTS
from .traces import (
    Alternative,
    ExampleRun,
    FileSpan,
    KeyChange,
    LayerCall,
    LayerSeen,
    Mismatch,
    Note,
    Observation,
    Origin,
    ParameterSeen,
    Remark,
    StateSeen,
    Suspect,
    Trace,
    Value,
)

__all__ = [
    "HEADER",
    "LARGEST_FRAME",
    "LONGEST_LOAD",
    "MESSAGES",
    "SHARED",
    "VERSION",
    "Alternative",
    "Cancel",
    "CausalClaim",
    "DeepReport",
    "DeepRequest",
    "Deepened",
    "Dependence",
    "ExampleRequest",
    "ExampleRun",
    "FileSpan",
    "Finished",
    "Hello",
    "KeyChange",
    "Known",
    "LayerCall",
    "LayerSeen",
    "LeftOutStatement",
    "Loading",
    "Mismatch",
    "ModelProfile",
    "Note",
    "Observation",
    "Origin",
    "Output",
    "ParameterSeen",
    "Preload",
    "ProfileRequest",
    "Profiled",
    "ProtocolError",
    "Ready",
    "Remark",
    "Replace",
    "Run",
    "Search",
    "StateSeen",
    "Stop",
    "Suspect",
    "Trace",
    "Traced",
    "Value",
    "decode",
    "encode",
]

VERSION = 1
HEADER = struct.Struct(">I")
PROGRAM_SECONDS = TIMEOUTS.program
PATIENT_SECONDS = TIMEOUTS.patient
LONGEST_LOAD = 60.0  # seconds that it may take to load what a run imports, where that happens ahead of it: its deadline does not begin yet
MOST_STARVED = 10  # times its seconds that something with a limit of time may take, where other processes get most of the machine's time
LARGEST_FRAME = 256 * 1024 * 1024


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


# --- server to worker ---


@dataclass
class ExampleRequest:
    """One example to run: a Python expression in the directive's syntax."""

    target: str
    expression: str
    found: bool = False  # nobody gave it


@dataclass
class Known:
    """The example that was found for a class before. It stays as long as it runs to its end."""

    target: str
    expression: str
    evidence: str = ""
    where: str = ""
    chosen: bool = False  # by the user: it stays even if it fails
    proven: bool = False  # it ran to its end before: where it fails now, the text since then is to blame unless other sizes fit
    call: Optional[FileSpan] = (
        None  # the call in the project that says all of it: it stays even if it fails, as one that the user gave does
    )
    former: Optional[Alternative] = None  # the one that ran before this one was found, and failed since: it comes back when it runs again


@dataclass
class Search:
    """Find examples for the classes of the document that those of the run do not reach."""

    known: List[Known] = field(default_factory=list)
    users: List[str] = field(default_factory=list)  # files that import the document, by absolute path: how they use its classes is evidence
    classes: List[str] = field(default_factory=list)  # only these, by qualified name; none: all that the examples do not reach
    seconds: float = TIMEOUTS.search  # that it may take, at most
    later: List[str] = field(default_factory=list)  # classes that are searched for after all others: something shows them already


@dataclass
class LeftOutStatement:
    """A statement of the document, by its first line, that ends the process or itself never ends, and what is said of it."""

    line: int
    message: str


@dataclass
class Run:
    """Run these examples against this text. Answered by `Traced` (any number) and one `Finished`."""

    run_id: int
    file: str  # absolute path; it need not exist
    text: str
    root: str  # the workspace folder, "" where there is none
    examples: List[ExampleRequest]
    overlays: Dict[str, str] = field(default_factory=dict)  # unsaved text of other open documents, by absolute path
    observe: List[str] = field(default_factory=list)  # other files whose values are to be shown, by absolute path
    deadline: float = 10.0  # seconds, without those of the search
    memory_limit: int = 4 << 30  # bytes that the run may add
    allow: List[str] = field(default_factory=list)  # what its code may do besides: "network", "processes", write below a folder
    named: bool = True  # probe for named dims after the run
    brief: bool = False  # but only where something is to be said of the code
    search: Optional[Search] = None  # None: only `examples` are run
    findings_first: bool = False  # traces of stages "first" and "findings" are wanted as soon as it is known what is wrong
    known: List[ExampleRequest] = field(default_factory=list)  # as they were run: of classes, whose methods are called so, and of functions
    followed_for: str = ""  # the file which the document imports, and for what it gives that file it is followed; "" for its own sake
    program: float = 0.0  # seconds for which the document is followed as a program after its examples; 0: not at all
    line_by_line: bool = False  # word is wanted of each statement and line before it is executed, as one of them ends the process
    left_out: List[LeftOutStatement] = field(default_factory=list)  # statements that are not executed while the document is loaded
    background: bool = False  # nobody waits for it: what is ready for the next run stays ready
    typed: bool = True  # the next text is likely to be much like this one: the run is rehearsed while that is waited for
    profile: Optional[ProfileRequest] = None  # only the model of the one example is wanted, as a whole: answered by `Profiled`
    deep: Optional[DeepRequest] = None  # only what depends on what in the one example, which is run for real: answered by `Deepened`

    @property
    def longest(self) -> float:
        """Seconds that the run may take: what the search takes is not the model's, and what was found late still has its deadline."""
        return self.deadline + (0.0 if self.search is None else self.search.seconds) + self.program

    @property
    def patience(self) -> float:
        """The factor by which any search may exceed its usual time once the program was followed."""
        return max(self.program / PROGRAM_SECONDS, 1.0)


@dataclass
class Cancel:
    """Stop a run; it is answered by `Finished` with outcome "cancelled"."""

    run_id: int


@dataclass
class Preload:
    """Import these modules ahead of the next run, so that its child has them already. allow: as in `Run`."""

    modules: List[str]
    allow: List[str] = field(default_factory=list)


@dataclass
class Stop:
    """End the worker and its children."""


# --- worker to server ---


@dataclass
class Hello:
    """The first message: who answers."""

    version: int
    python: str  # "3.11.7"
    executable: str
    pid: int
    fork: bool  # runs happen in forked children
    torch: Optional[str]  # its version; None where it cannot be imported
    error: Optional[str] = None  # why torch cannot be imported, one line
    path: List[str] = field(default_factory=list)  # its `sys.path`
    landlock: int = 0  # the version of Landlock that holds its runs; 0: none does
    seccomp: bool = False  # the kernel refuses system calls to its runs


@dataclass
class Ready:
    """torch and its meta kernels are loaded."""

    seconds: float


@dataclass
class Loading:
    """The worker loads a run's imports ahead of it, for LONGEST_LOAD seconds at most: the run's own time does not begin yet."""

    run_id: int


@dataclass
class Executing:
    """A statement of the run's document is executed now, while that is loaded line by line: its first and last line. 0: none is."""

    run_id: int
    line: int
    end_line: int = 0
    is_import: bool = False


@dataclass
class Evaluating:
    """An example of this class of the run's document is evaluated now, or searched for: what ends the process meanwhile is due to it."""

    run_id: int
    target: str  # "": none yet, or none any more; the document is loaded
    number: int = -1  # among the examples of the run; -1: it is searched for


@dataclass
class Replace:
    """The worker is no longer as it began, which further runs would see: it ends, and another one is to take its place."""


@dataclass
class Output:
    """The output of user code."""

    run_id: int
    text: str


@dataclass
class Traced:
    """The trace so far. stage: "partial" (still running), "first" (still running, of what is wrong the first mismatch, and nothing else),
    "findings" (what is wrong, and nothing else), "given" (the examples that were asked for are complete, others are being looked for),
    "run" (complete, findings final), "named" (dims named as well; there may be no "run" before it), "program" (with what
    the program saw; more may follow, with what its functions saw)."""

    run_id: int
    stage: str
    trace: Trace


@dataclass
class Profiled:
    """The model of an example as a whole; the last one of a run takes the place of those before."""

    run_id: int
    profile: ModelProfile


@dataclass
class Deepened:
    """The dependences in the model of an example, from its real run."""

    run_id: int
    report: DeepReport


@dataclass
class Finished:
    """The last message of a run. outcome: "ok" | "cancelled" | "deadline" | "memory" | "exit" | "crash"."""

    run_id: int
    outcome: str
    detail: str = ""  # one line for the user
    seconds: float = 0.0  # of the run's own work, as a WorkClock has them; 0 where the run could not say it
    read: List[str] = field(default_factory=list)  # by absolute path, files that are no library's: the run depends on them
    target: str = ""  # the class whose search ended the run, where that is known
    left_out: int = 0  # statements of the document that were not executed, as one that is ends the process, or never ends
    hurried: bool = False  # following the program was short of time somewhere, and there is more that it may have


WHAT_IS_WRONG = ("first", "findings")  # stages of traces that hold nothing else
SHARED = {Traced: (FileSpan, Value), Profiled: (FileSpan, Value)}  # by class of message
MESSAGES: Dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Run, Cancel, Preload, Stop),
        *(Hello, Ready, Loading, Executing, Evaluating, Replace, Output, Traced, Profiled, Deepened, Finished),
    )
}


# --- frames ---


_MAKE_ENCODER: Any = getattr(encoder, "c_make_encoder", None)
_ENCODE_TEXT = encoder.encode_basestring_ascii


def _json(fields: Dict[str, Any]) -> str:
    """JSON without a space in it, made by C code alone where there is some: code of the user's may have changed `json` and builtins."""
    if _MAKE_ENCODER is None:
        return dumps(fields, separators=(",", ":"))
    parts: Any = _MAKE_ENCODER(None, None, _ENCODE_TEXT, None, ":", ",", False, False, True)(fields, 0)
    return "".join(parts)


def encode(message: Any) -> bytes:
    """A message as one frame. Fields that equal their default are left out."""
    shared = SharedObjects(SHARED[type(message)]) if type(message) in SHARED else None
    fields = {"type": type(message).__name__, **plain(message, shared)}
    if shared is not None:
        fields["shared"] = {cls.__name__: table for cls, table in shared.tables.items()}
    body = _json(fields).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The message in a frame's body (without its length). Raises ProtocolError."""
    try:
        fields = loads(body)
        cls = MESSAGES[fields.pop("type")]
        shared = build_tables(SHARED[cls], fields.pop("shared", {})) if cls in SHARED else None
        return build(cls, fields, shared)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ProtocolError("not a message: %s (%r)" % (error, body[:80])) from error
