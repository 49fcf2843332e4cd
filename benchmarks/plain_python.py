"""How long plain Python takes where a program is followed, beside Python itself: what programs do before there is a tensor.

    python benchmarks/plain_python.py [--items 1000000] [--rounds 5]

Each task is rewritten as a program is, and run by turns with itself as it is written, in one process that has torch. The seconds are
those of the processor, the median of all rounds; `sizes` says whether both made as much.
"""

from __future__ import annotations

import argparse
import ast
import linecache
import random
import statistics
import time
from typing import Any

from shapelens.worker.loading.unobserved import Unobserved
from shapelens.worker.program.flow import Flow
from shapelens.worker.program.program import gradients_assumed
from shapelens.worker.rewrite.resilient import resilient
from shapelens.worker.rewrite.site_table import SiteTable
from shapelens.worker.rewrite.sites import ASSUMED, NUMBERS, TURN, TURNS, WINDOW
from shapelens.worker.trace.recorder import Recorder
from shapelens.worker.unknown.conditions import assumed
from shapelens.worker.unknown.unknown_sizes import of_numbers, turn, turns
from shapelens.worker.unknown.windows import window

TABLE = "stoi = {c: i for i, c in enumerate(sorted(set(text)))}\n"
TASKS = {
    "comprehension": TABLE + "encode = lambda s: [stoi[c] for c in s]\nmade = encode(text)",
    "sorted(set(…))": "made = sorted(list(set(text.split())))",
    "loop with append": TABLE + "made = []\nfor c in text:\n    made.append(stoi[c])",
    "while": TABLE + "i, made = 0, []\nwhile i < len(text):\n    made.append(stoi[text[i]])\n    i += 1",
    "vocabulary": """
def vocabulary(words):
    made = {}
    for word in words:
        if word not in made:
            made[word] = len(made)
    return made
made = vocabulary(text.split(" "))""",
    "vocabulary of a class": """
class Vocabulary:
    def __init__(self):
        self.index, self.words = {}, []
    def add(self, word):
        if word not in self.index:
            self.index[word] = len(self.words)
            self.words.append(word)
        return self.index[word]
vocabulary = Vocabulary()
made = [vocabulary.add(word) for line in text.splitlines() for word in line.split()]""",
    "map": TABLE + "made = list(map(lambda c: stoi[c], text))",
    "generator": TABLE + "made = set(stoi[c] for c in text)",
    "pairs": "made = []\nfor word in text.split():\n    for a, b in zip(word, word[1:]):\n        made.append((a, b))",
}


def followed(code: Any, recorder: Recorder, text: str) -> tuple[float, int]:
    """Seconds that a program takes where it is followed, and how much it has made."""
    failures: list[BaseException] = []
    unobserved = Unobserved(recorder)
    flow = Flow(lambda name: None, lambda error, frame, line: failures.append(error), unobserved)
    names: dict[str, Any] = {**recorder.reporters(), **unobserved.reporters(), **flow.names(), "text": text}
    names.update({ASSUMED: assumed, TURNS: turns, TURN: turn, WINDOW: window})
    names.update({own: of_numbers[name] for name, own in NUMBERS.items()})
    with gradients_assumed():
        seconds = timed(code, names)
    unobserved.restore()
    if failures:
        raise failures[0]
    return seconds, len(names["made"])


def timed(code: Any, names: dict[str, Any]) -> float:
    """Seconds of the processor that code takes."""
    start = time.process_time()
    exec(code, names)
    return time.process_time() - start


def main() -> None:
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(5_000)]
    text = ""
    while len(text) < options.items:
        text += " ".join(chance.choices(words, k=10)) + "\n"
    print(f"{'task':24}{'Python':>10}{'followed':>10}{'ratio':>8}  sizes")
    for name, task in TASKS.items():
        table = SiteTable()
        recorder = Recorder(table, lambda module, site: None)
        recorder.add_file(name)
        linecache.cache[name] = (len(task), None, task.splitlines(True), name)
        plain, rewritten = (compile(each, name, "exec", dont_inherit=True) for each in (task, resilient(ast.parse(task), table.sites)))
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(options.rounds):
            names: dict[str, Any] = {"text": text}
            times[0].append(timed(plain, names))
            seconds, size = followed(rewritten, recorder, text)
            times[1].append(seconds)
        first, second = map(statistics.median, times)
        said = "same" if size == len(names["made"]) else f"{size}, not {len(names['made'])}"
        print(f"{name:24}{first:10.3f}{second:10.3f}{second / first:8.2f}  {said}", flush=True)


if __name__ == "__main__":
    main()
