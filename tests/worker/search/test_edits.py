"""What an edit does to an example that was found before: it stays, gets another size, or shows what the edit broke."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from shapelens.protocol import Known, Search, Trace
from worker.process import WorkerProcess

LENET = dedent(
    """
    import torch.nn as nn

    class LeNet(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.conv = nn.Conv2d(1, 6, 5)
            self.pool = nn.MaxPool2d(2)
            self.first = nn.Linear(6 * 14 * 14, 64)
            self.last = nn.Linear(64, classes)

        def forward(self, x):
            x = self.pool(self.conv(x).relu())
            return self.last(self.first(x.flatten(1)))
    """
)
FOUND = "LeNet(10)(f32[B:2, 1, 32, 32])"


def edited(worker: WorkerProcess, folder: Path, old: str, new: str, *, proven: bool = True) -> Trace:
    assert old in LENET
    search = Search([Known("LeNet", FOUND, "inferred", proven=proven)], seconds=20)
    trace, finished = worker.run(folder / "lenet.py", LENET.replace(old, new), search=search, deadline=60)
    assert finished.outcome == "ok"
    assert trace is not None
    return trace


def test_an_example_that_still_runs_is_kept_without_a_trial(forking: WorkerProcess, tmp_path: Path):
    trace = edited(forking, tmp_path, "relu()", "tanh()")
    (run,) = trace.examples
    assert (run.expression, run.tried, run.error, run.doubtful) == (FOUND, 0, None, False)
    assert trace.mismatches == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("nn.Linear(64, classes)", "nn.Linear(48, classes)", "linear-in-features"),
        ("6 * 14 * 14", "6 * 14 * 14 + 1", "linear-in-features"),
        ("nn.Conv2d(1, 6, 5)", "nn.Conv2d(1, 6, 50)", "kernel-size"),
        ("x.flatten(1)", "x.permute(0, 2, 2, 1).flatten(1)", "dim"),
        ("self.first(", "self.frist(", "exception"),
    ],
)
def test_what_no_other_choice_avoids_is_a_mistake_of_the_edit(forking: WorkerProcess, tmp_path: Path, old: str, new: str, code: str):
    trace = edited(forking, tmp_path, old, new)
    (run,) = trace.examples
    assert not run.doubtful
    assert run.expression == FOUND
    assert trace.mismatches[0].code == code
    assert run.tried <= 40


def test_a_picture_of_another_size_takes_the_place_of_one_that_no_longer_fits(forking: WorkerProcess, tmp_path: Path):
    trace = edited(forking, tmp_path, "6 * 14 * 14", "6 * 10 * 10")
    (run,) = trace.examples
    assert (run.expression, run.error, run.doubtful) == ("LeNet(10)(f32[B:2, 1, 24, 24])", None, False)
    assert trace.mismatches == []


@pytest.mark.parametrize("dim", [2, 3])  # 172 × 32 and 2356 × 2356 would do
def test_what_only_a_picture_of_a_strange_format_avoids_is_doubtful(forking: WorkerProcess, tmp_path: Path, dim: int):
    trace = edited(forking, tmp_path, "x.flatten(1)", f"x.flatten({dim})")
    (run,) = trace.examples
    assert (run.expression, run.doubtful) == (FOUND, True)


def test_an_example_that_never_ran_makes_no_mistake_of_what_others_may_avoid(forking: WorkerProcess, tmp_path: Path):
    trace = edited(forking, tmp_path, "x.flatten(1)", "x.flatten(2)", proven=False)
    (run,) = trace.examples
    assert run.doubtful


def test_features_that_no_square_picture_has_are_a_mistake_though_no_example_ran(forking: WorkerProcess, tmp_path: Path):
    trace = edited(forking, tmp_path, "6 * 14 * 14", "6 * 14 * 14 + 1", proven=False)
    (run,) = trace.examples
    assert not run.doubtful
    assert [found.code for found in trace.mismatches if not found.guessed] == ["linear-in-features"]


def test_a_batch_of_another_size_hides_nothing(forking: WorkerProcess, tmp_path: Path):
    trace = edited(forking, tmp_path, "return self.last(", "x = x.permute(3, 1, 2, 0) @ x.new_zeros(7, 5)\n        return self.last(")
    (run,) = trace.examples
    assert run.expression == FOUND
    assert [found.code for found in trace.mismatches][:1] == ["matmul"]


EXPERTS = dedent(
    """
    import torch
    import torch.nn as nn

    class Mixture(nn.Module):
        def __init__(self, width, experts):
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(width, 16) for _ in range(experts))
            self.gate = nn.Linear(width, experts)

        def forward(self, x):
            out = torch.cat([expert(x).unsqueeze(1) for expert in self.experts], dim=1)
            return (self.gate(x).unsqueeze(-1) * out).sum(1)
    """
)


def test_a_count_of_one_hides_nothing(forking: WorkerProcess, tmp_path: Path):
    expression = "Mixture(width=64, experts=4)(f32[B:2, 64])"
    search = Search([Known("Mixture", expression, "inferred", proven=True)], seconds=20)
    trace, _ = forking.run(tmp_path / "net.py", EXPERTS.replace("dim=1", "dim=0"), search=search, deadline=60)
    assert trace is not None
    (run,) = trace.examples
    assert (run.expression, run.doubtful) == (expression, False)
    assert [found.code for found in trace.mismatches] == ["broadcast"]


TWO_WAYS = dedent(
    """
    import torch.nn as nn

    class Net(nn.Module):
        def __init__(self, channels, deep=True):
            super().__init__()
            self.conv = nn.Conv2d(3, channels, 3)
            self.deep = nn.Conv2d(channels, channels, 3) if deep else None

        def forward(self, x):
            x = self.conv(x)
            if self.deep is not None:
                x = self.deep(x).permute(0, 2, 3, 1)
            return x

    def small():
        return Net(8, deep=False)

    def large():
        return Net(16)
    """
)


@pytest.mark.parametrize(
    "known",
    [
        Known(
            "Net", "large()(f32[B:2, 3, 32, 32])", "factory", proven=True
        ),  # The other function's network does not come by what is wrong.
        Known("Net", "Net(16)(f32[B:2, 3, 32, 32])", "inferred", proven=True),
    ],
)
def test_another_way_through_the_code_avoids_nothing(forking: WorkerProcess, tmp_path: Path, known: Known):
    assert "0, 2, 3, 1" in TWO_WAYS
    trace, _ = forking.run(tmp_path / "net.py", TWO_WAYS.replace("0, 2, 3, 1", "0, 2, 1"), search=Search([known], seconds=20), deadline=60)
    assert trace is not None
    (run,) = trace.examples
    assert (run.expression, run.doubtful) == (known.expression, False)
    assert trace.mismatches[0].code == "dim"


def test_a_path_that_takes_too_long_is_left_and_the_example_stays_as_it_ran(forking: WorkerProcess, tmp_path: Path):
    text = dedent(
        """
        import torch.nn as nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(4, 4)

            def forward(self, x):
                if x.sum() > 0:
                    while True:
                        x = self.last(x)
                if x.mean() > 0:
                    while True:
                        x = self.last(x)
                return self.last(x)
        """
    )
    search = Search([Known("Net", "Net()(f32[B:2, 4])", "inferred", proven=True)], seconds=5)
    trace, finished = forking.run(tmp_path / "net.py", text, search=search, deadline=20)
    assert finished.outcome == "ok"
    assert finished.seconds < 15  # No path is followed to the deadline.
    assert trace is not None
    (run,) = trace.examples
    assert (run.error, run.dims) == (None, {"B": 2})
    assert [note.code for note in trace.notes] == ["data-dependent", "data-dependent"]


def test_a_class_that_the_file_cannot_build_any_more_has_the_example_that_a_search_from_the_start_ends_with(
    forking: WorkerProcess, tmp_path: Path
):
    text = LENET + dedent(
        """
        def lenet(classes=10, pretrained='imagenet'):
            model = LeNet(classes)
            if pretrained:
                model = LeNet(classes)
            model.head = model.last
            return model
        """
    )
    fails = text.replace("super().__init__()", "super().__init__()\n        [1, 2][3] = 0")
    before, _ = forking.run(tmp_path / "lenet.py", text, search=Search([], seconds=20), deadline=60)
    assert before is not None
    (found,) = before.examples
    assert found.error is None and found.call is None
    known = Known("LeNet", found.expression, found.evidence, found.where, proven=True, call=found.call)
    searches = [Search([known], seconds=20), Search([], seconds=20)]
    edited, fresh = (forking.run(tmp_path / "lenet.py", fails, search=search, deadline=60)[0] for search in searches)
    assert edited is not None and fresh is not None
    assert [(run.expression, run.evidence, run.where, run.error) for run in edited.examples] == [
        (run.expression, run.evidence, run.where, run.error) for run in fresh.examples
    ]
    assert edited.examples[0].expression != found.expression and "IndexError" in (edited.examples[0].error or "")
