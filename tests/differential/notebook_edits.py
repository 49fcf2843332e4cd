"""Random edits of notebooks, in an editor: what is shown after them, and what a server shows that opens the result for the first time.

Cells are typed in, broken, mended, added, deleted, moved, split, joined, made Markdown and back, run, and saved; after every few edits the
hints and findings of all cells are compared with those of the same notebook opened afresh in another server.

    python tests/differential/notebook_edits.py [--edits 5000] [--between 20] [--seed 0] [--only N ...] [--python PYTHON]

--between: edits between two comparisons; --only: these of the ten notebooks. It prints what differs, with the edits that led there. Counted
apart is what is `surer` after the edits: what fails there ran before them, so that it is an error, where a fresh open can only say that the
example may be what is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # where it is run as a command

from lsp.editor import Editor
from lsp.notebook_editor import Notebook

DOUBT = re.compile(r"DiagnosticSeverity\.\w+| \(input guessed\)$")
LOOKS = (False, True, True, True)  # whether all was reopened before each look at a difference: what has limits of time may end otherwise

TORCH = "import torch\nfrom torch import nn\nimport torch.nn.functional as F"
NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        h = self.fc1(x).relu()
        return self.fc2(h)"""
CNN = """\
class CNN(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(6 * 14 * 14, classes)

    def forward(self, x):
        x = self.pool(self.conv(x).relu())
        return self.head(x.flatten(1))"""
ATTENTION = """\
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    return scores.softmax(-1) @ v"""
# Ten notebooks, by their cells of Python.
NOTEBOOKS: list[list[str]] = [
    [TORCH, "x = torch.rand(4, 3)", "w = torch.rand(3, 5)", "y = x @ w\nz = y.T", "s = torch.stack([y, y])"],
    [TORCH, NET, "net = Net()\nx = torch.rand(32, 8)\ny = net(x)", "loss = F.cross_entropy(y, torch.zeros(32, dtype=torch.long))"],
    [
        "%matplotlib inline\n" + TORCH,
        CNN,
        "model = CNN()\nx = torch.rand(16, 3, 32, 32)",
        "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nfor step in range(3):\n    y = model(x)\n    loss = y.pow(2).mean()\n"
        "    loss.backward()\n    opt.step()",
        "g = model.head.weight.grad",
    ],
    [TORCH, ATTENTION, "x = torch.rand(2, 7, 16)", "y = attention(x, x, x)", "heads = y.view(2, 7, 4, 4).transpose(1, 2)"],
    ["!pip install torch\nimport torch", "%%time\nx = torch.rand(2, 3)\n%time y = x.T", "%%bash\nls", "files = !ls\nz = y @ x", "z.shape?"],
    [TORCH, NET.replace("Linear(16, 4)", "Linear(15, 4)"), "x = torch.rand(5, 8)\ny = Net()(x)", "w = x @ x", "v = torch.cat([x, y])"],
    [
        TORCH,
        "def norm(x: torch.Tensor):\n    mean = x.mean(-1, keepdim=True)\n    return x - mean",
        "x = torch.rand(6, 2)\ny = norm(x)",
        "def pairs(a, b):\n    d = a[:, None] - b[None]\n    return d.norm(dim=-1)",
        "p = pairs(x, y)",
    ],
    [
        TORCH + "\nfrom torch.utils.data import DataLoader, TensorDataset",
        "data = TensorDataset(torch.rand(100, 8), torch.zeros(100, dtype=torch.long))\nloader = DataLoader(data, batch_size=20)",
        "model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))",
        "for xb, yb in loader:\n    out = model(xb)\n    loss = F.cross_entropy(out, yb)",
        "pred = out.argmax(1)\nright = (pred == yb).sum()",
    ],
    [TORCH, NET, CNN, "a = Net()(torch.rand(2, 8))\nb = CNN(4)(torch.rand(2, 3, 32, 32))", "c = a + b"],
    [
        "import torch  # 🙂 größer",
        "größe = 3\nx = torch.rand(größe, 4)  # 𝕏",
        "'🙂'; y = x.sum(0)",
        "t = {'ä': x, 'ö': y}",
        "u = torch.outer(y, y)",
    ],
]
STATEMENTS = [
    *("u = x + 1", "v = torch.cat([x, x])", "m = x.mean(0)", "q = x @ x.T", "r = x.reshape(-1)", "x = torch.rand(6, 8)", "y = y * 2"),
    *("# a comment 🙂", "%time k = x.sum()", "!ls", "n = x.size(0)", "for i in range(2):\n    e = x[i]", "t = x.unsqueeze(0)", "x.shape?"),
    *("def f(a):\n    return a.mean(-1)", "o = f(x)", "", "wrong = x @ torch.rand(77, 2)", "import math", "w = torch.zeros(3, 5)"),
]
BREAKS = ["(", "[", "'", "def ", "= ", ")"]
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass
class Difference:
    """A comparison that failed: after which edits of which notebook, and what was said where another server says something else."""

    notebook: int
    edits: list[str]
    cells: list[str]
    said: list[str] = field(default_factory=list)


