"""A model as a whole: its steps, its floating-point operations, and the memory of a training step."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils.flop_counter import FlopCounterMode

from forked_workers import forked_workers as forked_workers
from shapelens.analysis.structure.graph import graph
from shapelens.analysis.structure.training_memory import inference_memory, training_memory
from shapelens.analysis.structure.tree import repeats, tree, walk
from shapelens.analysis.traces.shown import shown_for
from shapelens.batch import Analysed, Batch
from shapelens.protocol import ModelProfile, ProfileRequest
from shapelens.report.model_document import ModelView, model_document, schema

MIB = 1 << 20

RESIDUAL = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.unused = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

# shapelens: Net()(f32[B:4, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8) for _ in range(3)])
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""

REPEATED = """
from torch import nn

class Repeated(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.linear = nn.Linear(1024, 1024)
        self.times = times

    def forward(self, x):
        for _ in range(self.times):
            x = self.linear(x)
        return x
"""


async def _profiled(folder: Path, text: str, cls: str, *examples: str, **request: object) -> tuple[Analysed, ModelProfile]:
    async with Batch(sys.executable, root=folder) as batch:
        analysed = await batch.analyse(folder / "model.py", text, examples=list(examples), only=cls)
        shown = shown_for(analysed.trace, cls)
        assert shown is not None
        return analysed, await batch.profile(analysed, shown.example, ProfileRequest(**request))  # type: ignore[arg-type]


async def test_tree_and_graph_of_a_residual_network(tmp_path: Path) -> None:
    """Modules come in the order of their calls, repeated ones are known as such, and a residual path is an edge of its own."""
    analysed, profile = await _profiled(tmp_path, RESIDUAL, "Net")
    rows = tree(profile, analysed.findings)
    assert [row.path for _, row in walk(rows)][:7] == [
        "", "blocks", "blocks.0", "blocks.0.norm", "blocks.0.up", "blocks.0.down", "blocks.0.unused",
    ]  # fmt: skip
    net, blocks = rows[0], rows[0].rows[0]
    assert net.outputs == ["[B, 2]"]
    assert [(row.name, count) for row, count in repeats(blocks.rows)] == [("0", 3)]
    assert blocks.rows[0].rows[3].calls == 0
    assert net.parameters == sum(row.parameters for row in net.rows) == 3 * (16 + 8 * 32 + 32 + 8 * 32 + 8 + 72) + 18
    assert net.flops == 2 * 4 * (3 * 2 * 8 * 32 + 8 * 2)
    found = graph(profile)
    inside = {node.number: node for node in found.nodes}
    additions = [node.number for node in found.nodes if node.label == "+"]
    assert len(additions) == 3
    for number in additions:
        sources = [inside[edge.source].label for edge in found.edges if edge.target == number]
        assert sources[1:] == ["Linear"]
        assert sources[0] in ("x", "+")
    assert [inside[edge.source].label for edge in found.edges if inside[edge.target].path == "head"] == ["+"]
    view = ModelView.of(
        analysed.path, "Net", shown_for(analysed.trace, "Net"), profile, analysed.findings, lambda file: analysed.module.lines
    )  # type: ignore[arg-type]
    jsonschema.validate(model_document(view), schema())


async def test_a_failing_layer_is_marked_and_the_rest_is_there(tmp_path: Path) -> None:
    """The row that fails has the words of the finding and its fix; what comes after it still has its shape."""
    analysed, profile = await _profiled(tmp_path, RESIDUAL.replace("nn.Linear(4 * width, width)", "nn.Linear(3 * width, width)"), "Net")
    rows = {row.path: row for _, row in walk(tree(profile, analysed.findings))}
    failed = rows["blocks.0.down"].failure
    assert failed is not None
    assert failed.finding is not None
    assert failed.finding.fix is not None
    assert failed.message == failed.finding.message
    assert rows["head"].outputs == ["[B, 2]"]
    assert rows["head"].failure is None
    assert profile.training is not None
    assert profile.training.error


@pytest.mark.parametrize("times", [1, 100])
async def test_memory_of_a_layer_that_is_applied_again_and_again(tmp_path: Path, times: int) -> None:
    """After forward there are the input, each result, the weight and the bias; AdamW and gradients add three times these.

    `torch.cuda.memory_allocated` said 4044.00390625 MiB for a hundred times (torchinfo's issue 144), and 92.01171875 for once: 84.00390625
    and two more layers of 4.00390625, which were other models that the program still held. A CPU's profiler says 84.00390625.
    """
    _, profile = await _profiled(tmp_path, REPEATED, "Repeated", f"Repeated({times})(f32[B:10240, 1024])", memory_only=True)
    assert profile.training is not None
    layer, picture = 4 * MIB + 4096, 40 * MIB
    plain = training_memory(profile.training, "SGD", "cuda")
    assert plain.after_forward == layer + picture * (1 + times)
    assert plain.gradients == plain.parameters == layer
    adam = training_memory(profile.training, "AdamW", "cuda")
    assert (adam.optimizer_state, adam.peak - plain.peak) == (2 * layer, 2 * layer)
    smaller = (await _profiled(tmp_path, REPEATED, "Repeated", f"Repeated({times})(f32[B:10240, 1024])", sizes={"B": 512}))[1]
    assert smaller.training is not None
    assert training_memory(smaller.training, "SGD", "cuda").after_forward == layer + 2 * MIB * (1 + times)
    assert smaller.inference is not None
    assert inference_memory(smaller.inference).peak <= layer + 3 * 2 * MIB


async def test_operations_in_place_that_change_a_shape_are_done_each_time(tmp_path: Path) -> None:
    """`torch.stft` transposes its result in place: the second spectrum has its shape in the profile too, and a step is possible."""
    text = """
        import torch
        from torch import nn

        # shapelens: Spectra()(f32[B:2, 4096])
        class Spectra(nn.Module):
            def __init__(self):
                super().__init__()
                self.window = nn.Parameter(torch.ones(256))

            def forward(self, x):
                first = torch.stft(x, 256, window=self.window, return_complex=True)
                second = torch.stft(x, 256, window=self.window, return_complex=True)
                assert first.shape == second.shape == (len(x), 129, 65), (first.shape, second.shape)
                return (first + second).abs()
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Spectra")
    assert profile.error is None
    assert profile.training is not None
    assert profile.training.error == ""


async def test_a_constant_with_known_values_is_counted_once(tmp_path: Path) -> None:
    """A mask is computed with as it is: what its values are copied to for the run is no storage of the program's."""
    text = """
        import torch
        from torch import nn

        # shapelens: Masked()(f32[B:2, 256])
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(256, 256))
                self.register_buffer("mask", torch.ones(256, 256).tril())

            def forward(self, x):
                return x @ (self.weight * self.mask)
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Masked", memory_only=True)
    assert profile.training is not None
    found = training_memory(profile.training, "SGD", "cuda")
    assert (found.parameters, found.buffers) == (256 * 1024, 256 * 1024)
    assert found.activations == 2 * 1024  # The result: `x` needs no gradient, for which the masked weight would be kept.


@pytest.mark.skipif(not hasattr(torch.nn.functional, "grouped_mm"), reason="this torch has no grouped_mm")
async def test_experts_have_gradients(tmp_path: Path) -> None:
    text = """
        import torch
        import torch.nn.functional as F
        from torch import nn

        # shapelens: Experts()(f32[T:16, 32], i64[T])
        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Parameter(torch.randn(4, 32, 64))
                self.down = nn.Parameter(torch.randn(4, 64, 32))

            def forward(self, x, chosen):
                ends = torch.nn.functional.one_hot(chosen, 4).sum(0).cumsum(0).to(torch.int32)
                hidden = F.gelu(F.grouped_mm(x[chosen.argsort()], self.up, offs=ends))
                return F.grouped_mm(hidden, self.down, offs=ends)
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Experts")
    assert profile.training is not None
    assert profile.training.error == ""
    assert profile.training.trained_storages == [4 * 32 * 64 * 4] * 2
    assert sum(row.flops for row in tree(profile)) == 2 * 2 * 16 * 32 * 64


async def test_gradients_go_through_what_has_no_kernel(tmp_path: Path) -> None:
    """A packed sequence, and a sound made from its spectrum: all parameters have gradients, and the recurrent layer its operations."""
    text = """
        import torch
        from torch import nn
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        # shapelens: Net()(i64[B:2, T:16], i64[B])
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(50, 16)
                self.rnn = nn.GRU(16, 32, batch_first=True)
                self.head = nn.Linear(32, 2 * 33)

            def forward(self, x, lengths):
                packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
                y, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
                spectrum = torch.view_as_complex(self.head(y).unflatten(-1, (33, 2))).transpose(1, 2)
                return torch.istft(spectrum, 64, window=torch.ones(64))
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Net")
    assert profile.training is not None
    assert profile.training.error == ""
    gru = 3 * 32 * (16 + 32)
    assert sum(profile.training.trained_storages) == 4 * (50 * 16 + gru + 2 * 3 * 32 + 33 * 66)
    flops = {row.path: row.flops for _, row in walk(tree(profile))}
    assert (flops["rnn"], flops["head"]) == (2 * 32 * gru, 2 * 32 * 32 * 66)


async def test_memory_of_each_module(tmp_path: Path) -> None:
    """What modules have of it adds up to the whole; what is frozen has no gradient; a weight that two share is in both, and counts once."""
    text = """
        import torch
        from torch import nn

        class Scratch(nn.Module):
            def __init__(self):
                super().__init__()
                self.frozen = nn.Linear(256, 256, bias=False).requires_grad_(False)

            def forward(self, x):
                y = self.frozen(x) * 2
                y = y + 1
                return y

        # shapelens: Net()(f32[B:1024, 256])
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(256, 256)
                self.scratch = Scratch()
                self.last = nn.Linear(256, 256)
                self.last.weight = self.first.weight

            def forward(self, x):
                return self.last(self.scratch(self.first(x))).relu()
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Net")
    assert profile.training is not None
    for optimizer, times, device in (("SGD", 0, "cuda"), ("AdamW", 2, "cuda"), ("Adam", 2, "cpu")):
        found = training_memory(profile.training, optimizer, device)
        rows = tree(profile, (), optimizer, device)
        of = {row.path: row for _, row in walk(rows)}
        whole = rows[0]
        sums = (whole.held_bytes, whole.gradient_bytes, whole.optimizer_bytes, whole.kept_bytes)
        assert sums == (found.parameters, found.gradients, found.optimizer_state, found.activations)
        weight, bias, picture, counter = 256 * 1024, 1024, MIB, 4 if device == "cpu" else 0
        assert (of["first"].gradient_bytes, of["last"].gradient_bytes, whole.gradient_bytes) == (
            weight + bias, weight + bias, weight + 2 * bias,
        )  # fmt: skip
        assert of["last"].optimizer_bytes == times * (weight + bias) + 2 * counter
        assert (of["scratch"].held_bytes, of["scratch"].gradient_bytes, of["scratch"].optimizer_bytes) == (weight, 0, 0)
        # Its result is kept for the gradient of the last weight; the one of `* 2` is there with the frozen layer's, then with the last.
        assert (of["scratch"].kept_bytes, of["scratch"].temporary_bytes) == (picture, 2 * picture)
        assert (of["first"].kept_bytes, of["last"].kept_bytes) == (0, 0)


async def test_a_gradient_that_comes_twice_is_added_in_place(tmp_path: Path) -> None:
    """As autograd does where it may: around a residual path there are two gradients at once, not three."""
    text = """
        import torch
        from torch import nn

        # shapelens: Net()(f32[B:64, 256])
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(256, 256)
                self.norm = nn.LayerNorm(256)

            def forward(self, x):
                x = self.first(x)
                return (x + self.norm(x)).relu()
    """
    _, profile = await _profiled(tmp_path, textwrap.dedent(text), "Net")
    of = {row.path: row for _, row in walk(tree(profile, (), "SGD", "cpu"))}
    picture = 64 * 256 * 4
    # The normalised result is only summed: it lives for a while in forward, as its gradient does in backward.
    assert of["norm"].temporary_bytes == picture
    assert of[""].temporary_bytes == 2 * picture


async def test_blocks_are_checkpointed_as_the_code_would_do_it(tmp_path: Path) -> None:
    """The three blocks, whose own layers are no blocks, take what they take where `forward` has the checkpoint."""
    text = RESIDUAL.replace("x = block(x)", "x = checkpoint(block, x, use_reentrant=False)").replace(
        "import torch\n", "import torch\nfrom torch.utils.checkpoint import checkpoint\n", 1
    )
    _, asked = await _profiled(tmp_path, RESIDUAL, "Net", memory_only=True, checkpointed=True)
    _, own = await _profiled(tmp_path, text, "Net", memory_only=True)
    assert (asked.checkpointed, own.checkpointed) == ({"Block": 3}, {})
    assert asked.training is not None and own.training is not None and not asked.training.error
    assert asked.training.allocations == own.training.allocations


async def test_what_a_checkpoint_computes_again_lies_where_it_did(tmp_path: Path) -> None:
    """Positions that a block makes, and an attention of torch's, are computed again in backward."""
    text = RESIDUAL.replace("return x + self", "x = x + torch.arange(8, device=x.device)\n        return x + self")
    text = text.replace("self.norm(x)", "F.scaled_dot_product_attention(x[:, None], x[:, None], self.norm(x)[:, None])[:, 0]")
    text = text.replace("import torch\n", "import torch\nimport torch.nn.functional as F\n", 1)
    _, found = await _profiled(tmp_path, text, "Net", memory_only=True, checkpointed=True)
    assert found.training is not None and (found.error, found.training.error) == (None, "")


LOSSES = """
import torch.nn.functional as F
from torch import nn

class Outside(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(64, 8192)

    def forward(self, x):
        return self.head(x)

class Inside(Outside):
    def forward(self, x):
        scores = self.head(x)
        return F.cross_entropy(scores.flatten(0, 1), x.new_zeros(x.shape[:2]).long().flatten())
"""


@pytest.mark.parametrize("autocast", ["", "bfloat16"])
async def test_a_loss_behind_the_model_is_counted_as_one_inside_of_it(tmp_path: Path, autocast: str) -> None:
    asked: dict[str, Any] = {"memory_only": True, "autocast": autocast}
    peaks = []
    for cls, loss in (("Outside", "cross_entropy"), ("Inside", ""), ("Inside", "cross_entropy"), ("Outside", "")):
        _, found = await _profiled(tmp_path, LOSSES, cls, f"{cls}()(f32[B:32, 16, 64])", loss=loss, **asked)
        assert found.training is not None and not found.training.error
        peaks.append(training_memory(found.training).peak)
    outside, inside, inside_with_loss, without = peaks
    assert inside_with_loss == inside == pytest.approx(outside, rel=0.01)
    assert without < 0.6 * outside


async def test_checkpoints_keep_less(tmp_path: Path) -> None:
    """What is inside of a checkpoint is not kept, but computed again."""
    text = RESIDUAL.replace("x = block(x)", "x = checkpoint(block, x)").replace(
        "import torch\n", "import torch\nfrom torch.utils.checkpoint import checkpoint\n", 1
    )
    _, plain = await _profiled(tmp_path, RESIDUAL, "Net", memory_only=True)
    _, checkpointed = await _profiled(tmp_path, text, "Net", memory_only=True)
    assert plain.training is not None
    assert checkpointed.training is not None
    assert not checkpointed.training.error
    kept = training_memory(plain.training).activations, training_memory(checkpointed.training).activations
    # Of each block its result stays, of 4·8 numbers.
    assert kept[1] < kept[0] / 3


MIXED = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.up = nn.Linear(32, 96)
        self.down = nn.Linear(96, 32)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(x)))

