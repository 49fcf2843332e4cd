"""Starts the language server that the extension carries.

    PYTHON -I launch.py [options of shapelens.lsp]
    PYTHON -I launch.py --doctor FOLDER [INTERPRETER]      # Markdown: what there is, and what is missing
    PYTHON -I launch.py --probe      # one line of JSON: can this interpreter run the server?

The libraries are put on `sys.path` here and not in PYTHONPATH: the worker, which the server starts under the user's own
interpreter, must see nothing of them, and nothing that the user has installed may take their place.

This file runs under any Python that the user may have named, 2.7 included, so that it can say what is wrong with it.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OLDEST = (3, 10)
CANNOT_RUN = 3  # The extension knows this exit status: starting again will not help.


def problem():
    """Why this interpreter cannot run the server, in a sentence; None if it can. Sets up `sys.path`."""
    if sys.version_info < OLDEST:
        return "%s is Python %d.%d; the ShapeLens server needs 3.10 or newer." % (sys.executable, sys.version_info[0], sys.version_info[1])
    sys.path.insert(0, os.path.join(HERE, "server"))
    sys.path.insert(0, os.path.join(HERE, "libs"))
    carried = os.path.join(HERE, "libcst")
    if has_native(os.path.join(carried, "libcst")):
        sys.path.insert(0, carried)
        return None
    import importlib.util

    # The interpreter's own libcst will do where the extension carries none that fits (macOS on Intel, musl, a newer Python).
    if importlib.util.find_spec("libcst") is not None:
        return None
    import platform

    return "ShapeLens carries no libcst for %s on %s %s. Install it for that interpreter: %s -m pip install libcst" % (
        "Python %d.%d" % sys.version_info[:2],
        platform.system(),
        platform.machine(),
        sys.executable,
    )


def has_native(folder):
    """Whether libcst's native module is there for this interpreter and loads."""
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(folder, "native" + suffix)
        if os.path.exists(path):
            loader = ExtensionFileLoader("libcst.native", path)
            try:
                spec = spec_from_loader("libcst.native", loader)
                loader.exec_module(module_from_spec(spec))
            except ImportError:
                # The right name for another processor: macOS has the same suffix on both.
                return False
            return True
    return False


def main():
    why = problem()
    if "--probe" in sys.argv[1:]:
        print(json.dumps({"python": list(sys.version_info[:3]), "executable": sys.executable, "problem": why}))
        return 0
    if why:
        sys.stderr.write(why + "\n")
        return CANNOT_RUN
    import runpy

    module = "shapelens.lsp"
    if "--doctor" in sys.argv[1:]:
        sys.argv.remove("--doctor")
        module = "shapelens.diagnosis"
    sys.argv[0] = module
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
