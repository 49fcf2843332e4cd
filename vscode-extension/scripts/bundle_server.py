#!/usr/bin/env python3
"""Make `bundled/`: the language server and all that it needs, for every platform in PLATFORMS, from the pinned lock.

    python scripts/bundle_server.py              # make it, if anything that goes into it has changed
    python scripts/bundle_server.py --lock       # write the hashes of the pinned versions into the lock again

Needs the standard library and pip only. What comes out:

    bundled/launch.py      what the extension starts
    bundled/server/        the package shapelens
    bundled/libs/          its needs, in pure Python
    bundled/libcst/        libcst, with one native module for each platform and Python side by side
    bundled/THIRD_PARTY_NOTICES.txt

libcst stands on its own so that launch.py can leave it out where the bundle has no native module that fits.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

EXTENSION = Path(__file__).resolve().parent.parent
SERVER = EXTENSION.parent / "server" / "shapelens"
LOCK = EXTENSION / "bundled-requirements.txt"
LAUNCH = EXTENSION / "scripts" / "launch.py"
WHEELS = EXTENSION / ".wheels"
BUNDLED = EXTENSION / "bundled"
STAMP = BUNDLED / "stamp.json"

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Where PyTorch itself is offered today. libcst has no wheel for macOS on Intel since 1.9, and PyTorch none since 2.3.
PLATFORMS = {
    "linux x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "linux aarch64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "macOS arm64": ("macosx_11_0_arm64",),
    "Windows x64": ("win_amd64",),
}
NATIVE = "libcst"
# libcst ships its own tests and a code generator for them; they are a third of it and nothing imports them.
LEFT_OUT = re.compile(r"(^|/)(tests|testing)/|^libcst/(codegen|codemod/commands)/|\.pyi$")


class BundleError(Exception):
    """Something that the person who runs the script has to know; printed without a traceback."""


def pins() -> dict[str, str]:
    """The pinned versions of the lock, by name."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^\s\\;]+)", LOCK.read_text("utf-8"), re.MULTILINE))


def download(arguments: list[str], what: str) -> None:
    """Run `pip download` into WHEELS. Raises BundleError with pip's own words."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "--dest", str(WHEELS), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-3:]
        raise BundleError(f"pip could not download {what}:\n  " + "\n  ".join(errors))


def fetch_wheels(*, hashed: bool) -> list[Path]:
    """All wheels of the lock, downloaded unless they are there; checked against the lock's hashes if `hashed`.

    Raises BundleError where one cannot be had or is another than the lock says.
    """
    WHEELS.mkdir(exist_ok=True)
    wheels: list[Path] = []
    for name, version in pins().items():
        tagged = [(python, platform) for platform in PLATFORMS for python in PYTHONS] if name == NATIVE else [("", "")]
        for python, platform in tagged:
            wheel = find_wheel(name, version, python, platform)
            if wheel is None:
                what = f"{name} {version}" + (f" for {platform}, Python {python}" if platform else "")
                print(f"  downloading {what}", flush=True)
                tags = [part for tag in PLATFORMS[platform] for part in ("--platform", tag)] if platform else ["--platform", "any"]
                tags += ["--implementation", "cp" if platform else "py", "--python-version", python or PYTHONS[0]]
                download([f"{name}=={version}", *tags], what)
                wheel = find_wheel(name, version, python, platform)
            if wheel is None:
                raise BundleError(f"pip downloaded {what}, but no wheel of it is in {WHEELS}")
            wheels.append(wheel)
    if hashed:
        text = LOCK.read_text("utf-8")
        for wheel in wheels:
            if digest(wheel) not in text:
                advice = f"Delete it from {WHEELS.name}/, or run with --lock if its version was changed on purpose."
                raise BundleError(f"{wheel.name} has a hash that is not in {LOCK.name}. {advice}")
    return wheels


def find_wheel(name: str, version: str, python: str, platform: str) -> Path | None:
    """The wheel in WHEELS for this Python and platform ("" for pure ones)."""
    for wheel in sorted(WHEELS.glob(f"{name.replace('-', '_')}-{version}-*.whl")):
        if not platform and wheel.name.endswith("-none-any.whl"):
            return wheel
        if platform and f"-cp{python.replace('.', '')}-" in wheel.name and any(tag in wheel.name for tag in PLATFORMS[platform]):
            return wheel
    return None


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_lock() -> None:
    """Rewrite the lock with the hashes of all wheels of the pinned versions."""
    head = "".join(line + "\n" for line in LOCK.read_text("utf-8").splitlines() if line.startswith("#"))
    hashes: dict[str, list[str]] = {}
    for wheel in fetch_wheels(hashed=False):
        hashes.setdefault(wheel.name.split("-")[0].replace("_", "-"), []).append(digest(wheel))
    body = ""
    for name, version in pins().items():
        body += f"{name}=={version}" + "".join(f" \\\n    --hash=sha256:{value}" for value in sorted(set(hashes[name]))) + "\n"
    LOCK.write_text(head + body, "utf-8")


def unpack(wheels: list[Path]) -> None:
    """Lay the wheels out under BUNDLED; of libcst's wheels the first gives the Python files, each its native module."""
    notices = ["ShapeLens carries these packages, each under its own licence.\n"]
    seen: set[str] = set()
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if ".dist-info/" in member:
                    if "license" in member.lower().rsplit("/", 1)[-1] and name not in seen:
                        notices.append(f"\n{'=' * 100}\n{name} {version}\n\n{archive.read(member).decode('utf-8')}")
                    continue
                native = re.search(r"/native\.[^/]+\.(so|pyd)$", member) is not None
                if member.endswith("/") or LEFT_OUT.search(member) or (name in seen and not native):
                    continue
                target = BUNDLED / ("libcst" if name == NATIVE else "libs") / member
                if native and target.exists():
                    raise BundleError(f"two wheels hold a file {member}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(member))
        seen.add(name)
    (BUNDLED / "THIRD_PARTY_NOTICES.txt").write_text("".join(notices), "utf-8")


def missing_imports() -> list[str]:
    """What the modules that `launch.py` runs come to import, and neither the standard library nor BUNDLED has: one line each.

    The packages are laid out here for systems that are not this one, so that their files are read rather than run.
    """
    missing, seen = [], set()
    waiting = [BUNDLED / "launch.py", *(BUNDLED / "server" / "shapelens" / each / "__main__.py" for each in ("lsp", "diagnosis"))]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name, line in imports_of(path):
            found = [file for folder in ("server", "libs", "libcst") if (file := module_file(BUNDLED / folder, name))]
            waiting += found
            if not found and name.partition(".")[0] not in sys.stdlib_module_names:
                missing.append(f"{path.relative_to(BUNDLED)}:{line} imports {name}")
    return sorted(missing)


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """The modules that a file imports, with the line: of a package of others only as it is loaded, of ours and of launch.py anywhere."""
    tree = ast.parse(path.read_bytes())
    ours = "libs" not in path.parts and "libcst" not in path.parts
    package = path.parent.relative_to(BUNDLED).parts[1:]
    for statement in ast.walk(tree) if ours else tree.body:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, statement.lineno) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            start = package[: len(package) - statement.level + 1] if statement.level else ()
            module = ".".join([*start, *([statement.module] if statement.module else [])])
            yield module, statement.lineno
            # What is imported from a package may be a module of it.
            yield from ((f"{module}.{alias.name}", statement.lineno) for alias in statement.names if is_module(f"{module}.{alias.name}"))


