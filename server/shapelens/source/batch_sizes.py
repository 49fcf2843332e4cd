"""Where a program writes its batch size, and what it says of how its training takes memory, as far as its text tells."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from shapelens.source.autocast import autocast_of
from shapelens.source.optimizers import optimizer_of
from shapelens.stated.syntax_trees import integer, last_name, positional, program_of

_BATCH_SIZE = re.compile(r"(.*_)?(batch_?size|batch|bsz?)", re.IGNORECASE)
_NOT_TRAINING = re.compile(r"(?:^|_)(test|valid|validation|val|eval|infer|inference|predict|sample)(?:_|$)", re.IGNORECASE)
# Models, gradients or states that lie on several devices, are kept in fewer bits, are not trained, or are computed once more.
_OTHERWISE = re.compile(
    r"\b(fsdp|FullyShardedDataParallel|fully_shard|deepspeed|DataParallel|ZeroRedundancyOptimizer|parallelize_module|device_map|"
    r"cuda:[1-9]|cpu_offload|save_on_cpu|peft|get_peft_model|bitsandbytes|BitsAndBytesConfig|quantize\w*|(?<!re\.)compile|requires_grad_?|"
    r"\w*freeze\w*|\w*(?:grad|gradient|activation)_checkpointing\w*|checkpoint_wrapper|enable_checkpointing|load_in_\dbit)\b",
    re.IGNORECASE,
)
_CROSS_ENTROPY = re.compile(r"\b(?:cross_entropy|CrossEntropyLoss)\b")
_PRECISION = re.compile(r"\b(autocast|amp|mixed_precision|precision|fp16|bf16|Accelerator)\b")


@dataclass(frozen=True)
class BatchSize:
    """A number that is written as a batch size: a span of `ast`, lines from 1, columns in UTF-8 bytes."""

    name: str
    value: int
    line: int
    column: int
    end_line: int
    end_column: int


def batch_sizes(text: str) -> list[BatchSize]:
    """The numbers that a text writes as batch sizes, in their order; those that are not of training stand last."""
    found = []
    for node in ast.walk(program_of(text)):
        for name, value in _named(node):
            number = integer(value)
            if number is not None and number > 0 and _BATCH_SIZE.fullmatch(name):
                end = value.end_lineno or value.lineno, value.end_col_offset or value.col_offset
                found.append(BatchSize(name, number, value.lineno, value.col_offset, *end))
    lines = text.splitlines()
    found.sort(key=lambda each: (bool(_NOT_TRAINING.search(f"{each.name}_{_target(lines[each.line - 1])}")), each.line, each.column))
    return found


@lru_cache(maxsize=8)
def is_plain_training(text: str) -> bool:
    """True if a program trains a model as it is built, on one device: what it takes is that of its model's training step."""
    if optimizer_of(text) is None or _OTHERWISE.search(_code(text)):
        return False
    tree = program_of(text)
    calls = {last_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return "backward" in calls and (autocast_of(text) is not None or not _PRECISION.search(_code(text)))


def loss_of(text: str) -> str:
    """The loss that a program computes outside of its models, where that keeps what counts: "cross_entropy", or ""."""
    return "cross_entropy" if _CROSS_ENTROPY.search(_code(text)) else ""


def _named(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """The names and values that a node pairs."""
    if isinstance(node, ast.Assign):
        return [(last_name(target), node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return [(last_name(node.target), node.value)]
    if isinstance(node, ast.Dict):
        return [(key.value, value) for key, value in zip(node.keys, node.values, strict=True) if _is_text(key)]  # type: ignore[union-attr]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        named = positional(node)[len(positional(node)) - len(node.args.defaults) :]
        pairs = [*zip(named, node.args.defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        return [(argument.arg, value) for argument, value in pairs if value is not None]
    if not isinstance(node, ast.Call):
        return []
    given = [(each.arg, each.value) for each in node.keywords if each.arg is not None]
    if last_name(node.func) in ("add_argument", "option"):
        flags = [str(each.value).lstrip("-").replace("-", "_") for each in node.args if _is_text(each)]  # type: ignore[attr-defined]
        return [(flag, value) for name, value in given if name == "default" for flag in flags if len(flag) > 1]
    if last_name(node.func) == "DataLoader" and len(node.args) > 1:
        given.append(("batch_size", node.args[1]))
    return given


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _target(line: str) -> str:
    """`val_loader` of `val_loader = DataLoader(…)`."""
    return line.partition("=")[0].strip()


def _code(text: str) -> str:
    """A text without its comments, and without the classes of models: what these do, a run sees."""
    tree = program_of(text)
    classes = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body)
    ]
    rest = ast.Module([node for node in tree.body if node not in classes], [])
    try:
        return ast.unparse(rest)
    except RecursionError:
        return text
