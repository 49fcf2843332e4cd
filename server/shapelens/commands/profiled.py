"""Analyses and profiles a class of a file, for `summary` and the pictures of `show`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from shapelens.analysis.structure.largest_size import largest_size
from shapelens.analysis.structure.training_memory import OPTIMIZERS, training_memory
from shapelens.analysis.traces.shown import shown_for
from shapelens.batch import Analysed, Batch
from shapelens.commands import RefusedRequest
from shapelens.examples.expression import check
from shapelens.project_scope import ProjectScope
from shapelens.protocol import ModelProfile, ProfileRequest
from shapelens.report.model_document import ModelView
from shapelens.source.autocast import autocast_of
from shapelens.source.files import Unreadable, read
from shapelens.source.optimizers import optimizer_of
from shapelens.source.positions import Lines


@dataclass(frozen=True)
class Wanted:
    """Holds what is asked for on the command line. sizes: of named dims, instead of the example's."""

    target: str
    examples: list[str]
    interpreter: str | None
    sizes: dict[str, int]
    optimizer: str | None = None
    device: str = "cuda"
    autocast: str | None = None  # "bfloat16" | "float16" | "none"; None for the program's own
    allow: Sequence[str] = ()
    checkpoint: str | None = None  # a file of weights that the model's state is compared with, and nothing else is profiled


@dataclass(frozen=True)
class ProfiledClass:
    """A class as it is shown, and how to have its training step profiled again with other sizes."""

    view: ModelView
    analysed: Analysed
    again: Callable[[dict[str, int]], Awaitable[ModelProfile]]

    async def largest(self, dim: str, limit: int) -> int:
        """The largest size of a named dim with which a training step fits a number of bytes. Raises RefusedRequest."""
        view = self.view
        sizes = view.profile.dims
        if view.training is None or view.training.error:
            reason = f": {view.training.error}" if view.training is not None else ""
            raise RefusedRequest(f"its training step cannot be run{reason}")

        async def peak_at(size: int) -> int | None:
            memory = (await self.again({**sizes, dim: size})).training
            return None if memory is None or memory.error else training_memory(memory, view.optimizer, view.device).peak

        return await largest_size(limit, sizes[dim], view.training.peak, peak_at)


async def profiled(wanted: Wanted, then: Callable[[ProfiledClass], Awaitable[int]]) -> int:
    """Profile a class and hand it on, while the worker lives. Raises RefusedRequest, files.Unreadable and batch.Unavailable."""
    path, cls = file_and_class(wanted.target)
    text = read(path)
    refuse_wrong_words(wanted)
    fixes = wanted.checkpoint is None
    scope = ProjectScope(allow=wanted.allow)
    async with Batch(wanted.interpreter, root=scope.project_root(path.absolute()), scope=scope) as batch:
        if batch.notice is not None:
            sys.stderr.write(f"shapelens: {batch.notice}\n")
        analysed = await batch.analyse(path, text, examples=wanted.examples, only=cls, fixes=fixes)
        return await then(await profiled_class(batch, analysed, path, cls, wanted))


def refuse_wrong_words(wanted: Wanted) -> None:
    """Raises RefusedRequest for an example that cannot be read, and an optimizer that is not known."""
    for expression in wanted.examples:
        if problem := check(expression):
            raise RefusedRequest(f"--example: {problem}")
    if wanted.optimizer is not None and wanted.optimizer.lower() not in {name.lower() for name in OPTIMIZERS}:
        raise RefusedRequest(f"--optimizer {wanted.optimizer} is not known: {', '.join(OPTIMIZERS)}")
    if wanted.checkpoint is not None and not Path(wanted.checkpoint).exists():
        raise RefusedRequest(f"--checkpoint {wanted.checkpoint}: there is no such file")


