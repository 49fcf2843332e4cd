"""Protocols for all that takes part in an example's module calls: the room `memo` records the calls, and answers them from its records."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Protocol, Set, Tuple

from ...protocol import FileSpan
from ..trace.recorder import SeenValues


class CallRecording(Protocol):
    """Writes down calls of modules."""

    def begin(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """A call begins; what is to be given to `end`, which has to follow."""

    def end(self, call: Any) -> Set[int]:
        """A call is over, however it ended: the sites of the user's functions that ran in it."""

    def keep(self, module: Any, call: Any, reached: Set[int], args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A call has given a result, of which nothing is noted yet."""


class CallReplay(Protocol):
    """Answers calls of modules from what was written down of an earlier example."""

    modules: List[Any]  # of that example, by layer index
    spans: List[Optional[FileSpan]]  # where they were constructed
    seen: Dict[int, SeenValues]  # what their calls gave

    def result(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any]]:
        """Returns the result of a call, if known; None where the call has to be made."""