class Edits:
    """Makes one random edit after the other of an open notebook."""

    def __init__(self, notebook: Notebook, source: random.Random) -> None:
        self.notebook = notebook
        self.made: list[str] = []
        self._random = source
        self._mended: dict[str, str] = {}  # by URI: texts of cells before they were broken

    def make(self) -> None:
        """Make one."""
        kinds: list[tuple[Callable[[], None], int]] = [
            *((self._number, 12), (self._line, 8), (self._remove_line, 3), (self._break, 4), (self._mend, 6), (self._whole, 2)),
            *((self._insert, 5), (self._delete, 3), (self._move, 4), (self._split, 3), (self._join, 3), (self._markdown, 2)),
            *((self._run, 1), (self._save, 1)),
        ]
        kind = self._random.choices([each for each, _ in kinds], [weight for _, weight in kinds])[0]
        kind()

    def end(self) -> None:
        """Leave the cell that is being typed in: one that does not parse there is taken to parse again soon."""
        self.notebook.insert(len(self.notebook.cells), "")
        self.notebook.delete(len(self.notebook.cells) - 1)

    def _index(self) -> int:
        return self._random.randrange(len(self.notebook.cells))

    def _told(self, what: str) -> None:
        self.made.append(what)

    def _replace(self, index: int, start: int, end: int, new: str) -> None:
        self.notebook.replace_at(index, start, end, new)

    def _number(self) -> None:
        index = self._index()
        found = list(NUMBER.finditer(self.notebook.texts[index]))
        if found:
            number = self._random.choice(found)
            new = str(self._random.choice([2, 3, 4, 5, 6, 8, 10, 16, 32]))
            self._told(f"cell {index}: {number.group()} at {number.start()} → {new}")
            self._replace(index, number.start(), number.end(), new)

    def _line(self) -> None:
        index = self._index()
        starts = [0, *(match.end() for match in re.finditer("\n", self.notebook.texts[index]))]
        statement, start = self._random.choice(STATEMENTS), self._random.choice(starts)
        self._told(f"cell {index}: {statement!r} inserted at {start}")
        self._replace(index, start, start, statement + "\n")

    def _remove_line(self) -> None:
        index = self._index()
        lines = list(re.finditer(r"[^\n]*\n", self.notebook.texts[index]))
        if lines:
            line = self._random.choice(lines)
            self._told(f"cell {index}: {line.group()!r} removed at {line.start()}")
            self._replace(index, line.start(), line.end(), "")

    def _break(self) -> None:
        index = self._index()
        text = self.notebook.texts[index]
        self._mended.setdefault(self.notebook.cells[index], text)
        new, start = self._random.choice(BREAKS), self._random.randrange(len(text) + 1)
        self._told(f"cell {index}: {new!r} inserted at {start}")
        self._replace(index, start, start, new)

    def _mend(self) -> None:
        broken = [index for index, uri in enumerate(self.notebook.cells) if uri in self._mended]
        if broken:
            index = self._random.choice(broken)
            self._told(f"cell {index}: mended")
            self.notebook.set_text(index, self._mended.pop(self.notebook.cells[index]))

    def _whole(self) -> None:
        index, text = self._index(), self._random.choice(STATEMENTS)
        self._told(f"cell {index}: {text!r} in the place of its text")
        self.notebook.set_text(index, text)

    def _insert(self) -> None:
        index, text = self._random.randrange(len(self.notebook.cells) + 1), self._random.choice(STATEMENTS)
        self._told(f"cell {index}: new, {text!r}")
        self.notebook.insert(index, text)

    def _delete(self) -> None:
        if len(self.notebook.cells) > 3:
            index = self._index()
            self._told(f"cell {index}: deleted")
            self.notebook.delete(index)

    def _move(self) -> None:
        index, to = self._index(), self._index()
        if index != to:
            self._told(f"cell {index}: moved to {to}")
            self.notebook.move(index, to)

    def _split(self) -> None:
        index = self._index()
        line = self._random.randrange(self.notebook.texts[index].count("\n") + 1)
        self._told(f"cell {index}: split at line {line}")
        self.notebook.split(index, line)

    def _join(self) -> None:
        if len(self.notebook.cells) > 3:
            index = self._random.randrange(len(self.notebook.cells) - 1)
            self._told(f"cell {index}: joined with the one below")
            self.notebook.join(index)

    def _markdown(self) -> None:
        index = self._index()
        self._told(f"cell {index}: made Markdown, and Python again")
        self.notebook.to_markdown_and_back(index)

    def _run(self) -> None:
        index = self._index()
        self._told(f"cell {index}: run")
        self.notebook.ran(index, len(self.made))

    def _save(self) -> None:
        self._told("saved")
        self.notebook.save()