class Net(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 4, stride=4)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(32, 50)
        self.checkpointed = checkpointed

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(self.head.weight.new_ones(()) * x).softmax(-1)

class Cast(Net):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x)
"""


@pytest.mark.skipif(not hasattr(torch.library.Library, "fallback"), reason="this version of torch lets no dispatch key through")
@pytest.mark.parametrize("example", ["Net()", "Cast()", "Net(True)", "Cast(True)"])
async def test_what_autocast_and_checkpoints_keep_is_what_real_tensors_keep(tmp_path: Path, example: str) -> None:
    """Compared with MemTracker on a real step: in the model's own code, and around it."""
    names: dict[str, Any] = {}
    exec(MIXED, names)
    model, x = eval(example, names), torch.rand(2, 3, 32, 32)
    tracker = MemTracker()
    tracker.track_external(model, x)
    with tracker:
        result = model(x)
        kept = sum(amounts["Total"] for amounts in tracker.get_tracker_snapshot("current").values())
        result.sum().backward()
    peak = sum(amounts["Total"] for amounts in tracker.get_tracker_snapshot("peak").values())
    around = {"autocast": "bfloat16"} if example.startswith("Cast") else {}
    for expression, request in ((example, {}), (example.replace("Cast", "Net"), around)):
        _, profile = await _profiled(
            tmp_path, MIXED, expression.partition("(")[0], f"{expression}(f32[2, 3, 32, 32])", device="cpu", memory_only=True, **request
        )
        assert profile.training is not None
        assert not profile.training.error
        found = training_memory(profile.training, "SGD", "cpu")
        assert abs(found.after_forward - kept) < 0.01 * kept
        assert found.peak > 0.95 * peak  # Kernels' own copies are in ours.


