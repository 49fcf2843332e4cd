"""Which of several open documents runs: the one that was opened or edited last, and nothing more for another one meanwhile.

The server logs each run that it asks for.
"""

from __future__ import annotations

import asyncio
import re
import time

from lsp.editor import Editor
from lsp.test_what_runs import opened, settled
from shapelens.lsp.runs.pipeline import PAUSE_IN_TYPING

MODEL = """\
from torch import nn
from {module} import Block
# shapelens: Model()(f32[B:2, 8])
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)
    def forward(self, x):
        return self.head(x)
"""
BLOCK = """\
from torch import nn
# shapelens: Block()(f32[B:2, 16])
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)
    def forward(self, x):
        return self.fc(x)
"""
PART = """\
import torch
from torch import nn
class Part(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, 16)
    def forward(self, x):
        return self.fc(x)
def energy(x, y):
    return (x * y).sum()
total = torch.zeros(3)
while total.sum() < 10:
    total = total + torch.rand(3)
number = 0
while number < 10**9:
    number += 1
"""
USER = """\
import torch
from part import Part, energy
part = Part(8)
out = part(torch.randn(4, 8))
print(energy(out, out))
"""
SCRIPT = """\
import torch
from torch import nn
# shapelens: Typed()(f32[B:2, 16])
class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)
    def forward(self, x):
        return self.fc(x)
model = Typed()
out = model(torch.randn(4, 16))
print(out)
"""
BETWEEN_KEYS = 0.2  # seconds


def asked_for(editor: Editor, since: int) -> list[str]:
    """The names of the files whose runs and programs have been asked for, in their order."""
    found = [re.fullmatch(r"lsp\.runs: (?:run \d+: .* of|program \d+:) .*?([^/\\]+)", text) for text in editor.log[since:]]
    return [each[1] for each in found if each is not None]


async def test_a_file_that_is_opened_runs_before_those_that_import_it(watched: Editor) -> None:
    (watched.root / "block.py").write_text(BLOCK)
    await opened(watched, "model.py", MODEL.format(module="block"))
    said = len(watched.log)
    block = watched.open("block.py", BLOCK)
    assert (await watched.hints_when(block))[6] == "x: [B, 16]"
    assert asked_for(watched, said)[0] == "block.py"
    await watched.until(lambda: "model.py" in asked_for(watched, said))


async def test_nothing_more_is_run_for_a_document_once_another_one_has_been_opened(watched: Editor) -> None:
    (watched.root / "user.py").write_text(USER)
    part = watched.open("part.py", PART)
    await watched.until(lambda: any(re.search(r"program \d+: .*part\.py", text) for text in watched.log))
    said = len(watched.log)
    other = watched.open("other.py", BLOCK)
    await settled(watched, other)
    assert asked_for(watched, said)[0] == "other.py"
    await watched.until(lambda: "user.py" in asked_for(watched, said))  # It is made up for.
    assert (await watched.hints_when(part, lambda hints: "x: [4, 8]" in str(hints) or "x: [B, 8]" in str(hints)))[6]


async def test_while_somebody_types_the_file_is_not_followed_as_a_program(watched: Editor) -> None:
    def programs(since: int) -> list[str]:
        return [text for text in watched.log[since:] if re.search(r"program \d+: .*typed\.py", text)]

    uri = watched.open("typed.py", SCRIPT)
    await watched.until(lambda: bool(programs(0)))
    quick = 0
    last, said = 0.0, len(watched.log)
    for width in range(17, 57):
        watched.replace(uri, f"nn.Linear(16, {width - 1})", f"nn.Linear(16, {width})")
        now = time.monotonic()
        if now - last < PAUSE_IN_TYPING and width > 18:  # The first edit follows no other one.
            quick += 1
            assert programs(said) == []
        last, said = now, len(watched.log)
        await watched.diagnostics(uri)
        await asyncio.sleep(BETWEEN_KEYS)
        if quick == 5:
            break
    assert quick == 5
    await watched.until(lambda: bool(programs(said)))
    assert await watched.hints_when(uri, lambda hints: f"→ [4, {width}]" in hints.values())
