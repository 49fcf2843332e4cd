"""Models that are run for real: what depends on what, what is left out, and that nothing of it stays for the runs after it."""

from __future__ import annotations

import sys
from pathlib import Path

from forked_workers import forked_workers as forked_workers
from shapelens.batch import Analysed, Batch
from shapelens.protocol import DeepReport

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
LEAKS = """
class Model(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, width), nn.Linear(width, 50)
        self.register_buffer("mask", torch.ones(512, 512).tril())

    def forward(self, ids):
        x = self.embed(ids)
        weights = (x @ x.transpose(1, 2)).softmax(-1)
        return self.head(weights @ x)
"""


async def _examined(folder: Path, text: str, example: str) -> tuple[Analysed, DeepReport]:
    async with Batch(sys.executable, root=folder) as batch:
        analysed = await batch.analyse(folder / "model.py", HEAD + text, examples=[example], deep=False)
        report = await batch.examine(analysed, analysed.trace.examples[0])
        again = await batch.analyse(folder / "model.py", HEAD + text, examples=[example])
        assert [hint.label for hint in again.hints] == [hint.label for hint in analysed.hints], "nothing stays real"
        return analysed, report


async def test_the_future_leaks_where_a_mask_is_not_used(tmp_path: Path) -> None:
    analysed, report = await _examined(tmp_path, LEAKS, "Model()(i64[B:2, T:16])")
    (found,) = report.dependences
    assert (found.code, found.model, found.input, found.output) == ("future-leak", "Model", "ids", "")
    assert found.changed == list(range(found.place)), "all earlier steps change"
    assert found.claim is not None and (found.claim.kind, found.claim.text) == ("mask", "mask")
    text = analysed.module.lines.text_of(analysed.module.lines.span_from_bytes(found.trail[-1]))
    assert text == "weights @ x", "the first result that changes"


async def test_a_given_length_is_cut_down(tmp_path: Path) -> None:
    """A batch that cannot be named is as large as it was given; a few samples and steps of it are enough."""
    _, report = await _examined(tmp_path, LEAKS, "Model()(torch.randint(0, 50, (64, 500)))")
    assert [found.length for found in report.dependences] == [7]


async def test_what_is_too_large_is_not_run_for_real(tmp_path: Path) -> None:
    _, report = await _examined(tmp_path, LEAKS, "Model(4_000_000)(i64[B:2, T:16])")
    assert (report.dependences, report.runs) == ([], 0)
    assert report.skipped == "it has 400 million parameters, more than 200 million"


async def test_nothing_is_said_where_two_calls_differ(tmp_path: Path) -> None:
    text = LEAKS.replace("return self.head(weights @ x)", "self.mask += 1\n        return self.head(weights @ x) + self.mask[0, 0]")
    _, report = await _examined(tmp_path, text, "Model()(i64[B:2, T:16])")
    assert (report.dependences, report.skipped) == ([], "its results differ from call to call")


async def test_numbers_that_are_not_there_are_not_made_up(tmp_path: Path) -> None:
    """What stands in for a package gives nothing that a result could depend on."""
    text = "import attention_kernels_of_mine\n" + LEAKS.replace("weights @ x)", "attention_kernels_of_mine.attend(x))")
    _, report = await _examined(tmp_path, text, "Model()(i64[B:2, T:16])")
    assert not report.dependences and report.skipped


async def test_targets_a_step_ahead_say_that_a_model_is_causal(tmp_path: Path) -> None:
    """Not for a part of the model, which has no targets."""
    text = """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 32), nn.Linear(64, 50)
        self.lstm = nn.LSTM(32, 32, batch_first=True, bidirectional=True)

    def forward(self, ids):
        return self.head(self.lstm(self.embed(ids))[0])
"""
    step = """
def loss_of(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
"""
    _, report = await _examined(tmp_path, text, "Tagger()(i64[B:2, T:16])")
    assert not report.dependences
    _, report = await _examined(tmp_path, text + step, "Tagger()(i64[B:2, T:16])")
    assert [(found.code, found.claim and found.claim.text) for found in report.dependences] == [
        ("future-leak", "ids[:, :-1] and ids[:, 1:]")
    ]
    around = "\nclass Translator(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.encoder = Tagger()\n"
    _, report = await _examined(tmp_path, text + step + around, "Tagger()(i64[B:2, T:16])")
    assert not report.dependences
