"""What runs saw, kept on disk: an unchanged file is shown, and checked, without running again. It starts nothing itself."""

from shapelens.cache.inputs import Inputs
from shapelens.cache.place import opened
from shapelens.cache.runs import Kept, RunCache
from shapelens.cache.store import Store

__all__ = ["Inputs", "Kept", "RunCache", "Store", "opened"]
