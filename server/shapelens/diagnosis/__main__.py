"""The page that the extension shows for "Doctor": `python -m shapelens.diagnosis FOLDER [INTERPRETER]` prints Markdown."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from shapelens.diagnosis.bug_report import bug_report
from shapelens.diagnosis.health import examine

SIGNS = {"ok": "✓", "bad": "✗", "note": "·"}


async def main(folder: Path, python: str | None) -> None:
    """Print the state of health, and below it what a report of a bug needs."""
    lines = ["# ShapeLens", ""]
    async for remark in examine(folder, python):
        # Two spaces at its end: each stands on a line of its own.
        lines += [f"{SIGNS[remark.mark]} {remark.text}  ", *([f"→ `{remark.action}`  "] if remark.action else [])]
    lines += ["", "## For a report of a bug", "", await bug_report(folder, python)]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
