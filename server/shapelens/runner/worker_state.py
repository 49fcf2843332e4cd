"""Says what a worker is doing, and why it cannot, in words for the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StateName = Literal["starting", "ready", "running", "no-torch", "failed", "stopped"]


@dataclass(frozen=True)
class WorkerState:
    """`message` is one line for the user, `action` what to do about it, `detail` what the log should hold (several lines).

    has_given_up: it is not started again by itself for now, which the user is to be told.
    """

    name: StateName
    message: str = ""
    action: str = ""
    detail: str = ""
    has_given_up: bool = False


@dataclass(frozen=True)
class StartFailure:
    """A worker that could not be started. `name` is the state that it leaves behind.

    is_killed: somebody has ended it, which says nothing of the next one.
    """

    name: Literal["no-torch", "failed"]
    message: str
    action: str = ""
    detail: str = ""
    is_killed: bool = False

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
        message = f"PyTorch cannot be imported by {interpreter} (Python {python}): {_with_period(error or '')}"
        action = f"Repair it with `{interpreter} -m pip install --force-reinstall torch`, or choose another interpreter."
    return StartFailure("no-torch", message, action, error or "")


def _with_period(error: str) -> str:
    return error.removeprefix("torch cannot be imported: ").rstrip(".") + "."


def ends_again_and_again(interpreter: str, times: int, how: str) -> StartFailure:
    """A process that has ended by itself several times in a row."""
    return StartFailure("failed", f"The process that runs your models with {interpreter} has ended {times} times in a row: it {how}.")
