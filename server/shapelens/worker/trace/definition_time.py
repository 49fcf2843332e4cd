"""Whether definitions are being executed: what they call belongs to all examples, not to one."""

from __future__ import annotations


class _StatementDepth:
    """How many statements at module level are being executed, one inside of the other."""

    depth = 0


executing = _StatementDepth()
