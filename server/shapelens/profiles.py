"""The results of a profiling run of a model (`Run.profile`): its modules, the steps of its forward, and the memory of a training step.

Stdlib dataclasses that server and worker share. Spans are those of traces.py. A step is a call of a module, or an operation that user code
applied to tensors. Steps are numbered in the order in which they began, and those inside of a call follow it up to its `end`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional

from .traces import FileSpan, LayerSeen, Mismatch, Value

PROFILE_EVALUATIONS = 6  # of its example that a profile takes at most, named dims and backward counted; each has the deadline of a run


@dataclass
class ProfileRequest:
    """A request for the profile of a run's one example."""

    sizes: Dict[str, int] = field(default_factory=dict)  # other sizes than the example's, by the names of its dims
    device: str = "cuda"  # whose kernels are counted with: "cuda" | "cpu"
    autocast: str = ""  # what the model is called under: "bfloat16" | "float16" | "" for none
    memory_only: bool = False  # only how much memory a training step takes, with these sizes
    loss: str = ""  # what training goes back from, where the model gives one tensor: "cross_entropy"; "" for the sum of what it gives
    checkpointed: bool = False  # whether each repeated block of the model is under `torch.utils.checkpoint`
    checkpoint: str = ""  # only how the model's state goes with this file of weights, by absolute path
    path: str = ""  # in the model, of the module that it is compared with; "" for the model itself


@dataclass
class ProfiledModule:
    """A module of the model, called or not. Its amounts include its children's; what they share counts once."""

    path: str  # from the model: "layers.0.attention"; "" for the model itself
    class_name: str
    qualified_name: str
    description: str  # its repr, one line
    span: Optional[FileSpan]  # the constructor call in user code
    parameter_count: int
    trainable_count: int
    parameter_bytes: int
    buffer_bytes: int
    # Its parts of the training step's `parameter_storages`, `buffer_storages` and `trained_storages`, by index.
    parameters: List[int] = field(default_factory=list)
    buffers: List[int] = field(default_factory=list)
    trained: List[int] = field(default_factory=list)


@dataclass
class Step:
    """A call of a module or an operation, once."""

    kind: str  # "module" | "operation" | "input"
    name: str  # of an operation: the torch function, "cat"; of an input: the parameter's name
    module: Optional[int]  # index into ModelProfile.modules
    parent: Optional[int]  # the call that it happened in: an index into ModelProfile.steps
    end: int  # the index behind the last step inside of it
    span: Optional[FileSpan]  # the expression of user code
    output: Value
    sources: List[int] = field(default_factory=list)  # the steps whose tensors it was given
    flops: int = 0  # of forward, its own: those of steps inside of it are theirs
    backward_flops: int = 0
    mismatch: Optional[int] = None  # index into ModelProfile.mismatches: it failed


@dataclass
class Allocation:
    """One storage that a training step or an inference allocates. Times count the events of the evaluation, from 0."""

    bytes: int
    kind: str  # "input" | "activation" | "gradient"
    step: int  # during which it was made, in backward: whose gradient was computed; -1 where that is not known
    born: int
    died: Optional[int] = None  # None: it is still there at the end


@dataclass
class MemoryProfile:
    """The storages of one evaluation, beside parameters and buffers."""

    allocations: List[Allocation] = field(default_factory=list)
    forward_end: int = 0  # the time at which forward was over
    backward_end: int = 0  # and backward; equal to `forward_end` for an inference
    parameters: List[List[int]] = field(default_factory=list)  # shapes of those that are trained
    parameter_storages: List[int] = field(default_factory=list)  # bytes of each, those that are not trained included
    trained_storages: List[int] = field(default_factory=list)  # bytes of each parameter that is trained
    buffer_storages: List[int] = field(default_factory=list)
    error: str = ""  # why it is not complete, one line


@dataclass
class StatePair:
    """A tensor of a model's state and the one of a file that is loaded into it; either may be missing."""

    name: str  # in the model; in the file where the model has none
    here: Optional[Value]
    there: Optional[Value]
    status: str  # "fits" | "differs" | "missing" | "unexpected" | "own": the model's own code handles the key
    name_there: str = ""  # in the file, where it is another one


@dataclass
class CheckpointSeen:
    """The comparison of a model's state with a file of weights."""

    error: str = ""  # why it is not known, in words that follow the file's name
    inside: List[str] = field(default_factory=list)  # the keys that lead to the state in the file
    pairs: List[StatePair] = field(default_factory=list)  # in the order of the model, then what only the file has
    mismatch: Optional[Mismatch] = None  # what `load_state_dict` says; None where it takes the state
    layers: List[LayerSeen] = field(default_factory=list)  # that the mismatch speaks of


@dataclass
class ModelProfile:
    """The results of a profiling run."""

    dims: Dict[str, int] = field(default_factory=dict)
    modules: List[ProfiledModule] = field(default_factory=list)
    steps: List[Step] = field(default_factory=list)
    mismatches: List[Mismatch] = field(default_factory=list)
    inference: Optional[MemoryProfile] = None
    training: Optional[MemoryProfile] = None
    checkpoint: Optional[CheckpointSeen] = None
    checkpointed: Dict[str, int] = field(default_factory=dict)  # how many blocks were under a checkpoint that was asked for, by class
    uncounted: List[str] = field(default_factory=list)  # what the numbers leave out: "custom kernel foo"
    error: Optional[str] = None  # why the example did not run to its end
    is_complete: bool = True  # False: the training step is still to come, in a profile that takes this one's place
    seconds: float = 0.0  # of computing

    def cut_short(self, reason: str) -> "ModelProfile":
        """Returns the profile of a run that ended before the training step was over; it gives the reason."""
        return self if self.is_complete else replace(self, is_complete=True, training=MemoryProfile(error=reason))
