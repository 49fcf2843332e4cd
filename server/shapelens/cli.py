"""The command line: `shapelens show`, `check`, `doctor` and `lsp`.

Exit codes: 0 nothing wrong, 1 errors were found (or, for `doctor`, ShapeLens cannot work), 2 the request or the environment is wrong.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shapelens import __version__

app = typer.Typer(
    name="shapelens",
    help="The shape of every tensor in a PyTorch model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Interpreter = Annotated[
    str | None,
    typer.Option("--interpreter", metavar="PYTHON", help="The Python that has your torch (default: the setting, the active environment, .venv).", show_default=False),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shapelens {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """The shape of every tensor in a PyTorch model."""


@app.command()
def lsp(
    tcp: Annotated[int | None, typer.Option("--tcp", metavar="PORT", min=1, max=65535, help="Listen on this port of localhost instead of stdio.", show_default=False)] = None,
    interpreter: Interpreter = None,
    log_level: Annotated[str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> None:
    """Start the language server (over stdio, as editors do)."""
    from shapelens.lsp import server

    server.run(tcp=tcp, interpreter=interpreter, log_level=log_level)


def main() -> None:
    """The entry point: Ctrl-C is quiet and exits as the shell expects."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
