"""`shapelens rule [CODE]`: what a finding means."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markdown import Markdown

from shapelens.analysis.findings.codes import CODES, similar
from shapelens.commands import RefusedRequest
from shapelens.report.rules import section


def rule(name: str | None) -> None:
    """Print the section of a code; without one, all codes with a line each. Raises RefusedRequest for a code that there is not."""
    if name is None:
        width = max(map(len, CODES))
        sys.stdout.write(
            "".join(f"{code.name:<{width}}  {code.severity:<11}  {code.meaning.replace('`', '')}\n" for code in CODES.values())
        )
        return
    if name not in CODES:
        raise RefusedRequest(f"{name}: there is no such code{similar(name)}; `shapelens rule` lists them")
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(Markdown(section(name)))
    else:
        sys.stdout.write(section(name))
