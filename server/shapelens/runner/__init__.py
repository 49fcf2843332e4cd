"""Starts, feeds, cancels, times out and restarts workers. It runs no user code itself and knows nothing of LSP."""

from shapelens.runner.state import Failure, State
from shapelens.runner.worker import Worker

__all__ = ["Failure", "State", "Worker"]
