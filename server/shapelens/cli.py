"""The command line: `shapelens show`, `summary`, `check`, `rule`, `init`, `clean`, `doctor`, `report-bug`, `lsp` and `mcp`.

Exit codes: 0 nothing is wrong; 1 errors were found (`check`: findings as severe as `--fail-on`), or, for `doctor`, ShapeLens cannot work;
2 the request or the environment is wrong.
Heavy packages are imported by the commands that need them, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
import sys
from collections.abc import Callable, Coroutine
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from shapelens import __version__

INTERRUPTED = 130  # as shells have it for SIGINT
PLAIN = "shapelens.plain"  # how streams write what their encoding does not have, as a pipe on Windows: `->` for `→`
_PLAIN_SIGNS = {
    "→": "->", "│": "|", "─": "-", "·": "*", "×": "x", "▸": ">", "…": "...", "✓": "+", "✗": "x", "✂": "-", "\u202f": " ",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "’": "'", "‘": "'", "“": '"', "”": '"',
}  # fmt: skip
TRACEBACK = "SHAPELENS_TRACEBACK"  # of the environment: faults of our own come with their tracebacks

app = typer.Typer(
    name="shapelens",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(str, Enum):
    """The output formats of `show`."""

    text = "text"
    json = "json"
    markdown = "markdown"
    svg = "svg"
    html = "html"
    model = "model"


class Autocast(str, Enum):
    """The autocast around a call of a model."""

    none = "none"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Device(str, Enum):
    """Where the memory of a training step is allocated."""

    cuda = "cuda"
    cpu = "cpu"


class AnnotationStyle(str, Enum):
    """The ways in which `annotate` writes shapes."""

    comments = "comments"
    jaxtyping = "jaxtyping"


class Amounts(str, Enum):
    """The amounts of `summary` for each module: its parameters and operations, or its share of the memory of a training step."""

    cost = "cost"
    memory = "memory"


class CheckFormat(str, Enum):
    """The output formats of `check`."""

    text = "text"
    json = "json"
    github = "github"
    gitlab = "gitlab"
    sarif = "sarif"
    junit = "junit"


class FailOn(str, Enum):
    """The least severity of a finding with which `check` exits with 1."""

    error = "error"
    warning = "warning"


class LogLevel(str, Enum):
    """The amount of the language server's messages on stderr."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def _from_here(interpreter: str | None) -> str | None:
    """On a command line a relative path starts at the working directory; in a setting, at the project."""
    here = Path(interpreter).expanduser() if interpreter else None
    return str(here.absolute()) if here is not None and here.exists() else interpreter


Interpreter = Annotated[
    str | None,
    typer.Option(
        "--interpreter",
        metavar="PYTHON",
        callback=_from_here,
        help="The Python that has your torch. Default: the setting, the active environment, .venv, this one.",
        show_default=False,
    ),
]


