"""The longest waits of server and worker for events that may never come.

SHAPELENS_TIMEOUTS sets some of these times for a server and its workers, "hanging=1 grace=0.2": tests of hanging code need not wait as long
as people may have to.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "SHAPELENS_TIMEOUTS"


@dataclass(frozen=True)
class Timeouts:
    """In seconds."""

    pause: float = 1.0  # without an edit, after which a document is shown as opening it would show it
    grace: float = 1.0  # that a run has to end by itself after its deadline
    worker_grace: float = 5.0  # that a worker has to see to the end of a run that is late, before it is taken to hang and is killed
    definition: float = 5.0  # that a class, or a decorated function, may take to be defined
    hanging: float = 20.0  # in one statement that imports nothing, while a project is loaded, after which it is taken to have no end
    hints: float = 10.0  # that a client waits for hints, which cannot be told to ask for them again
    search: float = 3.0  # of a search for examples
    program: float = 3.0  # that a document is followed as a program while somebody waits
    patient: float = 10.0  # of a search, and of following a program, where nobody waits for it, or where less was too short


def timeouts(text: str) -> Timeouts:
    """Returns the usual ones but for those that `text` names. Raises TypeError for an unknown name, ValueError for what is no number."""
    return Timeouts(**{name: float(seconds) for name, _, seconds in (each.partition("=") for each in text.split())})


TIMEOUTS = timeouts(os.environ.get(VARIABLE, ""))
