"""Reads how a project says that a program is started: `python train.py -c configs/base.json` in a README, or in a script of the shell.

What stands there is evidence of the program's options, as a call is of a class's arguments. Where there are several such lines, the first
one that speaks of the file for which the program is followed counts, or else the first one that trains.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...regular_files import read_regular

MOST_ENTRIES = 2000  # of folders that are looked through for scripts of the shell
MOST_SCRIPTS = 40  # that are read
LARGEST = 1 << 18  # bytes of a text
_README = re.compile(r"readme(\.\w+)?\Z", re.IGNORECASE)
_STARTERS = ("torchrun", "accelerate", "deepspeed", "srun")
_ENDS_COMMAND = re.compile(r"(\d?>>?.*|<|\||\|\||&|&&|;|2>&1)\Z")
_PLACEHOLDER = re.compile(r"[<>{}$\[\]…]|\.\.\.|path[/_]to|YOUR|^/?path$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?(\w+)=([^\s;]*)|\bfor\s+(\w+)\s+in\s+([^\s;]+)", re.MULTILINE)
# What runs a model that was trained before says little of how it is built, and asks for a file that is not there.
_AFTERWARDS = re.compile(r"--?(eval\w*|test\w*|resume\w*|inference|export|checkpoint\w*|ckpt\w*|pretrained|load\w*|demo)\b", re.IGNORECASE)


class Command(NamedTuple):
    """The arguments of a program, and whether they, or the text that has them, speak of the file for which it is followed."""

    arguments: List[str]
    is_about: bool


def documented_command(file: str, root: str, wanted: str) -> Optional[Command]:
    """The command line of a program that its project documents; None where there is none. wanted: the stem of a file, or ""."""
    if not root or not os.path.isabs(file):
        return None
    first: Optional[Command] = None
    for path in _texts(file, root, wanted):
        try:
            text = read_regular(path, LARGEST).decode("utf-8", "replace")
        except OSError:
            continue
        if os.path.basename(file) not in text and os.path.splitext(os.path.basename(file))[0] not in text:
            continue
        for arguments in _commands(text, path, file, root):
            is_about = bool(wanted) and any(_speaks_of(wanted, each) for each in (os.path.basename(path), *arguments))
            if is_about:
                return Command(arguments, True)
            if first is None and arguments:
                first = Command(arguments, False)
    return first


def _speaks_of(wanted: str, text: str) -> bool:
    return re.search(r"(?<![a-z0-9])%s" % re.escape(wanted.lower()), text.lower()) is not None


def _texts(file: str, root: str, wanted: str) -> Iterator[str]:
    """The READMEs of a file's folder and of those around it, the nearest first, then the scripts of the shell in the project."""
    folder = os.path.dirname(file)
    while True:
        yield from sorted(entry.path for entry in _entries(folder) if _README.match(entry.name))
        if folder == root or not folder.startswith(root):
            break
        folder = os.path.dirname(folder)
    scripts: List[str] = []
    waiting, looked_at, seen = [os.path.dirname(file), root], set(), 0
    while waiting and seen < MOST_ENTRIES:
        folder = waiting.pop(0)
        entries = _entries(folder) if folder not in looked_at else []
        looked_at.add(folder)
        seen += len(entries)
        for entry in entries:
            if entry.name.endswith(".sh"):
                scripts.append(entry.path)
            elif not entry.name.startswith(".") and entry.name not in ("site-packages", "node_modules") and _is_folder(entry):
                waiting.append(entry.path)
    scripts.sort(key=lambda path: (not (wanted and _speaks_of(wanted, os.path.basename(path))), path.count(os.sep), path))
    yield from scripts[:MOST_SCRIPTS]


def _entries(folder: str) -> List["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return sorted((entry for _, entry in zip(range(MOST_ENTRIES), found)), key=lambda entry: entry.name)
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _commands(text: str, path: str, file: str, root: str) -> Iterator[List[str]]:
    """The arguments with which a text starts a program, of each place where it does."""
    text = re.sub(r"\\[ \t]*\r?\n", " ", text)
    known: Dict[str, str] = {}
    if path.endswith(".sh"):
        for match in _ASSIGNED.finditer(text):
            known.setdefault(match[1] or match[3], (match[2] if match[1] else match[4]).strip("\"'"))
    for line in text.splitlines():
        if os.path.splitext(os.path.basename(file))[0] not in line:
            continue
        try:
            words = shlex.split(line.strip().strip("`").lstrip("$>! "), comments=True)
        except ValueError:
            continue
        at = next((number for number, word in enumerate(words) if _is_program(words[:number], word, path, file, root)), None)
        if at is None:
            continue
        arguments = list(_known_ones(words[at + 1 :], known))
        if not any(map(_AFTERWARDS.match, arguments)):
            yield arguments


def _is_program(before: List[str], word: str, path: str, file: str, root: str) -> bool:
    """True if a word of a command line is the program, behind what starts it."""
    started = any(re.match(r"python[\d.]*\Z", os.path.basename(each)) or each in _STARTERS for each in before)
    if not started:
        return False
    if before[-1] == "-m":
        word = word.replace(".", os.sep) + ".py"
    places = [os.path.dirname(path), root]
    return word.endswith(".py") and any(os.path.normpath(os.path.join(place, word)) == file for place in places)


def _known_ones(words: List[str], known: Dict[str, str]) -> Iterator[str]:
    """The arguments of a command line whose values are said; an option goes with its placeholder."""
    option: Tuple[str, ...] = ()
    for word in words:
        if _ENDS_COMMAND.match(word):
            break
        word = _VARIABLE.sub(lambda match: known.get(match[1], match[0]), word)
        if _PLACEHOLDER.search(word):
            option = ()
            continue
        if word.startswith("-") and not re.match(r"-[\d.]", word):
            yield from option
            option = (word,)
        else:
            yield from (*option, word)
            option = ()
    yield from option
