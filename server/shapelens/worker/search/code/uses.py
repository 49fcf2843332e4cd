"""The uses of a value in code: what kind of value it takes, and which names it goes by on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set, Tuple

# Methods that tell what has them, and functions that tell what they take.
TEXT_METHODS = {"lower", "upper", "split", "startswith", "endswith", "strip", "replace", "format", "join", "capitalize", "find", "encode"}
ALSO_OF_OTHERS = {"split", "encode"}  # of them: tensors, tokenizers and models have these too
DICT_METHODS = {"items", "keys", "values", "get", "pop", "setdefault", "update"}
LIST_METHODS = {"append", "extend", "insert", "index", "reverse", "sort", "count"}
MODULE_METHODS = {
    "parameters", "named_parameters", "children", "modules", "named_modules", "eval", "train", "state_dict", "load_state_dict",
    "requires_grad_", "apply", "buffers",
}  # fmt: skip
TENSOR_METHODS = {
    "dim", "view", "unsqueeze", "clone", "detach", "float", "long", "t", "flatten", "reshape", "permute", "transpose", "numel", "item",
    "contiguous",
}  # fmt: skip
# What makes a tensor of a table of numbers, and methods that leave the shape of one alone.
TENSORS_OF = {"tensor", "as_tensor", "from_numpy", "FloatTensor", "Tensor", "asarray", "array", "Parameter"}
SAME_SHAPE = {"float", "double", "half", "detach", "clone", "contiguous", "to", "cpu", "cuda", "type", "astype", "requires_grad_", "copy"}
COPIES = {"deepcopy", "copy", "list", "tuple", "reversed", "sorted", "set", "ListConfig", "cast", "default", "to_container"}
SIZES_OF = {"zeros", "ones", "empty", "rand", "randn", "full", "arange", "range", "eye", "linspace", "tril", "triu", "xrange", "Size"}
NUMBERS_OF = {
    "sqrt", "log", "log2", "log10", "exp", "abs", "pow", "ceil", "floor", "round", "divmod", "cos", "sin", "max", "min", "int", "float",
    "bool",
}  # fmt: skip
KINDS_OF_TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "text", "dict": "dict", "list": "list", "tuple": "list"}


@dataclass
class Uses:
    """The uses of a value."""

    kinds: Dict[str, int] = field(
        default_factory=dict
    )  # "int", "number", "list", "text", "class", "called", "object", "dict", "bool", "tensor", …
    least: int = 0  # a list has at least so many items
    exactly: Optional[int] = None  # it is unpacked into so many
    parts: Dict[str, "Uses"] = field(default_factory=dict)  # of an object's attributes, or a dict's keys
    optional: Set[str] = field(default_factory=set)  # parts that need not be there
    item: Optional["Uses"] = None
    choices: List[Any] = field(default_factory=list)  # what it is compared with, or the keys of the dict that it is looked up in
    roles: List[str] = field(default_factory=list)  # the names of parameters that it is passed on as
    annotations: List[Any] = field(default_factory=list)  # what those are annotated with
    calls: List[Tuple[int, Tuple[str, ...]]] = field(default_factory=list)  # (positional arguments, keywords) of calls of it
    guarded: Set[str] = field(default_factory=set)  # types that the code asks whether it is of
    types: List[type] = field(default_factory=list)  # those of them that are known
    rank: int = 0  # of a tensor: how many dims the code reads or needs; 0 where that is not known
    is_power_of_two: bool = False  # its logarithm is taken
    is_array: bool = False  # numpy's, as `torch.from_numpy` wants

    def add(self, kind: str, weight: int = 1) -> None:
        """One more use as a value of this kind."""
        self.kinds[kind] = self.kinds.get(kind, 0) + weight

    def part(self, name: str) -> "Uses":
        """The uses of an attribute, or of the value of a key."""
        return self.parts.setdefault(name, Uses())

    def items(self) -> "Uses":
        """The uses of a list's items."""
        if self.item is None:
            self.item = Uses()
        return self.item

    def kind(self) -> str:
        """The kind that most speaks for; "" where nothing does."""
        kinds = self.kinds
        if self.rank and kinds.get("tensor"):
            return "tensor"
        for strong in ("dict", "class", "object", "text"):
            if kinds.get(strong):
                return strong
        if kinds.get("list") and not ({"int", "float"} & self.guarded and (kinds.get("int") or kinds.get("number") or not self.exactly)):
            return "list"
        for weak in ("int", "float", "module", "called", "tensor", "dtype", "number", "bool"):
            if kinds.get(weak):
                return weak
        return ""
