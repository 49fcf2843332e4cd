"""Run by path under the user's interpreter: `PYTHON worker/__main__.py [--no-fork]`. Frames come on standard input, go on standard output.

Nothing of ours is on the user's `sys.path`: the package is made under a private name, so that it stands in nobody's way. Its modules have
builtins of their own, a copy of Python's as they are now: `builtins.len = None` in user code changes nothing of ours.
"""

import sys

AT_START = frozenset(sys.modules)  # what Python has loaded before it begins with any script

import builtins  # noqa: E402
import importlib.abc  # noqa: E402
import importlib.machinery  # noqa: E402
import os  # noqa: E402

OWN_BUILTINS = dict(vars(builtins))


class OwnLoader(importlib.machinery.SourceFileLoader):
    """Loads a module whose code takes builtins from the copy."""

    def exec_module(self, module):  # type: ignore[no-untyped-def]
        module.__dict__["__builtins__"] = OWN_BUILTINS
        super().exec_module(module)


class OwnFinder(importlib.abc.MetaPathFinder):
    """Finds our modules, and no others."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if not fullname.startswith("_shapelens."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = OwnLoader(fullname, spec.loader.path)
        return spec


def make_package() -> None:
    """Have our modules found below `_shapelens`, and nothing of ours on `sys.path`."""
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0] or ".") == here:
        del sys.path[0]  # Our file names would stand in the way of the user's modules of that name.
    sys.path[:] = [path for path in sys.path if path not in ("",)]

    from types import ModuleType

    package = ModuleType("_shapelens")
    package.__path__ = [os.path.dirname(here)]
    sys.modules["_shapelens"] = package
    sys.meta_path.insert(0, OwnFinder())


def begin() -> None:
    """Serve until the end of the process."""
    from _shapelens.worker.process.startup import start  # type: ignore[import-not-found]

    start(fork="--no-fork" not in sys.argv and hasattr(os, "fork"))


if __name__ == "__main__":
    make_package()
    begin()