async def shown(notebook: Notebook) -> list[str]:
    """What an editor shows of a notebook: a line for each hint and finding."""
    found = []
    for number, (uri, hints) in enumerate(zip(notebook.cells, await notebook.hints(), strict=True)):
        found += [f"cell {number}, line {line}: {label}" for line, label in sorted(hints.items())]
        published = notebook.editor.published.get(uri)
        for each in published.diagnostics if published is not None else ():
            where = f"{each.range.start.line}:{each.range.start.character}-{each.range.end.line}:{each.range.end.character}"
            found.append(f"cell {number}, {where}: {each.severity}: {each.code}: {each.message}")
    return found


async def compare(number: int, edits: int, between: int, seed: int, python: str) -> tuple[int, list[Difference], int]:
    """Edit one of the notebooks; how many edits were made, what differed from a fresh open, and how often it was only surer."""
    source = random.Random(f"{seed} {number}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        edited, fresh = Editor(root), Editor(root)
        for editor in (edited, fresh):
            await editor.start("--interpreter", python)
        found: list[Difference] = []
        made, surer = 0, 0
        name = f"notebook_{number}.ipynb"
        while made < edits:
            notebook = Notebook.open(edited, name, *NOTEBOOKS[number])
            maker = Edits(notebook, source)
            for _ in range(5):  # Five times from the same beginning, so that it does not become a heap of lines.
                for _ in range(min(between, edits - made)):
                    maker.make()
                    made += 1
                    if source.random() < 0.3:  # Else the next edit comes before anything was said.
                        await edited.idle(reopened=False)
                maker.end()
                difference = await _compared(notebook, fresh, name)
                if difference and _is_surer(difference):
                    surer += 1
                elif difference:
                    found.append(Difference(number, list(maker.made), notebook.texts, difference))
                if difference:
                    break
                if made >= edits:
                    break
            notebook.close()
            await edited.idle(reopened=False)
            left = [uri for uri, published in edited.published.items() if published.diagnostics]
            if left:
                said = [f"{uri} has findings after its notebook was closed" for uri in left]
                found.append(Difference(number, list(maker.made), [], said))
                edited.published.clear()
        for editor in (edited, fresh):
            trouble = [line for line in editor.log if "Traceback" in line]
            if trouble:
                found.append(Difference(number, [], [], trouble))
            await editor.stop()
    return made, found, surer


async def _compared(notebook: Notebook, fresh: Editor, name: str) -> list[str]:
    """What differs between what is shown of a notebook and of the same one opened in another server, as lines of a diff.

    What has limits of time may end otherwise where the machine is busy: a difference counts if it is to each of several fresh opens.
    """
    opened: list[list[str]] = []
    differing: list[str] = []
    for reopened in LOOKS:
        other = Notebook.open(fresh, name, *notebook.texts, saved=False, uri=notebook.uri)
        await fresh.idle(reopened=reopened)
        await notebook.editor.idle(reopened=reopened)
        here = await shown(notebook)
        opened.append(await shown(other))
        other.close()
        await fresh.idle(reopened=False)
        if here in opened:
            return []
        there = opened[-1]
        differing = [f"- {line}" for line in here if line not in there] + [f"+ {line}" for line in there if line not in here]
    return differing


def _is_surer(difference: list[str]) -> bool:
    """Whether both show the same, but for the doubts of the fresh open."""
    here = {DOUBT.sub("", line[2:]) for line in difference if line.startswith("-")}
    there = {DOUBT.sub("", line[2:]) for line in difference if line.startswith("+")}
    return here == there and any("(input guessed)" in line for line in difference if line.startswith("+"))


def main() -> int:
    """Compare, and print what differs; 1 where something does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=5000, help="of all notebooks together (default: 5000)")
    parser.add_argument("--between", type=int, default=20, help="edits between two comparisons (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", default=list(range(len(NOTEBOOKS))), help="the numbers of notebooks")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the cells (default: this one)")
    options = parser.parse_args()
    total, differences, surer = 0, 0, 0
    for number in options.only:
        made, found, doubted = asyncio.run(
            compare(number, options.edits // len(options.only), options.between, options.seed, options.python)
        )
        total, differences, surer = total + made, differences + len(found), surer + doubted
        print(f"notebook {number}: {made} edits, {len(found)} differences, {doubted} surer", flush=True)
        for each in found:
            print(*(f"    {line}" for line in each.said), "  after:", *(f"    {line}" for line in each.edits), sep="\n")
            print("  cells:", *(f"    {text!r}" for text in each.cells), sep="\n", flush=True)
    print(f"{total} edits, {differences} differences, {surer} surer")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
