"""The tensors that flow between the steps of a model: a graph whose nodes are calls of modules, operations and inputs, nested as they ran.

An edge leads from the step that gave a tensor to each step that was given it. Both are innermost steps: a picture in which a module is
folded draws the edge from or to the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapelens.analysis.findings.findings import Finding
from shapelens.analysis.shapes import shape_text
from shapelens.analysis.structure.tree import Failure, failure_of
from shapelens.profiles import ModelProfile
from shapelens.traces import FileSpan

# Operators, as a reader of the code knows them.
_SIGNS = {
    "add": "+", "__add__": "+", "__radd__": "+", "__iadd__": "+", "add_": "+", "sub": "−", "__sub__": "−", "__rsub__": "−",
    "mul": "×", "__mul__": "×", "__rmul__": "×", "__imul__": "×", "mul_": "×", "div": "÷", "__truediv__": "÷", "__rtruediv__": "÷",
    "matmul": "@", "__matmul__": "@", "__rmatmul__": "@", "__getitem__": "[…]", "__setitem__": "[…] =", "__neg__": "−", "__pow__": "**",
}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A step. `parent` is the call of the module that it ran in; `path` that of its module, "" for an operation or input."""

    number: int
    kind: str  # "module" | "operation" | "input"
    label: str  # the class of a module, the sign or name of an operation, the name of an input
    path: str
    parent: int | None
    shape: str  # with names for dims
    sizes: str  # with numbers
    dims: list[list[int | None]]  # of the tensors that it gave
    span: FileSpan | None
    failure: Failure | None


@dataclass(frozen=True)
class Edge:
    """A tensor on its way from one innermost step to another."""

    source: int
    target: int
    shape: str
    sizes: str


@dataclass(frozen=True)
class Graph:
    """All steps of a profile, and the tensors between them."""

    nodes: list[Node]
    edges: list[Edge]


def graph(profile: ModelProfile, findings: Sequence[Finding] = ()) -> Graph:
    """The graph of a profile; `findings` are the document's, for what failed."""
    nodes = []
    for number, step in enumerate(profile.steps):
        module = profile.modules[step.module] if step.module is not None else None
        broken = profile.mismatches[step.mismatch] if step.mismatch is not None and step.mismatch < len(profile.mismatches) else None
        nodes.append(
            Node(
                number,
                step.kind,
                module.class_name if module is not None else _SIGNS.get(step.name, step.name) or "module",
                module.path if module is not None else "",
                step.parent,
                shape_text(step.output, "names"),
                shape_text(step.output, "numbers"),
                [value.shape or [] for value in [step.output, *(step.output.items or [])] if value.kind == "tensor"],
                step.span,
                failure_of(broken, module, findings) if broken is not None else None,
            )
        )
    edges = []
    for number, step in enumerate(profile.steps):
        if step.end > number + 1:
            continue  # What it was given goes to steps inside of it, which have edges of their own.
        edges += [Edge(source, number, nodes[source].shape, nodes[source].sizes) for source in step.sources]
    return Graph(nodes, edges)
