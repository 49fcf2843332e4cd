"""The memory of a training step from its allocations, the largest size that fits, the optimizer and the autocast that a text names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapelens.analysis.structure.largest_size import largest_size
from shapelens.analysis.structure.training_memory import accumulating_peak, inference_memory, optimizer_states, training_memory
from shapelens.profiles import Allocation, MemoryProfile
from shapelens.source.autocast import autocast_of
from shapelens.source.batch_sizes import batch_sizes, is_plain_training, loss_of
from shapelens.source.optimizers import optimizer_of

# One layer of 1000 × 10 numbers: an input, what it makes, and in backward the gradients of both.
STEP = MemoryProfile(
    [
        Allocation(400, "input", -1, 0),
        Allocation(4000, "activation", 0, 1, 5),
        Allocation(3000, "activation", 0, 2, 3),
        Allocation(40000, "gradient", 0, 4),
    ],
    forward_end=3,
    backward_end=5,
    parameters=[[1000, 10]],
    parameter_storages=[40000],
    trained_storages=[40000],
    buffer_storages=[100],
)


def test_the_peak_is_the_largest_sum_of_what_lives_at_once() -> None:
    found = training_memory(STEP, "SGD", "cpu")
    assert (found.parameters, found.buffers, found.gradients, found.optimizer_state) == (40000, 100, 40000, 0)
    assert found.activations == 4000  # What was freed in forward is not kept.
    assert found.after_forward == 40100 + 4400
    assert (found.peak, found.peak_phase, found.peak_step) == (40100 + 400 + 4000 + 40000, "backward", 0)
    assert inference_memory(replace(STEP, allocations=STEP.allocations[:3]), "cpu").peak == 40100 + 7400


def test_gradients_that_are_added_up_are_there_all_the_time() -> None:
    """Those of the batches before, beside a new one while that is computed."""
    assert accumulating_peak(STEP, "SGD", "cpu") == 40100 + 40000 + 400 + 4000 + 40000
    assert accumulating_peak(STEP, "Adam", "cpu") == 40100 + 80004 + 40000 + 400 + 80000  # The optimizer's step is more.


def test_a_cuda_device_allocates_blocks_of_512_bytes() -> None:
    found = training_memory(STEP, "SGD", "cuda")
    assert (found.parameters, found.buffers, found.inputs, found.activations) == (40448, 512, 512, 4096)


def test_the_optimizers_step_may_be_the_peak() -> None:
    found = training_memory(STEP, "Adam", "cpu")
    assert found.optimizer_state == 2 * 40000 + 4
    # Its gradient and the input are there, and two tensors of the largest parameter's size.
    assert (found.peak, found.peak_phase, found.temporaries) == (40100 + 80004 + 40000 + 400 + 80000, "optimizer", 80000)


@pytest.mark.parametrize(
    ("optimizer", "state"),
    [("SGD", 0), ("momentum", 40000), ("AdamW", 80000), ("Adafactor", 4 * 1000 + 4 * 10), ("Adam8bit", 2 * (10000 + 4 * 40))],
)
def test_the_state_of_an_optimizer(optimizer: str, state: int) -> None:
    counters = 4 if optimizer in ("AdamW", "Adafactor") else 0
    assert sum(optimizer_states(STEP, optimizer, "cpu")) == state + counters


def test_an_optimizer_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="Magic"):
        optimizer_states(STEP, "Magic", "cpu")


@pytest.mark.parametrize(("fixed", "each", "limit"), [(0, 7, 1000), (500, 3, 10_000), (90, 11, 100), (0, 1, 1 << 20)])
@pytest.mark.parametrize("size", [1, 64, 5000])
async def test_the_largest_size_is_found(fixed: int, each: int, limit: int, size: int) -> None:
    tried: list[int] = []

    async def peak_at(other: int) -> int:
        tried.append(other)
        return fixed + each * other

    found = await largest_size(limit, size, fixed + each * size, peak_at)
    assert found == max((limit - fixed) // each, 0)
    assert len(tried) <= 12


@pytest.mark.parametrize("size", [1, 2, 300])
@pytest.mark.parametrize("layers", [(1,), (3, 8), (32, 8, 32, 1000)])
async def test_the_largest_size_is_found_where_memory_grows_in_blocks(layers: tuple[int, ...], size: int) -> None:
    async def peak_at(other: int) -> int:
        return 40_000 + sum(-(-4 * other * width // 512) * 512 for width in layers)

    limit = 1_073_741
    found = await largest_size(limit, size, await peak_at(size), peak_at)
    assert await peak_at(found) <= limit < await peak_at(found + 1)


@pytest.mark.parametrize(
    ("text", "optimizer"),
    [
        ("optim = torch.optim.AdamW(model.parameters(), lr=1e-3)", "AdamW"),
        ("o = SGD(p, momentum=0.9)", "momentum"),
        ("o = SGD(p, momentum=0)", "SGD"),
        ("a = torch.optim.Adam(p, amsgrad=True)", "amsgrad"),
        ("o = bnb.optim.Adam8bit(p)", "Adam8bit"),
        ("x = nn.Linear(2, 3)", None),
        ("def broken(:", None),
    ],
)
def test_the_optimizer_that_a_text_names(text: str, optimizer: str | None) -> None:
    assert optimizer_of(text) == optimizer


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("with torch.autocast('cuda', dtype=torch.bfloat16):\n    loss = model(x)", "bfloat16"),
        ("with torch.cuda.amp.autocast():\n    loss = model(x)", "float16"),
        ("with autocast(device_type='cpu'):\n    loss = model(x)", "bfloat16"),
        ("with autocast('cuda', enabled=args.amp):\n    loss = model(x)", None),
        ("ctx = torch.autocast('cuda', dtype=dtypes[name])", None),
        ("class Net(nn.Module):\n    @torch.autocast('cuda')\n    def forward(self, x):\n        return x", None),
        ("trainer = L.Trainer(precision='bf16-mixed')", "bfloat16"),
        ("trainer = L.Trainer(precision=16)", "float16"),
        ("trainer = L.Trainer(precision=32)", None),
        ("arguments = TrainingArguments('out', bf16=True)", "bfloat16"),
        ("accelerator = Accelerator(mixed_precision='fp16')", "float16"),
        ("def broken(:", None),
    ],
)
def test_the_autocast_that_a_text_names(text: str, dtype: str | None) -> None:
    assert autocast_of(text) == dtype


WRITTEN = """
import torch
BATCH_SIZE = 64
parser.add_argument("-b", "--batch-size", type=int, default=32)
config = {"batch_size": 16, "epochs": 3}
def train(model, batch_size: int = 8, *, eval_batch_size=4): ...
test_loader = DataLoader(data, batch_size=100)
loader = DataLoader(data, 128, shuffle=True)
batch_size = args.batch_size
batch_norm = 3
"""


def test_the_batch_sizes_that_a_text_writes() -> None:
    found = batch_sizes(WRITTEN)
    assert [each.value for each in found] == [64, 32, 16, 8, 128, 4, 100], "those that are not of training stand last"
    lines = WRITTEN.splitlines()
    assert all(lines[each.line - 1][each.column : each.end_column] == str(each.value) for each in found)


PLAIN = "opt = torch.optim.Adam(model.parameters())\nfor x in loader:\n    model(x).backward()\n"


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        (PLAIN, True),
        (f"import re\nnumber = re.compile('[0-9]')\n{PLAIN}", True),
        (f"model = DistributedDataParallel(model)\n{PLAIN}", True),
        (f"with torch.autocast('cuda', dtype=torch.bfloat16):\n    pass\n{PLAIN}", True),
        (f"# FSDP would be next.\n{PLAIN}", True),
        (f"class Net(nn.Module):\n    def forward(self, x):\n        return checkpoint(self.f, x.requires_grad_())\n{PLAIN}", True),
        (PLAIN.replace(".backward()", ".sum()"), False),
        (PLAIN.replace("Adam", "Magic"), False),
        (f"model = torch.compile(model)\n{PLAIN}", False),
        (f"model.compile()\n{PLAIN}", False),
        (f"model = FSDP(model)\n{PLAIN}", False),
        (f"model = nn.DataParallel(model)\n{PLAIN}", False),
        (f"head.to('cuda:1')\n{PLAIN}", False),
        (f"for p in model.parameters():\n    p.requires_grad = False\n{PLAIN}", False),
        (f"model.gradient_checkpointing_enable()\n{PLAIN}", False),
        (f"model.set_grad_checkpointing()\n{PLAIN}", False),
        (f"with torch.autocast('cuda', enabled=args.amp):\n    pass\n{PLAIN}", False),
        (f"accelerator = Accelerator()\n{PLAIN}", False),
    ],
)
def test_a_training_is_plain_where_a_step_of_its_model_says_all(text: str, is_plain: bool) -> None:
    assert is_plain_training(text) is is_plain


def test_the_loss_of_a_program_is_the_one_outside_of_its_models() -> None:
    inside = "class Net(nn.Module):\n    def forward(self, x, y):\n        return F.cross_entropy(self.fc(x), y)\n"
    assert loss_of(f"{inside}{PLAIN}") == ""
    assert loss_of(f"{inside}criterion = nn.CrossEntropyLoss()\n{PLAIN}") == "cross_entropy"
    assert loss_of("# cross_entropy\nloss = F.mse_loss(x, y)") == ""
