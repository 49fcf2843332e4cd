"""asyncio's limit of time, which Python has since 3.11."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from asyncio import timeout as timeout
else:
    from async_timeout import timeout as timeout
