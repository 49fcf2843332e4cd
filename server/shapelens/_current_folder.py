"""`python -m` puts the current folder in front of what is imported: a `json.py` of the project there is not meant for us."""

from __future__ import annotations

import sys


def leave_out_of_imports() -> None:
    """To be called before anything else is imported, by what `python -m` starts."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