def _allowed(given: list[str] | None) -> list[str]:
    """Returns the acts that the user allows. On a command line a relative path starts at the working directory."""
    from shapelens.examples.settings import acts_from_here

    allowed, wrong = acts_from_here(given or [])
    if wrong:
        raise typer.BadParameter(wrong[0])
    return allowed


Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="ACT",
        callback=_allowed,
        help="Let your code use the network or start processes, or write below a folder: network, processes, a path; may be repeated.",
        show_default=False,
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"shapelens {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """The shape of every tensor in a PyTorch model, found by running the model's own code on torch's meta device."""


@app.command()
def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE[::CLASS]", help="A Python file or notebook, or one class of it.", show_default=False)
    ],
    example: Annotated[
        list[str] | None,
        typer.Option("--example", "-e", metavar="EXPR", help="Run this, not the file's own examples; may be repeated.", show_default=False),
    ] = None,
    output: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="text: the source with its hints; json: that as JSON (see show.schema.json). markdown, svg, html, model: one class as a"
            " whole, as a table, a picture, a page, or JSON (see model.schema.json).",
        ),
    ] = Format.text,
    dynamic: Annotated[
        bool,
        typer.Option("--dynamic", help="Print which dims of inputs may vary, as torch.export takes them, and what fixes others."),
    ] = False,
    interpreter: Interpreter = None,
    allow: Allow = None,
) -> None:
    """Print a file with the shapes of its tensors in the margin and the findings below their lines."""
    from shapelens.commands import show as command
    from shapelens.commands.profiled import Wanted

    if dynamic and output is not Format.text:
        _refuse(f"--dynamic prints text of Python, not {output.value}")
    if output not in (Format.text, Format.json):
        _run(lambda: command.picture(Wanted(file, example or [], interpreter, {}, allow=allow or []), output.value))
    _run(lambda: command.show(file, example or [], output.value, interpreter, allow or [], dynamic=dynamic))


def _sizes(given: list[str] | None, batch: int | None) -> dict[str, int]:
    """`B=64` as a size of a named dim."""
    sizes = {"B": batch} if batch is not None else {}
    for each in given or []:
        name, separator, size = each.partition("=")
        if not separator or not size.isdecimal() or not name.isidentifier():
            _refuse(f"--dim {each}: a size of a named dim is written like T=128")
        sizes[name] = int(size)
    return sizes


@app.command()
def summary(
    file: Annotated[
        str, typer.Argument(metavar="FILE[::CLASS]", help="A Python file or notebook, or one class of it.", show_default=False)
    ],
    example: Annotated[
        list[str] | None, typer.Option("--example", "-e", metavar="EXPR", help="Run this, not the file's own examples.", show_default=False)
    ] = None,
    batch: Annotated[int | None, typer.Option("--batch", "-b", min=1, help="The size of the dim B.", show_default=False)] = None,
    dim: Annotated[
        list[str] | None, typer.Option("--dim", metavar="NAME=SIZE", help="The size of a named dim; may be repeated.", show_default=False)
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="Say the largest batch that fits it: 24GB, RTX 4090.", show_default=False)
    ] = None,
    of: Annotated[str, typer.Option("--of", metavar="NAME", help="With --memory: the dim to look for, if not B.")] = "B",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="Print its state beside what a file of weights holds.", show_default=False),
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            "--optimizer",
            metavar="NAME",
            help="SGD, momentum, Adam, AdamW, Adafactor, Adam8bit. Default: the program's, AdamW.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Whose allocator counts.")] = Device.cuda,
    autocast: Annotated[
        Autocast | None, typer.Option("--autocast", help="What the model is called under. Default: the program's.", show_default=False)
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", "-d", min=0, help="How many levels to print.", show_default=False)] = None,
    amounts: Annotated[
        Amounts, typer.Option("--amounts", help="Of each module: parameters and FLOPs, or the memory that it takes of a training step.")
    ] = Amounts.cost,
    interpreter: Interpreter = None,
    allow: Allow = None,
) -> None:
    """Print a model as a table: its modules with output shapes, parameters, FLOPs and memory, and what a training step takes."""
    from shapelens.commands import checkpoint as beside
    from shapelens.commands import summary as command
    from shapelens.commands.profiled import Wanted

    chosen = autocast and autocast.value
    wanted = Wanted(file, example or [], interpreter, _sizes(dim, batch), optimizer, device.value, chosen, allow or [], checkpoint)
    limit = _memory(memory)
    _run(lambda: beside.checkpoint(wanted) if checkpoint is not None else command.summary(wanted, limit, of, depth, amounts.value))


def _memory(given: str | None) -> int | None:
    """The bytes of `24GB` or `RTX 4090`."""
    from shapelens.examples.device_memory import UnknownDevice, device_memory

    try:
        return device_memory(given) if given is not None else None
    except UnknownDevice as why:
        _refuse(f"--memory {why}")


def _codes(option: str, given: list[str] | None) -> list[str]:
    """Returns the codes of `broadcast,view`, given any number of times; refuses those that there are not."""
    codes = [code.strip() for each in given or [] for code in each.split(",") if code.strip()]
    if codes:
        from shapelens.analysis.findings.codes import CODES, similar

        for code in codes:
            if code not in CODES:
                _refuse(f"{option} {code}: there is no such code{similar(code)}; `shapelens rule` lists them")
    return codes


@app.command()
def annotate(
    file: Annotated[str, typer.Argument(metavar="FILE[::CLASS]", help="A Python file, or one class of it.", show_default=False)],
    style: Annotated[
        AnnotationStyle | None,
        typer.Option(help="Comments, or annotations of jaxtyping. Default: what the file has, else comments.", show_default=False),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print what would change instead of writing it.")] = False,
    interpreter: Interpreter = None,
    allow: Allow = None,
) -> None:
    """Write shapes as comments behind the lines that give them, `x = self.conv(x)  # (B, 32, H, W)`, or into signatures,
    `x: Float[Tensor, "b 3 h w"]`. A line with a comment keeps it, and so does what is annotated with a shape."""
    from shapelens.commands import annotate as command

    _run(lambda: command.annotate(file, interpreter, style=style, diff=diff, allow=allow or []))


@app.command()
def check(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files and folders.", show_default=False)],
    interpreter: Interpreter = None,
    allow: Allow = None,
    output_format: Annotated[CheckFormat, typer.Option("--format", "-f", help="How findings are reported.")] = CheckFormat.text,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to a file.", show_default=False)
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only files that git says have changed, and those that import them.")] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="REF", help="As --changed, compared with this commit rather than the last.", show_default=False),
    ] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Run small models for real besides, and say what depends on what.")] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Of your device, 24GB or RTX 4090: warn of training steps that do not fit it. Default: the setting.",
            show_default=False,
        ),
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the fixes, which were tried before, and say which.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print the fixes as a diff.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Check again what changes, until interrupted.")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Known findings, which are no failure. Default: the setting.", show_default=False),
    ] = None,
    update_baseline: Annotated[bool, typer.Option("--update-baseline", help="Write what is found to the baseline.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Take out of the baseline what is gone, in CI too.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="How many files are run side by side. Default: as many as there are processors, and memory for.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Whether files that have not changed are left out.")] = True,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODES", help="Only findings with these codes, separated by commas.", show_default=False),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="CODES", help="No findings with these codes, besides those of the setting.", show_default=False),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="GLOB", help="Leave these files or folders out, besides those of the setting.", show_default=False
        ),
    ] = None,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The least severity with which the exit code is 1.")] = FailOn.error,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.")] = False,
) -> None:
    """Report what is wrong, a line each: `file:line:column: severity code: message`. Exits with 1 if there are errors."""
    from shapelens.commands import check as command
    from shapelens.examples.settings import Settings

    options = command.CheckOptions(
        python=interpreter,
        jobs=jobs,
        use_cache=cache,
        format=output_format.value,
        output=output,
        since=since or ("HEAD" if changed else None),
        deep=deep,
        fix=fix,
        diff=diff,
        watch=watch,
        baseline=baseline,
        update_baseline=update_baseline,
        prune=prune,
        allow=allow or [],
        memory=_memory(memory),
        narrowed=Settings(
            select=_codes("--select", select),
            ignore=_codes("--ignore", ignore),
            exclude=[glob for each in exclude or [] for glob in each.split(",")],
            folder=str(Path.cwd()),
        ),
        fail_on="" if exit_zero else fail_on.value,
    )
    _run(lambda: command.check(paths, options))


@app.command()
def rule(code: Annotated[str | None, typer.Argument(metavar="CODE", help="Of a finding. Default: list all codes.")] = None) -> None:
    """Print what a finding means: what is wrong, an example of it, the same put right, and how it is found."""
    from shapelens.commands import rule as command

    _do(lambda: command.rule(code))


@app.command()
def init(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project.")] = Path()) -> None:
    """Add `[tool.shapelens]` to the project's pyproject.toml, with the settings that a project may want to change."""
    from shapelens.commands import init as command

    _do(lambda: command.init(folder))


