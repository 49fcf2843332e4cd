"""What a worker is doing, and why it cannot, in words for the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StateName = Literal["starting", "ready", "running", "no-torch", "failed", "stopped"]


@dataclass(frozen=True)
class WorkerState:
    """`message` is one line for the user, `action` what to do about it, `detail` what the log should hold (several lines)."""

    name: StateName
    message: str = ""
    action: str = ""
    detail: str = ""


@dataclass(frozen=True)
class StartFailure:
    """A worker that could not be started. `name` is the state that it leaves behind."""

    name: Literal["no-torch", "failed"]
    message: str
    action: str = ""
    detail: str = ""

    @property
    def state(self) -> WorkerState:
        return WorkerState(self.name, self.message, self.action, self.detail)


def no_torch(interpreter: str, python: str, error: str | None) -> StartFailure:
    """torch cannot be imported: `error` is what the import said, None where there is no torch at all."""
    absent = error is None or "No module named 'torch'" in error or error.startswith("torch is not installed")
    if absent:
        message = f"PyTorch is not installed for {interpreter} (Python {python})."
        action = f"Install it with `{interpreter} -m pip install torch`, or choose another interpreter."
    else:
        message = f"PyTorch cannot be imported by {interpreter} (Python {python}): {error}"
        action = f"Repair it with `{interpreter} -m pip install --force-reinstall torch`, or choose another interpreter."
    return StartFailure("no-torch", message, action, error or "")
