"""Starts `shapelens mcp`: with a word about the package that it needs, where that is not there."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
from collections.abc import Sequence
from pathlib import Path

from shapelens.commands import RefusedRequest

NEEDED = "shapelens mcp needs the package mcp, version 2: pip install 'mcp>=2,<3'"


def run(folders: Sequence[Path], python: str | None, allow: Sequence[str]) -> None:
    """Serve one client over stdio until it goes away. Raises RefusedRequest."""
    for folder in folders:
        if not folder.is_dir():
            raise RefusedRequest(f"--root {folder}: no such folder")
    try:
        version = importlib.metadata.version("mcp")
        if int(version.partition(".")[0]) < 2:
            raise RefusedRequest(f"{NEEDED} (there is mcp {version})")
        from shapelens.agents.server import serve
    except (ImportError, ValueError) as missing:
        raise RefusedRequest(f"{NEEDED} ({missing})") from None
    logging.basicConfig(level=logging.WARNING, format="shapelens: %(message)s")
    asyncio.run(serve(folders, python, allow))
