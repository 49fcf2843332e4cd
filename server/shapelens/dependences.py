"""The dependences that a real run of a model shows (`Run.deep`): stdlib dataclasses that server and worker share.

Spans are those of traces.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional

from .traces import FileSpan

DEEP_TIMES = 6  # as long as a run may take usually, a model takes that is run for real with one part of its input after the other changed
MOST_PARAMETERS = 200_000_000  # of a model that is run for real
MOST_BYTES = 1 << 30  # of its parameters and buffers

INSIDE = "this result"  # as an output: what comes out is no number, and tells nothing
FUTURE_LEAK, IGNORED_INPUT, BATCH_MIX = "future-leak", "ignored-input", "batch-mix"


@dataclass
class DeepRequest:
    """Run the one example on the CPU, with real numbers, and say what depends on what."""

    dims: Dict[str, int] = field(default_factory=dict)  # of the example, by name: sizes that may be others
    certain: bool = False  # whether somebody gave the example, or the project makes the call


@dataclass
class CausalClaim:
    """Something in the code that says that a model sees nothing that comes later."""

    kind: str  # "mask" | "is_causal" | "name" | "shift" | "generate"
    text: str  # "GPT.mask", "is_causal=True", "CausalSelfAttention", "x[:, :-1] and x[:, 1:]"
    span: Optional[FileSpan] = None


@dataclass
class Dependence:
    """Something that depends on what it ought not to depend on, or does not depend on what it was given."""

    code: str
    model: str  # the class that was called
    input: str  # the parameter of its forward
    output: str = ""  # "logits", "the output"
    place: int = 0  # in the input, counted from 0, that was changed
    length: int = 0  # of the input's dim
    changed: List[int] = field(default_factory=list)  # places of the output that changed with it, and ought not to
    reads: bool = False  # of an ignored input: whether an operation reads it
    trail: List[FileSpan] = field(default_factory=list)  # the first operation whose result tells it, with its callers, outermost first
    claim: Optional[CausalClaim] = None
    definition: Optional[FileSpan] = None  # the line of the `forward`


@dataclass
class DeepReport:
    """The results of the real run of one example."""

    dependences: List[Dependence] = field(default_factory=list)
    skipped: str = ""  # why nothing can be said
    runs: int = 0  # calls of the model
    seconds: float = 0.0
