"""The record of a run: the parts of a `Traced` message (protocol.py), as stdlib dataclasses that both sides share.

Spans are in the terms of `ast`: lines are 1-based, columns are 0-based UTF-8 bytes of the line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional

PROGRAM = "program"  # the evidence of the one example of a trace that is the document itself


@dataclass(frozen=True)
class FileSpan:
    """A place in a file: 1-based lines, 0-based UTF-8 byte columns, the end exclusive (as `ast` has them)."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass
class Value:
    """A value of one expression, once.

    kind       fields that are set
    tensor     shape, dtype, device, stride, requires_grad; named once the probes have run
    array      of numpy: shape, dtype; named once the probes have run
    sequence   items (tuple or list; type_name says which); keys: the names of a named tuple's fields
    mapping    keys and items, side by side: a dict, a dataclass, or the tensors among an object's attributes
    scalar     text (an int, float, bool or None written out); type_name "size" where it is an int that follows from shapes, with its
               formula in `named` (one string) once the probes have run
    unknown    a tensor, or what holds tensors, of which nothing else is known
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

    span: FileSpan
    kind: str  # "parameter" | "assign" | "return" | "expression"
    name: str  # the variable, attribute or subscript, "return" or "yield", or "" for an expression
    function: str  # qualified name of the function that ran: "Net.forward"
    example: int  # index into Trace.examples
    values: List[Value]
    count: int  # how many times the anchor was reached
    statement: Optional[FileSpan] = None  # the statement that an assigned name belongs to


def outermost(seen: Observation) -> str:
    """The name of the class or function at module level that something was seen in."""
    return seen.function.partition(".")[0]


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
    span: Optional[FileSpan]  # the constructor call in user code; None where no user code made it
    example: int
    parameters: List[ParameterSeen] = field(default_factory=list)
    parameter_count: int = 0  # its own and its children's, shared ones once
    bytes: int = 0  # of parameters and buffers
    calls: List[LayerCall] = field(default_factory=list)
    call_span: Optional[FileSpan] = None  # where user code called it first


@dataclass
class Origin:
    """One step of where a size came from: the operation that set dim `dim` of a tensor."""

    operation: str  # "flatten", "conv2d", "Linear"
    span: Optional[FileSpan]  # the user expression that ran it
    shape: List[Optional[int]]  # of its first tensor argument
    result: List[Optional[int]]
    layer: Optional[int] = None  # index into Trace.layers, where a layer did it
    argument: str = ""  # the layer's argument that says the size: "out_channels"


@dataclass
class Suspect(Origin):
    """An operation on the way to a mismatch, which may be the one that is wrong: its result went into what failed."""

    behind: bool = False  # its result went through a layer of torch's before it came to what failed


@dataclass
class KeyChange:
    """A change of the keys of a state that makes them those of a module."""

    kind: str  # "prefix": what begins with `there`, "part": a word between dots
    there: str  # in the state
    here: str  # in the module
    count: int  # keys that fit then, and did not
    all_there: bool = False  # whether all keys of the state begin with `there`, and none of the module's does
    all_here: bool = False  # the same of the module's keys and `here`


@dataclass
class StateSeen:
    """The argument of `load_state_dict`, beside the module's own state.

    The sizes that differ are the mismatch's origins: the key, `shape` in the state, `result` in the module. Behind each of them, without a
    key, come the modules around the one that has it, inner ones first.
    """

    model: str  # the module's class
    name: str  # of the file that it comes from; "" where that is not known
    kind: str = ""  # "path" | "module": it is no dict at all
    strict: bool = True
    keys: int = 0  # how many it has
    own: int = 0  # how many the module has
    fitting: int = 0  # that both have
    missing: List[str] = field(default_factory=list)  # the first ones of those that the module has alone
    missing_count: int = 0
    unexpected: List[str] = field(default_factory=list)  # the first ones of those that the state has alone
    unexpected_count: int = 0
    sizes: int = 0  # how many sizes differ, once the names are changed
    inside: List[str] = field(default_factory=list)  # the keys that lead to the dict which is meant
    around: List[str] = field(default_factory=list)  # the first keys of the state itself, where there is such a dict
    changes: List[KeyChange] = field(default_factory=list)  # of names, one after the other, that make keys fit
    left_missing: int = 0  # once the names are changed
    left_unexpected: int = 0
    others: List[str] = field(default_factory=list)  # what torch says besides


@dataclass
class Mismatch:
    """A failed operation, as the worker saw it; `analysis` turns it into a finding."""

    code: str  # "linear-in-features", "matmul", ..., "exception" where nothing better is known
    message: str  # eager's message, one line
    exception: str  # "RuntimeError"
    span: Optional[FileSpan]  # the innermost expression of user code that raised it
    trail: List[FileSpan]  # user frames, outermost first, the last one is `span`
    example: int
    layer: Optional[int] = None  # index into Trace.layers
    argument: str = ""  # of the layer's constructor: "in_features"
    got: Optional[int] = None  # the size that arrived
    need: Optional[int] = None  # the size that `argument` says
    dim: Optional[int] = None  # of the input, counted from the front
    inputs: List[Value] = field(default_factory=list)  # what the operation was given
    origins: List[Origin] = field(default_factory=list)  # where `got` came from, nearest first
    operation: str = ""  # the torch function that failed: "view"
    remainder: str = ""  # of a loop over a loader: why its last batch, which fails alone, is smaller: "100 = 3·32 + 4"
    lacks_transpose: bool = False  # it fits once dims are permuted or added, as layers say their sizes: no other size mends it
    state: Optional[StateSeen] = None  # where a state does not fit a module
    of_parameter: bool = field(default=False, compare=False)  # one of the tensors that clash is a parameter, or a view of one
    pinned: Optional[int] = None  # of a layer that took what arrived too, or a normalisation that it went through: what that one says
    guessed: bool = False  # what was guessed of its example may be what is wrong, where the example shows other mismatches that are certain
    inside: List[int] = field(default_factory=list, compare=False)  # of Trace.layers: the user's modules that were running, innermost first
    suspects: List[Suspect] = field(default_factory=list, compare=False)  # what led to the failed operation's arguments, nearest first
    meant: str = ""  # the name that is most like the one that was asked for and is not there
    sure: bool = field(default=False, compare=False)  # an exception that no input and no setting avoids


@dataclass
class Remark:
    """An operation that ran, but perhaps does not do what its author meant; `analysis` decides whether to say so."""

    code: str  # of the lint: "outer-product"
    operation: str  # the torch function: "sub"
    span: Optional[FileSpan]  # the innermost expression of user code that ran it
    example: int
    inputs: List[Value] = field(default_factory=list)  # the tensors that it is about
    dim: Optional[int] = None  # of the first input; of an outer product, which input has the dim of size 1
    layer: Optional[int] = None  # index into Trace.layers, where a layer of torch's ran it
    origins: List[Origin] = field(default_factory=list)  # where the size of `dim` came from
    given: str = ""  # the operation or layer that gave the first input, where that is what is odd: "softmax"
    largest: Optional[int] = None  # number that the second input may hold, where that is what is odd
    axes: List[str] = field(default_factory=list)  # what the dims of the first input are made of: ["B", "T", "64"]
    sized: List[List[int]] = field(default_factory=list)  # the inputs' shapes in the run that told so, whose sizes hardly divide each other


@dataclass
class Alternative:
    """Another example of a class, that ran to its end too."""

    expression: str
    evidence: str
    where: str = ""


@dataclass
class ExampleRun:
    """The result of one example."""

    target: str  # the class that it belongs to
    expression: str
    dims: Dict[str, int] = field(default_factory=dict)  # {"B": 1024}
    error: Optional[str] = None  # None: it ran to its end
    error_kind: str = ""  # "" | "syntax" | "definitions" | "example" | "mismatch" | "exception" | "deadline" | "memory" | "exit" | "crash"
    error_span: Optional[FileSpan] = None
    parameter_count: Optional[int] = None  # of the model that it called
    bytes: Optional[int] = None
    seconds: float = 0.0
    file: str = ""  # the file that asks for it, where that is not the trace's; a worker leaves it empty
    evidence: str = ""  # of one that was found: "annotation" | "usage" | "factory" | "inferred"; "program": the document itself
    where: str = ""  # what follows "from": "line 88", "train.py:40", "test()"
    call: Optional[FileSpan] = None  # the call in the project that says all of it: then what fails under it is wrong in the code
    doubtful: bool = False  # another choice of input or argument might avoid its mismatches, or none was found that fits
    tried: int = 0  # how many ways to build and call the model were tried
    others: List[Alternative] = field(default_factory=list)  # that run as well, the more credible ones first
    reached: Optional[List[str]] = None  # the document's functions that ran, by qualified name without "<locals>"; None: not known


@dataclass
class Note:
    """Something worth knowing that is not a mismatch: a missing import that became a stand-in, say."""

    code: str  # "missing-import"
    message: str
    span: Optional[FileSpan]


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
    held: List[FileSpan] = field(default_factory=list)  # statements of a program that it executed, and in which nothing failed