async def test_operations_are_those_of_the_flop_counter(tmp_path: Path) -> None:
    """Forward and backward, with attention and a recurrent layer."""
    text = """
import torch
from torch import nn
import torch.nn.functional as F

# shapelens: Mixed()(f32[B:2, 8, 12, 12])
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 12, 3, stride=2, groups=4)
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.lstm = nn.LSTM(60, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.attention = nn.MultiheadAttention(20, 4, batch_first=True)

    def forward(self, x):
        x = self.up(self.conv(x)).reshape(2, 10, 60)
        x, _ = self.lstm(x)
        x = F.scaled_dot_product_attention(x, x, x)
        x, _ = self.attention(x, x, x)
        return x @ x.transpose(1, 2)
"""
    _, profile = await _profiled(tmp_path, text, "Mixed")
    names: dict[str, object] = {}
    exec(text, names)
    with torch.device("meta"):
        model = names["Mixed"]()  # type: ignore[operator]
        with FlopCounterMode(display=False) as forward:
            result = model(torch.randn(2, 8, 12, 12))
        with FlopCounterMode(display=False) as backward:
            result.sum().backward()
    assert sum(step.flops for step in profile.steps) == forward.get_total_flops()
    # Attention as one kernel computes its scores once more on the way back.
    again = 2 * 2 * 10 * 10 * 20
    assert sum(step.backward_flops for step in profile.steps) in (backward.get_total_flops(), backward.get_total_flops() + again)
