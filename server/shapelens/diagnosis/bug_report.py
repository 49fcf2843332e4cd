"""The content of a report of a bug, as Markdown; nothing of the source, no names of files in a project."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from shapelens import __version__
from shapelens.batch import Batch, Unavailable
from shapelens.diagnosis.health import held_by_kernel, libraries
from shapelens.examples.settings import SETTINGS, Settings
from shapelens.project_scope import ProjectScope

# Packages of the environment that change how models are run.
_PACKAGES = ("numpy", "torchvision", "lightning", "transformers", "timm", "einops", "jaxtyping")


async def bug_report(folder: Path, python: str | None) -> str:
    """The report for a project, with a place for what happened."""
    scope = ProjectScope([folder])
    root = scope.project_root(folder.absolute())
    lines = [
        "### What happened",
        "",
        "<!-- What you did, what you expected, what you saw instead. The smallest file that shows it helps most. -->",
        "",
        "### Environment",
        "",
        f"- ShapeLens {__version__} on Python {platform.python_version()}, {platform.platform()}",
        f"- server: {libraries()}",
        *await _of_worker(root, scope, python),
        f"- settings that are not their defaults: {', '.join(_changed(scope.settings(root))) or 'none'}",
    ]
    return "\n".join(lines) + "\n"


async def _of_worker(root: Path, scope: ProjectScope, python: str | None) -> list[str]:
    async with Batch(python, root=root, scope=scope) as batch:
        try:
            hello = await batch.start()
        except Unavailable as error:
            return [f"- no worker: {_without_home(str(error))}"]
    found = [f"{name} {version}" for name in _PACKAGES if (version := _version(name, hello.path)) is not None]
    boundary = "; ".join(held_by_kernel(hello)) or "no kernel boundary"
    return [
        f"- your code: Python {hello.python}, torch {hello.torch}{''.join(', ' + each for each in found)}",
        f"- runs: {'forked' if hello.fork else 'in one process'}, {boundary}",
    ]


def _version(name: str, path: list[str]) -> str | None:
    found = next(iter(metadata.distributions(name=name, path=path)), None)
    return found.version if found is not None else None


def _changed(settings: Settings) -> list[str]:
    defaults = Settings()
    return [setting.name for setting in SETTINGS if getattr(settings, setting.attribute) != getattr(defaults, setting.attribute)]


def _without_home(text: str) -> str:
    return text.replace(str(Path.home()), "~")
