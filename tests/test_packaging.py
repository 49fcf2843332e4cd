"""What is published: the wheel and the source distribution, installed as a user installs them, and one version everywhere."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import pytest

from shapelens import __version__

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "fixtures" / "recipe" / "recipe.py"
EPOCH = "1767225600"
KEPT = ROOT / "test-output" / "packages"


def digest(parts: Iterable[bytes]) -> str:
    """A hash over all of these."""
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:24]


def what_is_packed() -> str:
    """A hash over all that goes into the packages, and what builds them."""
    paths = ["server", "README.md", "LICENSE", "pyproject.toml", ".gitignore"]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *paths]
    names = sorted(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())
    builders = [sys.version, EPOCH, *(f"{name} {version(name)}" for name in ("build", "hatchling"))]
    files = [ROOT / name for name in names if (ROOT / name).is_file()]
    return digest([*(each.encode() for each in (*builders, *names)), *(file.read_bytes() for file in files)])


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` fills, unless it was filled before; those of other names that begin alike are removed."""
    folder = KEPT / name
    if not folder.exists():
        for old in KEPT.glob(name.partition("-")[0] + "-*"):
            shutil.rmtree(old, ignore_errors=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=made(KEPT)))
        make(unfinished)
        with contextlib.suppress(OSError):  # Another process of the tests has made it meanwhile.
            unfinished.rename(folder)
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build(folder: Path) -> list[Path]:
    """The wheel, then the source distribution."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def built_twice() -> Path:
    """A folder with two builds. They are kept as long as nothing that goes into them changes."""

    def build_twice(folder: Path) -> None:
        for name in ("first", "second"):
            build(made(folder / name))

    return kept(f"built-{what_is_packed()}", build_twice)


@pytest.fixture(scope="module")
def built(built_twice: Path) -> list[Path]:
    return sorted((built_twice / "first").iterdir())


@pytest.mark.core
def test_there_is_one_version() -> None:
    spec = importlib.util.spec_from_file_location("set_version", ROOT / "tools" / "set_version.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {place: {__version__} for place in module.versions()} == module.versions()


def test_the_wheel_holds_the_server_and_nothing_else(built: list[Path]) -> None:
    wheel, source = built
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "server/shapelens"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {name for name in names if ".dist-info/" not in name} == {name.removeprefix("server/") for name in tracked}
    with tarfile.open(source) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if name.count("/")}
    assert {"server", "README.md", "LICENSE", "pyproject.toml"} <= tops and not tops & {"tests", "vscode-extension", "fixtures"}


def test_the_same_commit_gives_the_same_bytes(built: list[Path], built_twice: Path) -> None:
    again = sorted((built_twice / "second").iterdir())
    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in built] == [
        hashlib.sha256(file.read_bytes()).hexdigest() for file in again
    ]


def test_an_index_takes_both(built: list[Path]) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


@pytest.mark.slow("installs the package")
@pytest.mark.parametrize("kind", ["wheel", "source distribution"])
def test_what_is_installed_shows_the_recipe(built: list[Path], tmp_path: Path, kind: str) -> None:
    """Its dependencies come from this environment; only what the package itself brings is new."""
    package = built[0] if kind == "wheel" else built[1]
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(package)], check=True, capture_output=True)
    # The packages that it needs, but not the editable ShapeLens of this environment.
    needs = [path for path in sys.path if path.endswith("site-packages")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *needs])}
    code = "import sys, shapelens.cli as cli; sys.argv[0] = 'shapelens'; cli.main()"
    command = [str(python), "-c", code, "show", str(RECIPE), "--interpreter", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0 and "→ [B, 6, 28, 28]" in done.stdout, done.stderr
    where = subprocess.run(
        [str(python), "-c", "import shapelens; print(shapelens.__file__)"], capture_output=True, text=True, env=environment
    )
    assert where.stdout.startswith(str(tmp_path / "site"))


@pytest.mark.slow("installs the package")
def test_uvx_runs_it_without_an_installation(built: list[Path], tmp_path: Path) -> None:
    """What it needs is downloaded first, by pip, from wherever this environment came; uv then asks no index."""
    wheel, lock = built[0], ROOT / "requirements.lock"

    def download(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        subprocess.run([*pip, "--constraint", str(lock), "--dest", str(folder), str(wheel)], check=True)
        (folder / wheel.name).unlink(missing_ok=True)  # It is the one that was built.

    needs = [sys.version.encode(), lock.read_bytes(), (ROOT / "pyproject.toml").read_bytes()]
    wheels = kept(f"needs-{digest(needs)}", download)
    uvx = [str(Path(sys.executable).with_name("uvx")), "--offline", "--no-index", "--find-links", str(wheels), "--python", sys.executable]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    environment["UV_CACHE_DIR"] = str(tmp_path / "cache")
    command = [*uvx, "--from", str(wheel), "shapelens", "show", str(RECIPE), "--interpreter", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert done.returncode == 0 and "→ [B, 6, 28, 28]" in done.stdout, done.stderr