def is_module(name: str) -> bool:
    """Whether something in BUNDLED has this name."""
    return any(module_file(BUNDLED / folder, name) for folder in ("server", "libs", "libcst"))


def module_file(folder: Path, name: str) -> Path | None:
    """The Python file of a module of this name below a folder of packages; a native module stands for its package."""
    place = folder.joinpath(*name.split("."))
    candidates = [place / "__init__.py", place.with_name(place.name + ".py"), *place.parent.glob(f"{place.name}.*.so")]
    return next((each for each in candidates if each.exists()), None)


def server_files() -> list[Path]:
    return sorted(path for path in SERVER.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def ingredients() -> dict[str, str]:
    """All that decides what BUNDLED holds: relative path -> hash."""
    files = [LOCK, LAUNCH, Path(__file__).resolve(), *server_files()]
    return {path.relative_to(EXTENSION.parent).as_posix(): digest(path) for path in files}


def bundle() -> bool:
    """Make BUNDLED; False if it was up to date."""
    wanted = ingredients()
    # A run of the bundle on this machine leaves byte code behind, which has no business in a package.
    for cache in list(BUNDLED.rglob("__pycache__")):
        shutil.rmtree(cache)
    if STAMP.exists():
        had = json.loads(STAMP.read_text("utf-8"))
        if had == wanted:
            return False
        # Only our own files changed: the libraries, which are nearly all of it, stay as they are.
        keep = all(had.get(name) == wanted[name] for name in wanted if not name.startswith("server/"))
        STAMP.unlink()
    else:
        keep = False
    if not keep:
        wheels = fetch_wheels(hashed=True)
        shutil.rmtree(BUNDLED, ignore_errors=True)
        BUNDLED.mkdir()
        unpack(wheels)
    shutil.rmtree(BUNDLED / "server", ignore_errors=True)
    for path in server_files():
        target = BUNDLED / "server" / path.relative_to(SERVER.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copyfile(LAUNCH, BUNDLED / "launch.py")
    if missing := missing_imports():
        raise BundleError(f"bundled/ lacks what it needs: {'; '.join(missing[:5])}")
    STAMP.write_text(json.dumps(wanted, indent=0), "utf-8")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Make bundled/, the server and all that it needs.")
    parser.add_argument("--lock", action="store_true", help="write the hashes of the pinned versions into the lock again")
    options = parser.parse_args()
    try:
        if options.lock:
            write_lock()
            print(f"{LOCK.name} has the hashes of {len(pins())} packages.")
            return 0
        made = bundle()
    except BundleError as error:
        print(f"bundle_server: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file())
    print(f"bundled/ {'made' if made else 'is up to date'}: {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
