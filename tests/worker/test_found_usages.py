"""What is read from a script's text, run in a worker: the batches of loaders, and the objects that collate functions make."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from shapelens.worker.search.usages.project_usages import usages
from worker.process import WorkerProcess

SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Sentences(Dataset):
    def __init__(self, count=100, words=12):
        self.count, self.words = count, words
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        return {"tokens": torch.arange(self.words) + index, "label": index % 3}

class Batch:
    def __init__(self, items):
        self.tokens = torch.stack([item["tokens"] for item in items])
        self.labels = torch.tensor([item["label"] for item in items])

class OfBatches(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.embed = nn.Embedding(200, 16)
        self.head = nn.Linear(16, classes)
    def forward(self, batch):
        return self.head(self.embed(batch.tokens).mean(1))

class OfKeywords(OfBatches):
    def forward(self, tokens, label=None):
        return self.head(self.embed(tokens).mean(1))

def train(model, loader):
    for batch in loader:
        loss = model(batch)

def main():
    data = Sentences(words=9)
    train(OfBatches(), DataLoader(data, batch_size=5, shuffle=True, collate_fn=Batch))
    model = OfKeywords(classes=4)
    for batch in DataLoader(data, 5):
        model(**batch)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("target", "classes"), [("OfBatches", 3), ("OfKeywords", 4)])
def test_a_batch_of_a_loader_is_what_the_model_gets(forking: WorkerProcess, tmp_path: Path, target: str, classes: int):
    text = dedent(SCRIPT)
    found = [one for one in usages(ast.parse(text), ["OfBatches", "OfKeywords"]) if one.target == target]
    trace, finished = forking.run(tmp_path / "sentences.py", text, f"{found[0].constructor}({found[0].arguments})")
    assert finished.outcome == "ok"
    assert trace is not None
    assert trace.examples[0].error is None
    returned = {seen.function: seen.values[0].shape for seen in trace.observations if seen.kind == "return"}
    assert returned[f"{target}.forward"] == [5, classes]
