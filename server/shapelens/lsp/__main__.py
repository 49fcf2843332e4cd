"""`python -m shapelens.lsp`: the language server without the command line's needs."""

from __future__ import annotations

from shapelens._current_folder import leave_out_of_imports

leave_out_of_imports()

import argparse  # noqa: E402

from shapelens.lsp.start import run  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="shapelens.lsp", description="The ShapeLens language server, over stdio unless --tcp is given.")
    parser.add_argument(
        "--tcp", type=int, metavar="PORT", help="listen on this port of localhost instead of stdio, for a client with the token"
    )
    parser.add_argument("--interpreter", metavar="PYTHON", help="the Python that has your torch")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    options = parser.parse_args()
    run(tcp=options.tcp, interpreter=options.interpreter, log_level=options.log_level)


main()
