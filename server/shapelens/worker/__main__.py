"""Run by path under the user's interpreter: `PYTHON worker/__main__.py [--no-fork]`. Frames come on standard input, go on standard output.

Nothing of ours is on the user's `sys.path`: the package is made under a private name, so that it stands in nobody's way.
"""

import os
import sys


def main() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0] or ".") == here:
        del sys.path[0]  # Our file names would stand in the way of the user's modules of that name.
    sys.path[:] = [path for path in sys.path if path not in ("",)]

    from types import ModuleType

    package = ModuleType("_shapelens")
    package.__path__ = [os.path.dirname(here)]
    sys.modules["_shapelens"] = package

    from _shapelens.worker.process.startup import start  # type: ignore[import-not-found]

    start(fork="--no-fork" not in sys.argv and hasattr(os, "fork"))


if __name__ == "__main__":
    main()
