"""What the search reads in the text of a `forward`, for tests of it."""

import ast
import textwrap

from shapelens.worker.search.evidence import InputShape
from shapelens.worker.search.text.annotations import input_shapes


def said(text: str) -> dict[str, InputShape]:
    """What the last class of a file, or its only function, says of the parameters of `forward`."""
    text = textwrap.dedent(text)
    module = ast.parse(text)
    holder = module.body[-1]
    if isinstance(holder, ast.FunctionDef):
        return input_shapes(holder, text.splitlines(), None, module)
    assert isinstance(holder, ast.ClassDef)
    forward = next(one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "forward")
    return input_shapes(forward, text.splitlines(), holder, module)


def of_body(body: str) -> InputShape | None:
    return said("def forward(x, flag=False):\n" + textwrap.indent(textwrap.dedent(body), "    ")).get("x")
