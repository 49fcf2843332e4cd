"""`shapelens doctor [FOLDER]`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from shapelens.commands import RefusedRequest
from shapelens.diagnosis.health import examine

SIGNS = {"ok": ("✓", "green"), "bad": ("✗", "bold red"), "note": ("·", "dim")}


async def doctor(folder: Path, python: str | None) -> int:
    """Say what ShapeLens finds for a folder and what is missing; 1 if it cannot work. Raises RefusedRequest."""
    if not folder.is_dir():
        raise RefusedRequest(f"{folder}: no such folder")
    console, can_work = Console(highlight=False), True
    async for remark in examine(folder, python):
        sign, style = SIGNS[remark.mark]
        console.print(f"[{style}]{sign}[/] ", end="", soft_wrap=True)
        console.print(remark.text, soft_wrap=True, markup=False)
        if remark.action:
            console.print(f"  → {remark.action}", soft_wrap=True, markup=False)
        can_work = can_work and remark.mark != "bad"
    return 0 if can_work else 1
