"""Starts, feeds, cancels, times out and restarts workers. It runs no user code itself and knows nothing of LSP."""

from shapelens.runner.worker import Worker
from shapelens.runner.worker_state import StartFailure, WorkerState

__all__ = ["StartFailure", "Worker", "WorkerState"]
