"""No test is answered from what an earlier one has left on disk, and none leaves anything in the user's own cache."""

from __future__ import annotations

import os

os.environ["SHAPELENS_CACHE_DIR"] = ""
