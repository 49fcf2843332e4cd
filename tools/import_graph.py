"""Which module of the server imports which, and which tests a change of some files has to do with.

The graph is read from the text of the modules, so that imports for type checking and inside of functions count as well.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Set
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "server" / "shapelens"
TESTS = ROOT / "tests"

# Modules that start others as processes, which no import says: a change behind them changes what they do.
STARTS = {"shapelens.runner.process": {"shapelens.worker.__main__"}, "tests.worker.process": {"shapelens.worker.__main__"}}
# What a test may start, whose text speaks of processes in any other way.
ENTRY_POINTS = {"shapelens.cli", "shapelens.lsp.__main__", "shapelens.worker.__main__"}
PROCESSES = ("subprocess", "sys.executable")
# Files that any test may depend on.
OF_ALL = ("pyproject.toml", "requirements.lock", "tests/conftest.py", "tools/setup.sh")
FIXTURES = "fixtures/"
TEST_OF_FIXTURES = "tests/test_fixtures.py"
TEST_OF_PACKAGE_FIXTURES = "tests/with_packages/test_fixtures_with_packages.py"


def server_modules() -> dict[str, Path]:
    """Returns the modules of the server by their full names; a package has the name of its folder."""
    return _modules(SERVER.parent, SERVER)


def server_imports() -> dict[str, set[str]]:
    """Returns, for each module of the server, the other modules of the server that its text imports."""
    modules = server_modules()
    return {module: _imported(module, path, modules.keys()) for module, path in modules.items()}


def affected_tests(changed: Iterable[str]) -> list[str] | None:
    """Returns what pytest is to run for changed files, as paths or test ids relative to the root.

    A test file runs if it is changed itself, or if it leads to a changed module of the server by imports or by a process that it starts.
    A changed fixture runs alone. Returns None where everything is to run.
    """
    changed = sorted(set(changed))
    if any(path in OF_ALL for path in changed):
        return None
    server, tests, graph = _graph()
    paths = {path.relative_to(ROOT).as_posix(): name for name, path in {**server, **tests}.items()}
    touched = {paths[path] for path in changed if path in paths}
    # What no module imports (a schema, a table) belongs to the modules of its folder.
    folders = {path.rpartition("/")[0] for path in changed if path not in paths and path.startswith("server/")}
    touched |= {name for path, name in paths.items() if path.rpartition("/")[0] in folders}
    chosen = []
    for name, path in sorted(tests.items()):
        if path.name.startswith("test_") and (touched & _reached(name, graph)):
            chosen.append(path.relative_to(ROOT).as_posix())
    for path in changed:
        if path.startswith(FIXTURES) and _reader(path) not in chosen:
            chosen += _fixture_ids(path)
    return chosen


def changed_files(since: str) -> list[str]:
    """Returns the paths, relative to the root, that differ from a revision: committed, uncommitted or new.

    Raises subprocess.CalledProcessError where git does not know the revision.
    """
    differing = ["git", "diff", "--name-only", "--no-renames", since]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    outputs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for command in (differing, new)]
    return sorted({line for output in outputs for line in output.splitlines()})


@cache
def _graph() -> tuple[dict[str, Path], dict[str, Path], dict[str, set[str]]]:
    """The modules of the server, those of tests and benchmarks, and what each of them imports or starts."""
    tests = _modules(ROOT, TESTS, ROOT / "benchmarks")
    server = server_modules()
    # Tests import each other from the folder of the tests, not from the root.
    short = {name.removeprefix("tests."): name for name in tests}
    graph = server_imports()
    known = server.keys() | short.keys() | tests.keys()
    for name, path in tests.items():
        graph[name] = {short.get(found, found) for found in _imported(name, path, known)}
        if name not in STARTS and any(word in path.read_text(encoding="utf-8") for word in PROCESSES):
            graph[name] |= ENTRY_POINTS
    for module, started in STARTS.items():
        graph[module] |= started
    # The worker imports its rooms by names that it puts together.
    graph["shapelens.worker.__main__"] |= {name for name in server if name.startswith("shapelens.worker.")}
    return server, tests, graph


def _reader(fixture: str) -> str:
    return TEST_OF_PACKAGE_FIXTURES if fixture.startswith(f"{FIXTURES}with_packages/") else TEST_OF_FIXTURES


def _fixture_ids(path: str) -> list[str]:
    """The ids of the fixture itself; those of its folder where it is a part of other fixtures."""
    from_folder = Path(path).relative_to(FIXTURES)
    reader = _reader(path)
    whole = reader if reader == TEST_OF_PACKAGE_FIXTURES else None
    if whole is not None:
        return [whole]
    if (ROOT / path).exists() and from_folder.suffix == ".py" and not from_folder.name.startswith("_"):
        return [f"{reader}::test_fixture[{from_folder.as_posix()}]"]
    beside = sorted((ROOT / path).parent.glob("*.py"))
    return [f"{reader}::test_fixture[{each.relative_to(ROOT / FIXTURES).as_posix()}]" for each in beside if not each.name.startswith("_")]


def _modules(base: Path, *folders: Path) -> dict[str, Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *map(str, folders)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [ROOT / name for name in sorted(listed) if name.endswith(".py") and (ROOT / name).is_file()]
    names = {path: path.relative_to(base).with_suffix("").as_posix().replace("/", ".") for path in paths}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def _imported(module: str, path: Path, known: Set[str]) -> set[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names.update(full if (full := f"{base}.{alias.name}") in known else base for alias in node.names)
    return {name for name in names if name in known}


def _reached(module: str, graph: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting += graph.get(here, ())
    return reached
