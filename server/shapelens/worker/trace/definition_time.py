"""The depth of the definitions under execution: their calls belong to all examples, not to one."""

from __future__ import annotations

import sys
from typing import Any, Dict


class _StatementDepth:
    """The number of module-level statements under execution, one inside of the other."""

    depth = 0
    count = 0  # of all that were executed

    def __init__(self) -> None:
        self._modules: Dict[str, Any] = {}  # that were loaded before the outermost one

    def forget_modules(self) -> None:
        """Another run begins, which loads anew what it needs."""
        self._modules = {}

    def note_modules(self) -> None:
        """Remember which modules are loaded now."""
        if len(self._modules) != len(sys.modules):
            self._modules = dict(sys.modules)

    def restore_modules(self) -> None:
        """Add the modules that are missing, as after `sys.modules.clear()`. One whose import failed was not there before."""
        if len(sys.modules) < len(self._modules):
            for name in self._modules.keys() - sys.modules.keys():
                sys.modules[name] = self._modules[name]


executing = _StatementDepth()