async def profiled_class(
    batch: Batch, analysed: Analysed, path: Path, cls: str | None, wanted: Wanted, *, memory_only: bool = False
) -> ProfiledClass:
    """Profile a class of what was analysed; None: the one to show. memory_only: nothing but the memory of its training step is wanted.

    Raises RefusedRequest and batch.Unavailable.
    """
    refuse_what_has_no_answer(analysed, path, cls)
    name = cls or _first_class(analysed, path)
    found = shown_for(analysed.trace, name)
    if found is None:
        raise RefusedRequest(f"{name} has no example, and none was found: pass one with --example")
    shown, text = found, analysed.source
    autocast = _autocast(wanted, text)
    request = ProfileRequest(wanted.sizes, wanted.device, autocast[0], memory_only)
    if wanted.checkpoint is not None:
        request.checkpoint, request.path = str(Path(wanted.checkpoint).absolute()), shown.path
    profile = await batch.profile(analysed, shown.example, request)
    refuse_unknown_dims("--dim", wanted.sizes, profile.dims)
    lines: dict[str, Lines | None] = {analysed.path: analysed.module.lines}
    view = ModelView.of(
        analysed.path,
        name,
        shown,
        profile,
        analysed.findings,
        lambda file: _lines(lines, file),
        _optimizer(wanted, text),
        wanted.device,
        autocast,
    )

    async def again(sizes: dict[str, int]) -> ModelProfile:
        return await batch.profile(analysed, shown.example, ProfileRequest(sizes, wanted.device, autocast[0], memory_only=True))

    return ProfiledClass(view, analysed, again)


def refuse_unknown_dims(option: str, names: Iterable[str], dims: Iterable[str]) -> None:
    """Raises RefusedRequest for a name that is none of the example's dims."""
    dims = list(dims)
    for name in names:
        if name not in dims:
            likely = [dim for dim in dims if dim.lower() == name.lower()] or get_close_matches(name, dims, 1)
            there = f"it has {', '.join(dims)}" if dims else "it has none with a name, as B in f32[B:2, 8]"
            raise RefusedRequest(
                f"{option} {name}: the example has no dim {name}; {there}{f': did you mean {likely[0]}?' if likely else ''}"
            )


def file_and_class(target: str) -> tuple[Path, str | None]:
    """`FILE::CLASS` as a path and a class; None where no class is named."""
    file, separator, cls = target.rpartition("::")
    if not separator or Path(target).exists():
        return Path(target), None
    return Path(file), cls


def refuse_what_has_no_answer(analysed: Analysed, path: Path, cls: str | None) -> None:
    """Raises RefusedRequest for what is no Python, a class that is not there, and one that cannot be run."""
    module = analysed.module
    if module.errors and path.suffix not in (".py", ".pyi", ".pyw"):
        raise RefusedRequest(f"{path} is not a Python file: {module.errors[0].message} (line {module.errors[0].span.line})")
    # A class that derives from one of a library is a module where an example says so.
    derived = [run.target for run in analysed.trace.examples if run.target]
    names = [known for each in module.classes for known in (each.qualname, each.name)] + derived
    if cls is not None and cls not in names and not module.errors:
        there = ", ".join(dict.fromkeys(each.qualname for each in module.classes))
        raise RefusedRequest(f"{path} has no module class {cls}" + (f"; it has {there}" if there else " (nor any other)"))
    if cls is not None and not analysed.trace.examples and not module.errors:
        advice = f"write one above the class, `# shapelens: {cls}(...)(f32[...])`, or pass it with --example"
        raise RefusedRequest(f"{cls} has no example, and none was found: {advice}")


def _first_class(analysed: Analysed, path: Path) -> str:
    """The class to show where none is named: the last one with an example, as the whole stands below its parts."""
    if analysed.module.errors:
        raise RefusedRequest(f"{path}: {analysed.module.errors[0].message} (line {analysed.module.errors[0].span.line})")
    module = analysed.module
    places = {name: place for place, each in enumerate([*module.classes, *module.maybe_modules]) for name in (each.name, each.qualname)}
    targets = [run.target for run in analysed.trace.examples if run.target]
    # What a function returns need not be a model, and what was searched for last need not stand last.
    if classes := [target for target in targets if target in places]:
        return max(reversed(classes), key=places.__getitem__)
    if not targets and not module.classes:
        raise RefusedRequest(f"{path} has no module class")
    return module.classes[-1].qualname if module.classes else targets[-1]


def _optimizer(wanted: Wanted, text: str) -> tuple[str, str]:
    if wanted.optimizer is not None:
        return next(name for name in OPTIMIZERS if name.lower() == wanted.optimizer.lower()), "option"
    found = optimizer_of(text)
    return (found, "program") if found is not None else ("AdamW", "default")


def _autocast(wanted: Wanted, text: str) -> tuple[str, str]:
    if wanted.autocast is not None:
        return "" if wanted.autocast == "none" else wanted.autocast, "option"
    found = autocast_of(text)
    return (found, "program") if found is not None else ("", "default")


def _lines(known: dict[str, Lines | None], file: str) -> Lines | None:
    if file not in known:
        try:
            known[file] = Lines(read(Path(file)))
        except Unreadable:
            known[file] = None
    return known[file]
