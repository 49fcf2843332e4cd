"""Whether definitions are being executed: what they call belongs to all examples, not to one."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping


class _StatementDepth:
    """How many statements at module level are being executed, one inside of the other."""

    depth = 0
    modules: Mapping[str, Any] = MappingProxyType({})  # all that were loaded
    count = 0  # of all that were executed


executing = _StatementDepth()
