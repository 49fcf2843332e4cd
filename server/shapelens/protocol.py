"""The messages between the server and a worker: stdlib dataclasses, framed as length-prefixed JSON.

Both sides import this file, the plain.py that it needs, and notebooks.py; nothing else of ours is shared. They must run on Python 3.9, as
the worker does.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON: `{"type": <class name>, ...fields}`. In a `Traced`, each span and
value is written once, in lists by class under "shared"; elsewhere stands its place there. They are to be read only.
The first frame that a worker sends is `Hello`; a server that reads another `version` there stops the worker.

Spans are in the terms of `ast`: lines are 1-based, columns are 0-based UTF-8 bytes of the line.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from .plain import Shared, build, build_tables, plain

VERSION = 1
HEADER = struct.Struct(">I")
LONGEST_LOAD = 60.0  # seconds that it may take to load what a run imports, where that happens ahead of it: its deadline does not begin yet
LARGEST_FRAME = 256 * 1024 * 1024


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


# --- parts of messages ---


@dataclass(frozen=True)
class Span:
    """A place in a file: 1-based lines, 0-based UTF-8 byte columns, the end exclusive (as `ast` has them)."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass
class Value:
    """What one expression held, once.

    kind       fields that are set
    tensor     shape, dtype, device, stride, requires_grad; named once the probes have run
    sequence   items (tuple or list; type_name says which); keys: the names of a named tuple's fields
    mapping    keys and items, side by side: a dict, a dataclass, or the tensors among an object's attributes
    scalar     text (an int, float, bool or None written out); type_name "size" where it is an int that follows from shapes, with its
               formula in `named` (one string) once the probes have run
    layer      layer: an index into Trace.layers
    other      type_name
    """

    kind: str
    type_name: str = ""
    shape: Optional[List[Optional[int]]] = None  # None inside: a size that cannot be known without data
    named: Optional[List[str]] = None  # one string a dim: "B", "B*T", "H/4", "28", "?"
    dtype: str = ""  # "float32"
    device: str = ""
    stride: Optional[List[int]] = None
    requires_grad: bool = False
    stand_in: bool = False  # takes the place of the result of a failed operation
    keys: Optional[List[str]] = None
    items: Optional[List[Value]] = None
    text: str = ""
    layer: Optional[int] = None


@dataclass
class Observation:
    """The distinct values that an anchor held during one example, in the order in which they came."""

    span: Span
    kind: str  # "parameter" | "assign" | "return" | "expression"
    name: str  # the variable, attribute or subscript, "return" or "yield", or "" for an expression
    function: str  # qualified name of the function that ran: "Net.forward"
    example: int  # index into Trace.examples
    values: List[Value]
    count: int  # how many times the anchor was reached
    statement: Optional[Span] = None  # the statement that an assigned name belongs to


@dataclass
class ParameterSeen:
    """A parameter or buffer of a layer, under its own name (`weight_ih_l0`)."""

    name: str
    shape: List[int]
    dtype: str
    bytes: int
    trainable: bool
    buffer: bool = False


@dataclass
class LayerCall:
    """One distinct pair of input and output of a layer."""

    inputs: List[Value]
    output: Value
    count: int = 1


@dataclass
class LayerSeen:
    """A module object: where it was constructed, what it holds, and how it was called."""

    index: int
    class_name: str  # "Conv2d"
    qualified_name: str  # "torch.nn.modules.conv.Conv2d"
    path: str  # from the model of the example: "features.0"; "" for the model itself
    description: str  # its repr, one line
    span: Optional[Span]  # the constructor call in user code; None where no user code made it
    example: int
    parameters: List[ParameterSeen] = field(default_factory=list)
    parameter_count: int = 0  # its own and its children's, shared ones once
    bytes: int = 0  # of parameters and buffers
    calls: List[LayerCall] = field(default_factory=list)
    call_span: Optional[Span] = None  # where user code called it first


