"""The Python that other files than scripts hold: notebooks, and documentation with blocks of code (Markdown, reStructuredText).

A line of documentation is a line of its Python. Each block is a cell (`# %%`) in the place where it stands; the prose is left out.

For server and worker: standard library only, Python 3.9.
"""

from __future__ import annotations

import re
import textwrap
from typing import Collection, Iterator, List, Sequence, Tuple

from . import notebooks

DOCUMENTATION = (".md", ".rst")
SUFFIXES = (".py", notebooks.SUFFIX, *DOCUMENTATION)
_MARKER = "# %%"
# What stands above a block of code: a fence, or the end of a paragraph or directive of reStructuredText. It names Python or no language.
_PYTHON = r"\{?\.?(?:i?python3?|py|pycon)\b.*"
_BLOCK = re.compile(r"\s*(?:(?P<fence>```+|~~~+)\s*(?:%s)?|\.\. [\w-]+::\s*%s|(?!\s*\.\. ).*::\s*)$" % (_PYTHON, _PYTHON), re.IGNORECASE)
_FENCE = re.compile(r"\s*(```+|~~~+)")
_OPTION = re.compile(r"\s*:[\w-]+:")  # of a directive
_DOCTEST = re.compile(r"\s*(?:>>>|\.\.\.)(?: (.*)|)$")
_IMPORTS = re.compile(r"^(?:import|from)\b", re.MULTILINE)
_WORD = re.compile(r"\w+")


def as_python(file: str, content: str) -> str:
    """The Python of a file's content, without what only IPython understands; "" for a notebook that is none."""
    if file.endswith(notebooks.SUFFIX):
        notebook = notebooks.read(content)
        return notebook.text if notebook is not None else ""
    return notebooks.script_as_python(_of_documentation(content) if file.endswith(DOCUMENTATION) else content)


def about(file: str, text: str, names: Collection[str]) -> str:
    """The Python of a file without what has nothing to do with some names, line by line: documentation has many examples, each by itself.

    An example is a block with imports of its own, and those below it that have none and go on with its names.
    """
    if not file.endswith(DOCUMENTATION):
        return text
    blocks: List[List[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith(_MARKER):
            blocks.append([])
        blocks[-1].append(line)
    examples: List[str] = []
    for block in map("".join, blocks):
        if examples and not _IMPORTS.search(block):
            examples[-1] += block
        else:
            examples.append(block)
    return "".join("\n" * each.count("\n") if set(_WORD.findall(each)).isdisjoint(names) else each for each in examples)


def doctest(lines: Sequence[str]) -> str:
    """The lines behind `>>>` and `...`, the others empty."""
    matches = [_DOCTEST.match(line) for line in lines]
    return "\n".join(match[1] or "" if match is not None else "" for match in matches)


def blocks_of_code(lines: Sequence[str]) -> Iterator[Tuple[int, str]]:
    """The blocks of code in prose, each with the number of its first line, from 0: fenced ones, and indented ones below `::`."""
    number = 0
    while number < len(lines):
        head = lines[number]
        found = _BLOCK.match(head)
        fence = _FENCE.match(head)
        number += 1
        if found is None and fence is None:
            continue
        start, indent = number, len(head) - len(head.lstrip())
        while number < len(lines) and not _ends(lines[number], fence[1] if fence is not None else "", indent):
            number += 1
        if found is not None:
            inside = ["" if _OPTION.match(line) else line for line in lines[start:number]]
            has_prompts = any(line.lstrip().startswith(">>>") for line in inside)
            yield start, doctest(inside) if has_prompts else textwrap.dedent("\n".join(inside))
        number += fence is not None


def _ends(line: str, fence: str, indent: int) -> bool:
    """True if a block of code ends before a line."""
    return line.strip().startswith(fence) if fence else bool(line.strip()) and len(line) - len(line.lstrip()) <= indent


def _of_documentation(content: str) -> str:
    lines = content.splitlines()
    python = [""] * len(lines)
    for start, code in blocks_of_code(lines):
        code = notebooks.as_python(code)
        code = code if notebooks.parses(code) else notebooks.left_out(code)
        if code.strip():
            python[start - 1] = _MARKER
            python[start : start + code.count("\n") + 1] = code.split("\n")
    return "".join(line + "\n" for line in python)
