"""Explains each code of a finding: what is wrong, an example of it, the same put right, and how it is found; as Markdown.

The texts stand in `rules.toml`; `docs/findings.md` is made of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources

from shapelens.analysis.findings.codes import CODES, FindingCode

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"  # that the examples leave out


@dataclass(frozen=True)
class Rule:
    """Holds what one code means. wrong, right: Python below IMPORTS."""

    code: FindingCode
    wrong: str
    right: str
    how: str

    def markdown(self) -> str:
        """Returns the text without a heading."""
        kind = f"{self.code.severity.capitalize()}{', a lint' if self.code.lint else ''}."
        wrong, right = (f"```python\n{text.strip()}\n```" for text in (self.wrong, self.right))
        return f"{self.code.meaning} {kind}\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n\nHow it is found: {self.how}\n"


@cache
def rules() -> dict[str, Rule]:
    """Returns the rules by code, in the order of the codes."""
    tables = tomllib.loads(resources.files(__package__).joinpath("rules.toml").read_text(encoding="utf-8"))
    return {name: Rule(code, **tables[name]) for name, code in CODES.items()}


def section(name: str) -> str:
    """Returns the section of `docs/findings.md` about a code."""
    return f"## `{name}`\n\n{rules()[name].markdown()}"