@dataclass
class Origin:
    """One step of where a size came from: the operation that set dim `dim` of a tensor."""

    operation: str  # "flatten", "conv2d", "Linear"
    span: Optional[Span]  # the user expression that ran it
    shape: List[Optional[int]]  # of its first tensor argument
    result: List[Optional[int]]
    layer: Optional[int] = None  # index into Trace.layers, where a layer did it
    argument: str = ""  # the layer's argument that says the size: "out_channels"


@dataclass
class Suspect(Origin):
    """An operation on the way to a mismatch, which may be the one that is wrong: its result went into what failed."""

    behind: bool = False  # its result went through a layer of torch's before it came to what failed


@dataclass
class Mismatch:
    """A failed operation, as the worker saw it; `analysis` turns it into a finding."""

    code: str  # "linear-in-features", "matmul", ..., "exception" where nothing better is known
    message: str  # eager's message, one line
    exception: str  # "RuntimeError"
    span: Optional[Span]  # the innermost expression of user code that raised it
    trail: List[Span]  # user frames, outermost first, the last one is `span`
    example: int
    layer: Optional[int] = None  # index into Trace.layers
    argument: str = ""  # of the layer's constructor: "in_features"
    got: Optional[int] = None  # the size that arrived
    need: Optional[int] = None  # the size that `argument` says
    dim: Optional[int] = None  # of the input, counted from the front
    inputs: List[Value] = field(default_factory=list)  # what the operation was given
    origins: List[Origin] = field(default_factory=list)  # where `got` came from, nearest first
    went_on: bool = False  # a stand-in took the place of the result
    operation: str = ""  # the torch function that failed: "view"
    inside: List[int] = field(default_factory=list, compare=False)  # of Trace.layers: the user's modules that were running, innermost first
    suspects: List[Suspect] = field(default_factory=list, compare=False)  # what led to the failed operation's arguments, nearest first


@dataclass
class Remark:
    """An operation that ran, but perhaps does not do what its author meant; `analysis` decides whether to say so."""

    code: str  # of the lint: "outer-product"
    operation: str  # the torch function: "sub"
    span: Optional[Span]  # the innermost expression of user code that ran it
    example: int
    inputs: List[Value] = field(default_factory=list)  # the tensors that it is about
    dim: Optional[int] = None  # of the first input; of an outer product, which input has the dim of size 1
    layer: Optional[int] = None  # index into Trace.layers, where a layer of torch's ran it
    origins: List[Origin] = field(default_factory=list)  # where the size of `dim` came from


@dataclass
class Alternative:
    """Another example of a class, that ran to its end too."""

    expression: str
    evidence: str
    where: str = ""


@dataclass
class ExampleRun:
    """What became of one example."""

    target: str  # the class that it belongs to
    expression: str
    dims: Dict[str, int] = field(default_factory=dict)  # {"B": 1024}
    error: Optional[str] = None  # None: it ran to its end
    error_kind: str = ""  # "" | "syntax" | "definitions" | "example" | "mismatch" | "exception" | "deadline" | "memory" | "exit" | "crash"
    error_span: Optional[Span] = None
    parameter_count: Optional[int] = None  # of the model that it called
    bytes: Optional[int] = None
    seconds: float = 0.0
    file: str = ""  # the file that asks for it, where that is not the trace's; a worker leaves it empty
    evidence: str = ""  # of one that was found: "annotation" | "usage" | "factory" | "inferred"
    where: str = ""  # what follows "from": "line 88", "train.py:40", "test()"
    doubtful: bool = False  # another choice of input or argument might avoid its mismatches, or none was found that fits
    tried: int = 0  # how many ways to build and call the model were tried
    others: List[Alternative] = field(default_factory=list)  # that run as well, the more credible ones first
    reached: Optional[List[str]] = None  # the document's functions that ran, by qualified name without "<locals>"; None: not known


@dataclass
class Note:
    """Something worth knowing that is not a mismatch: a missing import that became a stand-in, say."""

    code: str  # "missing-import"
    message: str
    span: Optional[Span]


