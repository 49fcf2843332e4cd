"""The rules that tell what a function is given for a parameter that is no tensor, each alone."""

from __future__ import annotations

from typing import Any

import pytest

from shapelens.worker.program.function_arguments import RULES, AskedParameter, FunctionArguments


class Pairs:
    def __getitem__(self, index):
        return self.pairs[index]


def train(model, loader, criterion, device, epoch, writer, rate=0.1, mode="mean", x=None):
    for images, labels in loader:
        loss = criterion(model(images.to(device)), labels)
        writer.add_scalar("loss", loss)
    print(f"epoch {epoch}")
    if mode == "mean":
        x = x.view(-1)


def collate_fn(samples):
    images, labels = zip(*samples, strict=True)
    return images, labels


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return logits.argmax(-1) == labels


def plot(caption):
    return caption.lower()


@pytest.mark.parametrize(
    ("function", "name", "rule", "first"),
    [
        (train, "device", "_device", '"cpu"'),
        (train, "rate", "_default", "0.1"),
        (Pairs.__getitem__, "index", "_index", "0"),
        (collate_fn, "samples", "_list_of_samples", None),
        (compute_metrics, "eval_pred", "_evaluation", None),
        (train, "loader", "_loader", None),
        (train, "criterion", "_loss", "torch.nn.CrossEntropyLoss()"),
        (train, "model", "_model", "unknown"),
        (train, "writer", "_object", "unknown"),
        (train, "epoch", "_number_to_write", "1"),
        (plot, "caption", "_words", '"a few words of text"'),
    ],
)
def test_the_first_rule_that_knows_a_parameter_tells_its_forms(function: Any, name: str, rule: str, first: str | None) -> None:
    arguments = FunctionArguments(function, [], {}, ())
    parameter = arguments.parameter(name)
    assert parameter is not None
    asked = AskedParameter(parameter, "", arguments._uses(name), arguments._batch(name))
    known = {each.__name__: found for each in RULES if (found := each(arguments, asked)) is not None}
    assert next(iter(known)) == rule
    assert first is None or known[rule][0].template == first
    assert [form.template for form in arguments.forms(parameter)] == [form.template for form in known[rule]][:8]