@app.command()
def clean() -> None:
    """Remove what was kept on disk of earlier runs."""
    from shapelens.commands import clean as command

    command.clean()


@app.command()
def doctor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project to look at.")] = Path(),
    interpreter: Interpreter = None,
) -> None:
    """Check what ShapeLens needs, and say what to do about what is missing."""
    from shapelens.commands import doctor as command

    _run(lambda: command.doctor(folder, interpreter))


@app.command()
def report_bug(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The project.")] = Path(),
    interpreter: Interpreter = None,
) -> None:
    """Print what a report of a bug needs to hold: versions and settings, nothing of your source."""
    from shapelens.diagnosis.bug_report import bug_report

    async def report() -> int:
        sys.stdout.write(await bug_report(folder, interpreter))
        return 0

    _run(report)


@app.command()
def lsp(
    tcp: Annotated[
        int | None,
        typer.Option(
            "--tcp",
            metavar="PORT",
            min=1,
            max=65535,
            help="Listen on this port of localhost instead of stdio, for a client with the token.",
            show_default=False,
        ),
    ] = None,
    interpreter: Interpreter = None,
    allow: Allow = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="How much to say on stderr.")] = LogLevel.info,
) -> None:
    """Start the language server (over stdio, as editors do)."""
    from shapelens.lsp import start

    start.run(tcp=tcp, interpreter=interpreter, log_level=log_level.value, allow=allow or [])


@app.command()
def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="A folder that it may be asked about; may be repeated. Default: the current one, and those that the client names.",
            show_default=False,
        ),
    ] = None,
    interpreter: Interpreter = None,
    allow: Allow = None,
) -> None:
    """Serve coding agents over stdio (Model Context Protocol): check, shapes, what_if, fixes, summary. Needs the extra `mcp`."""
    from shapelens.agents import start

    _do(lambda: start.run(root or [], interpreter, allow or []))


def _run(command: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a command to its exit code; what is wrong with the request or the environment is one line on stderr."""
    from shapelens.batch import Unavailable
    from shapelens.commands import RefusedRequest
    from shapelens.source.files import Unreadable

    try:
        code = asyncio.run(command())
        sys.stdout.flush()
    except (RefusedRequest, Unreadable) as error:
        _refuse(str(error))
    except Unavailable as error:
        _refuse(f"{error} {error.action}".strip())
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`). Python would complain once more when it flushes stdout at its end.
        sys.stdout = None
        code = 0
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _refuse(f"this is a fault of ShapeLens: {type(error).__name__}: {error} ({TRACEBACK}=1 shows where it is)")
    raise typer.Exit(code)


def _do(command: Callable[[], None]) -> None:
    """Run a command that needs no worker; what is wrong with the request is one line on stderr."""
    from shapelens.commands import RefusedRequest

    try:
        command()
    except RefusedRequest as error:
        _refuse(str(error))


def _refuse(message: str) -> NoReturn:
    typer.secho(f"shapelens: {message}", err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    raise typer.Exit(2)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Returns the replacement for characters that a stream's encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN_SIGNS.get(each, "?") for each in error.object[error.start : error.end]), error.end


codecs.register_error(PLAIN, _plain)


def main() -> None:
    """The entry point: Ctrl-C is quiet, even while packages are still being imported."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=PLAIN)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