@dataclass
class Trace:
    """All observations and mismatches of a run."""

    file: str
    examples: List[ExampleRun] = field(default_factory=list)
    observations: List[Observation] = field(default_factory=list)
    layers: List[LayerSeen] = field(default_factory=list)
    mismatches: List[Mismatch] = field(default_factory=list)
    notes: List[Note] = field(default_factory=list)
    remarks: List[Remark] = field(default_factory=list)  # come with the last trace of a run
    files: List[str] = field(default_factory=list)  # the user's other files that were imported, by absolute path
    called: Optional[List[str]] = None  # the document's functions that its definitions called, or that cannot be watched; None: not known


# --- server to worker ---


@dataclass
class ExampleRequest:
    """One example to run: a Python expression in the directive's syntax."""

    target: str
    expression: str


@dataclass
class Known:
    """The example that was found for a class before. It stays as long as it runs to its end."""

    target: str
    expression: str
    evidence: str = ""
    where: str = ""
    chosen: bool = False  # by the user: it stays even if it fails
    proven: bool = False  # it ran to its end before: where it fails now, the text since then is to blame unless other sizes fit


@dataclass
class Search:
    """Find examples for the classes of the document that those of the run do not reach."""

    known: List[Known] = field(default_factory=list)
    users: List[str] = field(default_factory=list)  # files that import the document, by absolute path: how they use its classes is evidence
    classes: List[str] = field(default_factory=list)  # only these, by qualified name; none: all that the examples do not reach
    seconds: float = 3.0  # that it may take, at most


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
    named: bool = True  # probe for named dims after the run
    brief: bool = False  # but only where something is to be said of the code
    search: Optional[Search] = None  # None: only `examples` are run

    @property
    def longest(self) -> float:
        """Seconds that the run may take: what the search takes is not the model's, and what was found late still has its deadline."""
        return self.deadline + (0.0 if self.search is None else self.search.seconds)


@dataclass
class Cancel:
    """Stop a run; it is answered by `Finished` with outcome "cancelled"."""

    run_id: int


@dataclass
class Preload:
    """Import these modules ahead of the next run, so that its child has them already."""

    modules: List[str]


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


@dataclass
class Ready:
    """torch and its meta kernels are loaded."""

    seconds: float


@dataclass
class Loading:
    """What a run imports is loaded ahead of it, for LONGEST_LOAD seconds at most: the run's own time does not begin yet."""

    run_id: int


@dataclass
class Output:
    """What user code printed."""

    run_id: int
    text: str


@dataclass
class Traced:
    """The trace so far. stage: "partial" (still running), "run" (complete, findings final), "named" (dims named as well)."""

    run_id: int
    stage: str
    trace: Trace


@dataclass
class Finished:
    """The last message of a run. outcome: "ok" | "cancelled" | "deadline" | "memory" | "exit" | "crash"."""

    run_id: int
    outcome: str
    detail: str = ""  # one line for the user
    seconds: float = 0.0
    read: List[str] = field(default_factory=list)  # by absolute path, files that are no library's: the run depends on them


SHARED = {Traced: (Span, Value)}  # by class of message
MESSAGES: Dict[str, Any] = {cls.__name__: cls for cls in (Run, Cancel, Preload, Stop, Hello, Ready, Loading, Output, Traced, Finished)}


# --- frames ---


def encode(message: Any) -> bytes:
    """A message as one frame. Fields that equal their default are left out."""
    shared = Shared(SHARED[type(message)]) if type(message) in SHARED else None
    fields = {"type": type(message).__name__, **plain(message, shared)}
    if shared is not None:
        fields["shared"] = {cls.__name__: table for cls, table in shared.tables.items()}
    body = json.dumps(fields, separators=(",", ":")).encode()
    return HEADER.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The message in a frame's body (without its length). Raises ProtocolError."""
    try:
        fields = json.loads(body)
        cls = MESSAGES[fields.pop("type")]
        shared = build_tables(SHARED[cls], fields.pop("shared", {})) if cls in SHARED else None
        return build(cls, fields, shared)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ProtocolError("not a message: %s (%r)" % (error, body[:80])) from error
