"""`shapelens summary FILE[::CLASS]`."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shapelens.analysis.shapes import memory_text
from shapelens.commands.profiled import ProfiledClass, Wanted, profiled, refuse_unknown_dims
from shapelens.report.model_table import headings, table_rows, totals
from shapelens.report.text import digits

WIDEST = 10_000


async def summary(wanted: Wanted, limit: int | None, dim: str, depth: int | None, amounts: str) -> int:
    """Prints a class as a table, with "cost" or "memory" of its modules. limit: bytes; the size of `dim` that fits them is said, too.

    Raises what `profiled` does.
    """

    async def print_it(found: ProfiledClass) -> int:
        console = Console(highlight=False, soft_wrap=True)
        if limit is not None:
            refuse_unknown_dims("--of", [dim], found.view.profile.dims)
        _print(found, console, depth, amounts)
        if limit is not None:
            size = await found.largest(dim, limit)
            fits = f"largest {dim} that fits {memory_text(limit)}: {size}" if size else f"no {dim} fits {memory_text(limit)}"
            console.print(fits, markup=False)
        return 1 if found.view.profile.error or any(finding.severity == "error" for finding in found.analysed.findings) else 0

    return await profiled(wanted, print_it)


def _print(found: ProfiledClass, console: Console, depth: int | None, amounts: str) -> None:
    view = found.view
    console.print(Text(f"{view.class_name}  ", "bold") + Text(view.shown.example.expression, "dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, heading in enumerate(headings(amounts)):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for row in table_rows(view, amounts, depth):
        style = "red" if row.error else ""
        table.add_row(*[Text(digits(cell, console), style) for cell in ("  " * row.depth + row.cells[0], *row.cells[1:])])
        if row.error:
            table.add_row(Text("  " * (row.depth + 1) + "✗ " + row.error, "red"))
    print_whole(table, console)
    if view.profile.error:
        console.print(Text(f"the example failed: {view.profile.error}", "red"))
    pairs = totals(view)
    width = max((len(label) for label, _ in pairs), default=0)
    for label, text in pairs:
        console.print(digits(f"{label:<{width}}  {text}", console), markup=False)


def print_whole(table: Table, console: Console) -> None:
    """Print a table and an empty line. Nothing is cut: a terminal that is narrower wraps it."""
    console.width = WIDEST
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    console.print()
