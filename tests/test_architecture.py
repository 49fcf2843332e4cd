"""What server/ARCHITECTURE.md promises about the packages, as far as a program can tell."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from tools.import_graph import server_imports

from shapelens import protocol

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "server" / "shapelens"
MOST_MODULES = 20  # of a folder; a dozen reads best
MAP = ROOT / "server" / "ARCHITECTURE.md"
MOST_LINES = 200  # of the map
MOST_WORDS = 25  # of one of its sentences
MOST_DECISIONS = 25  # of a function, counted as cyclomatic complexity is
NAMES_OF_OTHERS = {"ast", "backward", "shapelens"}


def tracked(*suffixes: str) -> list[Path]:
    """The files of the project itself: those that git has or would take."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names if name.endswith(suffixes) and (ROOT / name).is_file()]


def test_packages_import_each_other_in_one_direction_only() -> None:
    done = subprocess.run([Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_modules_import_each_other() -> None:
    """Not for type checking either, and not inside of functions: who reads one of them would have to read the other one first."""
    imports = server_imports()
    assert len(imports) > 100
    assert not _cycle({module: found & imports.keys() for module, found in imports.items()})


def test_a_cycle_is_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert not _cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def _cycle(imports: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the next one, the first and the last being the same; empty if there are none."""
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for other in sorted(imports[module]):
            if cycle := walk(other, [*trail, module]):
                return cycle
        done.add(module)
        return []

    return next((cycle for module in sorted(imports) if (cycle := walk(module, []))), [])


def test_no_folder_holds_too_many_modules() -> None:
    folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in SERVER.rglob("*.py") if path.name != "__init__.py")
    assert len(folders) > 10
    assert not {folder: count for folder, count in folders.items() if count > MOST_MODULES}


def test_no_function_takes_too_many_decisions() -> None:
    """Ruff's rule (`lint.mccabe`) leaves out what this counts as well: `and`, `or`, comprehensions and conditional expressions."""
    found = {
        f"{path.relative_to(SERVER).as_posix()}:{node.lineno} {node.name}": _decisions(node)
        for path in SERVER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert len(found) > 1000
    assert not {name: count for name, count in found.items() if count > MOST_DECISIONS}


def test_decisions_are_counted() -> None:
    text = """
    def f(a, b):
        if a and b or a:
            return [x for x in a if x]
        def g():
            return 1 if a else 2
        return g() if b else None
    """
    function = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert _decisions(function) == 7


def _decisions(function: ast.AST) -> int:
    """The cyclomatic complexity of a function, without that of functions in it."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, (ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case)):
            count += 1
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            count += 1 + bool(node.orelse)
        elif isinstance(node, ast.Try):
            count += bool(node.orelse)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        waiting += ast.iter_child_nodes(node)
    return count


def test_the_map_names_what_is_there() -> None:
    spans = set(re.findall(r"`([^`\n]+)`", MAP.read_text(encoding="utf-8")))
    files = [path.relative_to(ROOT).as_posix() for path in tracked("")]
    folders = {f"{parent}/" for file in files for parent in Path(file).parents}
    paths = {f"/{path}" for path in (*files, *folders)}
    named = {span for span in spans if span.endswith("/") or Path(span).suffix in {".py", ".ts", ".toml", ".md"}}
    assert len(named) > 80
    assert not {span for span in named if not any(path.endswith(f"/{span}") for path in paths)}
    names = {part for span in spans - named if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", span) for part in span.split(".")}
    assert len(names) > 20
    assert not names - NAMES_OF_OTHERS - _defined_names()


def _defined_names() -> set[str]:
    """The names of the server's modules and folders, and of all that they define."""
    names = {part for path in SERVER.rglob("*.py") for part in path.relative_to(SERVER).with_suffix("").parts}
    for path in SERVER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def test_the_map_names_every_room() -> None:
    text = MAP.read_text(encoding="utf-8")
    rooms = [path.name for folder in (SERVER, SERVER / "worker") for path in folder.iterdir() if any(path.glob("*.py"))]
    assert len(rooms) > 25
    assert not [room for room in rooms if f"`{room}/`" not in text and f"`{room}`" not in text]


def test_the_map_is_short() -> None:
    text = MAP.read_text(encoding="utf-8")
    assert len(text.splitlines()) < MOST_LINES
    assert not [sentence for sentence in _sentences(text) if len(re.findall(r"`[^`]+`|[\w'’-]+", sentence)) > MOST_WORDS]


def _sentences(markdown: str) -> list[str]:
    """The sentences of a page; each cell of a table is one, or several."""
    prose = re.sub(r"^```.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    blocks = re.split(r"\n\n|\n(?=\s*(?:-|\d+\.) )|\|", prose)
    return [sentence for block in blocks for sentence in re.split(r"(?<=[.?!])(?:\*\*)?\s", block)]


def test_a_docstring_begins_with_what_is_returned_or_done() -> None:
    """Rather than by a question: "Returns …", "True if …", "Holds …", not "What …", "Whether …" or "How …"."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for file in SERVER.rglob("*.py") for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    found = [text for node in nodes if isinstance(node, documented) and (text := ast.get_docstring(node))]
    assert len(found) > 4000
    assert not [text for text in found if re.match(r"(What|Whether|How)\b", text)]


def test_a_name_means_one_class() -> None:
    """The public interface (tracing.py) has names of its own for what it makes of ours."""
    classes = Counter(
        node.name
        for path in SERVER.rglob("*.py")
        if path.name != "tracing.py"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 300
    assert not [name for name, count in classes.items() if count > 1]


@pytest.mark.parametrize(
    "path",
    [
        SERVER / "protocol.py",
        SERVER / "dataclass_json.py",
        SERVER / "traces.py",
        SERVER / "notebooks.py",
        SERVER / "python_sources.py",
        SERVER / "regular_files.py",
        SERVER / "timeouts.py",
        *sorted((SERVER / "stated").glob("*.py")),
        *sorted((SERVER / "worker").rglob("*.py")),
    ],
    ids=lambda path: path.name,
)
def test_what_runs_under_the_users_python_is_valid_python_3_9(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
    # Without it, `int | None` in an annotation is evaluated, which Python 3.9 refuses.
    unions = [part for annotation in _annotations(tree) for part in ast.walk(annotation) if isinstance(part, ast.BitOr)]
    assert not unions or "from __future__ import annotations" in text


def _annotations(tree: ast.AST) -> list[ast.expr]:
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    variables = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    return [node.returns for node in functions if node.returns] + variables


def test_the_worker_starts_without_the_servers_packages(tmp_path: Path) -> None:
    """The user's interpreter has none of them: importing the protocol must not import anything of ours or of others."""
    path = f"sys.path.insert(0, {str(SERVER.parent)!r})"
    code = f"import sys; {path}; import shapelens.protocol; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not {"pygls", "lsprotocol", "libcst", "rich", "typer", "torch"} & set(done.stdout.split())
    assert protocol.VERSION >= 1


def test_the_wheel_holds_the_worker_and_the_schema(tmp_path: Path) -> None:
    import zipfile

    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        held = set(wheel.namelist())
    ours = {path.relative_to(ROOT / "server").as_posix() for path in tracked(".py", ".json", ".typed") if path.is_relative_to(SERVER)}
    assert {"shapelens/report/show.schema.json", "shapelens/protocol.py"} <= ours <= held
