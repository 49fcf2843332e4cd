"""Functions that refuse to run without a package: `if not HAS_KERNELS: raise ImportError(…)`. They go on, with what is stood in for it.

Where a `try` of the same function is around it the code has something else in mind for that, and the exception is raised.
"""

from __future__ import annotations

import ast
import re
from typing import List

# A text without this has no such check.
MAY_REFUSE = re.compile(r"raise (ImportError|ModuleNotFoundError)|not installed|(pip|conda) install")


def assume_package(node: ast.If) -> None:
    """Let a condition that ends in such a refusal be asked, and never hold. Any other one stays as it is."""
    refusal = node.body[-1]
    if isinstance(refusal, ast.Raise) and not node.orelse and MAY_REFUSE.search(ast.unparse(refusal)):
        never = ast.copy_location(ast.Constant(False), node)
        node.test = ast.copy_location(ast.BoolOp(ast.And(), [node.test, never]), node.test)


def assume_packages(tree: ast.Module) -> None:
    """The same for all functions of a module."""
    todo: List[ast.AST] = [tree]
    inside: List[ast.AST] = []
    while todo:
        node = todo.pop()
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        (inside if is_function else todo).extend(ast.iter_child_nodes(node))
    while inside:
        node = inside.pop()
        if isinstance(node, ast.If):
            assume_package(node)
        inside.extend(ast.iter_child_nodes(node) if not isinstance(node, ast.Try) else [*node.handlers, *node.orelse, *node.finalbody])
