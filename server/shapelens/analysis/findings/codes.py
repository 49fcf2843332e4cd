"""The codes of findings: stable words, explained in `docs/findings.md`, silenced with `# shapelens: ignore[code]`."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class FindingCode:
    """A code of findings and its meaning. severity: "error" | "warning" | "information" | "hint", unless the settings say another."""

    name: str
    meaning: str
    example: str
    severity: str = "error"
    lint: bool = False  # switched on and off by the setting `lints`, by this name
    unnecessary: bool = False  # an editor shows it faded out
    deep: bool = False  # found only where the model is run for real


_ALL = (
    FindingCode(
        "linear-in-features",
        "The last dim of a Linear layer's input is not its `in_features`.",
        "`nn.Linear(576, 120)` gets `[B, 400]`",
    ),
    FindingCode(
        "bilinear-in-features",
        "The last dim of an input of a Bilinear layer is not its `in1_features` or `in2_features`.",
        "`nn.Bilinear(8, 16, 4)` gets `[B, 8]` and `[B, 12]`",
    ),
    FindingCode(
        "conv-in-channels",
        "The channels of the input of a convolution, or a transposed one, are not its `in_channels`.",
        "`nn.Conv2d(8, 16, 5)` gets `[B, 6, 14, 14]`",
    ),
    FindingCode(
        "norm-num-features",
        "The channels that a BatchNorm or InstanceNorm gets are not its `num_features`.",
        "`nn.BatchNorm2d(32)` gets `[B, 16, 8, 8]`",
    ),
    FindingCode(
        "norm-num-channels",
        "The channels that a GroupNorm gets are not its `num_channels`.",
        "`nn.GroupNorm(4, 32)` gets `[B, 16, 8, 8]`",
    ),
    FindingCode(
        "norm-normalized-shape",
        "The last dims of the input of a LayerNorm or RMSNorm are not its `normalized_shape`.",
        "`nn.LayerNorm(64)` gets `[B, T, 72]`",
    ),
    FindingCode(
        "prelu-num-parameters",
        "The channels that a PReLU gets are not its `num_parameters`, which are more than one.",
        "`nn.PReLU(56)` gets `[B, 57, 28, 28]`",
    ),
    FindingCode(
        "rnn-input-size",
        "The features of the input of an RNN, LSTM, GRU or of one of their cells are not its `input_size`.",
        "`nn.LSTM(16, 32)` gets `[T, B, 24]`",
    ),
    FindingCode(
        "attention-embed-dim",
        "The features of a query, key or value are not the `embed_dim`, `kdim` or `vdim` of the layer (`d_model` in a Transformer).",
        "`nn.MultiheadAttention(64, 4)` gets `[T, B, 48]`",
    ),
    FindingCode(
        "attention-heads",
        "`embed_dim` is not divisible by `num_heads`.",
        "`nn.MultiheadAttention(64, 5)`",
    ),
    FindingCode(
        "layer-arguments",
        "A layer is constructed with arguments that it cannot have, as groups that do not divide the channels or a negative size.",
        "`nn.Conv2d(6, 16, 3, groups=4)`",
    ),
    FindingCode(
        "embedding-dtype",
        "The indices of an Embedding are not integers.",
        "`nn.Embedding(10, 4)` gets `[B, T]` of float32",
    ),
    FindingCode(
        "embedding-range",
        "An index that is known lies outside of an Embedding's `num_embeddings`.",
        "`nn.Embedding(10, 4)` gets `torch.arange(20)`",
    ),
    FindingCode(
        "attention",
        "The shapes of query, key, value and mask of a scaled dot product attention do not go together.",
        "`F.scaled_dot_product_attention(q, k, v)` with `q` `[B, 4, T, 16]` and `k` `[B, 4, T, 24]`",
    ),
    FindingCode(
        "kernel-size",
        "The window of a convolution or pooling is larger than the (padded) picture, or the output would be empty.",
        "`nn.MaxPool2d(8)` gets `[B, 16, 5, 5]`",
    ),
    FindingCode(
        "matmul",
        "The inner sizes of a matrix product (`@`, `matmul`, `bmm`, `F.linear`, …) differ.",
        "`[B, 72] @ [144, 11]`",
    ),
    FindingCode(
        "broadcast",
        "Two tensors of an elementwise operation differ in a size that is 1 in neither.",
        "`[B, 3, 4] + [B, 5, 4]`",
    ),
    FindingCode(
        "cat",
        "The tensors of a `cat` or `stack` differ in a dim other than the one they are joined along.",
        "`torch.cat([a, b], 1)` of `[B, 3, 8]` and `[B, 3, 9]`",
    ),
    FindingCode(
        "view",
        "A `view`, `reshape` or `unflatten` asks for another number of elements than the tensor has, or its strides don't allow the view.",
        "`x.view(-1, 399)` of `[B, 16, 5, 5]`",
    ),
    FindingCode(
        "einsum",
        "The tensors of an `einsum` do not have the dims that its equation says, or a letter stands for two sizes.",
        '`torch.einsum("bij,bjk->bik", a, b)` of `[B, 3, 4]` and `[B, 5, 6]`',
    ),
    FindingCode(
        "dim",
        "A `dim` argument lies outside the tensor's dims, or there are more or fewer of them than the tensor has.",
        "`x.permute(0, 2, 1)` of `[B, 3, 8, 8]`",
    ),
    FindingCode(
        "index",
        "An index lies outside the size that it indexes.",
        "`x[:, 3]` of `[B, 3]`",
    ),
    FindingCode(
        "backward-scalar",
        "`backward()` starts from more than one number, and is not told their gradients.",
        "`loss.backward()` of `[64]`",
    ),
    FindingCode(
        "detached-loss",
        "`backward()` starts from what no gradient leads back from: it was detached, computed under `no_grad`, or is a number.",
        "`F.mse_loss(out.detach(), y).backward()`",
    ),
    FindingCode(
        "in-place",
        "A tensor is changed in place that `backward()` needs as it was, or a parameter while gradients are recorded.",
        "`h = torch.sigmoid(x)`, `h += 1`",
    ),
    FindingCode(
        "second-backward",
        "`backward()` goes back through operations once more, whose tensors the first one has freed.",
        "`loss.backward()` twice, a hidden state of the last turn",
    ),
    FindingCode(
        "numpy-of-gradient",
        "`numpy()` is asked of a tensor that requires a gradient.",
        "`model(x).numpy()`",
    ),
    FindingCode(
        "device",
        "Tensors of a program meet that lie on the CPU and on an accelerator, or one of an accelerator becomes an array.",
        "`model(x)` with `model.to(device)` and an `x` that stays where the loader made it",
    ),
    FindingCode(
        "checkpoint",
        "`load_state_dict` is given a state that does not fit the module: other names, other sizes, or the dict around the state.",
        "`Net(10)` gets the state of a `Net(80)`",
    ),
    FindingCode(
        "call-arguments",
        "A module or function is called with too many arguments, too few, or by names that it does not have.",
        "`model(x, mask)` of `def forward(self, x):`",
    ),
    FindingCode(
        "layer-input",
        "A layer, function or batch gets a tuple, a list, an array, a picture or None where a tensor belongs, or `ToTensor` a tensor.",
        "`x = self.lstm(x)`, `self.fc(x)`",
    ),
    FindingCode(
        "layer-as-function",
        "The class of a layer is called with what the layer should be called with.",
        "`nn.ReLU(x)`",
    ),
    FindingCode(
        "tensor-called",
        "A name that is called like a function holds a tensor: a loop has assigned it what the function gave.",
        "`loss = loss(out, y)` in its second turn",
    ),
    FindingCode(
        "kept-graph",
        "A loop sums up losses with their graphs, which grows with each turn.",
        "`total += loss`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "no-zero-grad",
        "A loop trains, and nothing sets gradients back to zero: those of all turns are added up.",
        "`loss.backward()`, `optimizer.step()`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "unregistered-layers",
        "A plain list or dict holds layers, so that the module does not know their parameters and the optimizer does not get them.",
        "`self.layers = [nn.Linear(8, 8)]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "torn-view",
        "A `view` or `reshape` cuts across dims: it keeps the order of the numbers, where a transpose was meant.",
        "`x.view(B, 4, T, 16)` of `[B, T, 64]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "batch-first",
        "A recurrent or attention layer takes dim 0 for the time, but its output is read as if the batch came first.",
        "`out, _ = nn.LSTM(28, 64)(x)`, `out[:, -1]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "batch-mix",
        "A softmax, sum or normalisation runs over the batch, so that each sample of the result depends on the others.",
        "`torch.softmax(scores, dim=0)` of `[B, 10]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "attention-axis",
        "Attention runs over the wrong axis: heads were not transposed, or the softmax is over another dim than the sum.",
        "`F.scaled_dot_product_attention(q, k, v)` of `[B, T, 4, 16]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "shape-comment",
        "A comment, docstring or annotation says another shape than the code gives: other dims, another number, names in another order.",
        "`x = x.flatten(1)  # (B, C, H, W)`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "optimizer-parameters",
        "An optimizer gets no parameters, or only those of a model that is never called.",
        "`torch.optim.SGD(other.parameters())`",
        lint=True,
    ),
    FindingCode(
        "split",
        "The sizes of a `split` do not add up to the size that is split.",
        "`x.split([4, 5], 1)` of `[B, 8]`",
    ),
    FindingCode(
        "shape",
        "An operation cannot work with the shapes that it was given, for a reason that has no code of its own.",
        "`torch.cross(a, b)` of `[B, 4]` and `[B, 4]`",
    ),
    FindingCode(
        "dtype",
        "The dtypes of an operation's inputs do not go together, or the operation does not take this dtype.",
        "`torch.matmul(a, b)` of float32 and float64",
    ),
    FindingCode(
        "data-dependent",
        "The code needs the values of a tensor, which only real data has: a condition takes the path that goes on, a number ends the run.",
        "`sorted(x.tolist())`",
        "hint",
    ),
    FindingCode(
        "exception",
        "The code raised an exception that has no code of its own while the example ran.",
        "`x.sise(0)`",
    ),
    FindingCode(
        "example",
        "The example cannot be evaluated: its syntax is wrong, or it names something that the file does not have.",
        "`# shapelens: Nett()(f32[B:2, 3])`",
    ),
    FindingCode(
        "definition",
        "A definition of the file (a class, a function's default, an assignment that a model needs) raised an exception.",
        "`class Net(nn.Modul):`",
    ),
    FindingCode("syntax", "The file is not valid Python.", "`def forward(self, x:`"),
    FindingCode("deadline", "The run did not end within the deadline (setting `deadline`).", "`while True: pass`"),
    FindingCode("memory", "The run asked for more memory than the limit (setting `memoryLimit`).", "`bytearray(10**11)`"),
    FindingCode("exit", "The code ended the Python process.", "`sys.exit(1)`"),
    FindingCode("crash", "The Python process that ran the code crashed.", "`ctypes.string_at(0)`"),
    FindingCode(
        "no-example",
        "No way was found to build a class and call it, so nothing of it was seen; an example above the class helps.",
        "`def forward(self, batch: Batch):`",
        "hint",
    ),
    FindingCode(
        "missing-import",
        "A module could not be imported; a stand-in took its place, and what comes out of it is unknown.",
        "`import einopz`",
        "information",
    ),
    FindingCode(
        "missing-file",
        "The code reads a file that is not there, or saved weights; a stand-in took its place, and what follows from it is unknown.",
        '`open("vocabulary.txt")`',
        "hint",
    ),
    FindingCode(
        "unavailable",
        "The code asks for a data set, environment, device, network or service that is not at hand; what follows from it is unknown.",
        '`gym.make("Pong-v0")`',
        "hint",
    ),
    FindingCode(
        "outer-product",
        "A tensor of size 1 in its last dim meets one without that dim, and each element is paired with every other.",
        "`pred - target` of `[B, 1]` and `[B]` is `[B, B]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "unused-layer",
        "A layer is constructed, but no example calls it and no code of its class reads it.",
        "`self.fc3 = nn.Linear(84, 10)`",
        "hint",
        lint=True,
        unnecessary=True,
    ),
    FindingCode(
        "squeeze-batch",
        "A `squeeze()` without `dim` drops the batch too when that is 1: a warning where it does so in the example.",
        "`x.squeeze()` of `[B, 1]`",
        "information",
        lint=True,
    ),
    FindingCode(
        "same-dim",
        "A `transpose` of a dim with itself, both written as the same number: it leaves the tensor as it is.",
        "`k.transpose(2, 2)`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "norm-single-value",
        "A normalisation gets a single value to take the mean and variance of: less than an error where it only fails in training.",
        "`nn.BatchNorm2d(8)` gets `[1, 8, 1, 1]`",
        lint=True,
    ),
    FindingCode(
        "softmax-single-value",
        "A softmax over a dim that a layer gives size 1 is 1 everywhere.",
        "`nn.Linear(8, 1)(x).softmax(-1)`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "softmax-dim",
        "A softmax without `dim` normalises a tensor of three dims over the first, the batch.",
        "`F.softmax(x)` of `[B, T, 8]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "loss-input",
        "A loss that takes logits gets the result of a softmax or sigmoid, or one that takes probabilities, or their log, that of a layer.",
        "`F.cross_entropy(x.softmax(1), y)`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "loss-broadcast",
        "A loss gets an input and a target of different shapes, of which one is stretched to the other's: torch warns when it runs.",
        "`F.mse_loss(x, y)` of `[B, 4]` and `[B, 1]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "class-index",
        "Random numbers go further than what they index: the classes of a loss, the rows of an Embedding, `one_hot`, `gather`.",
        "`F.cross_entropy(x, torch.randint(0, 10, (64,)))` of `[64, 5]`",
        "warning",
        lint=True,
    ),
    FindingCode(
        "out-of-memory",
        "A training step takes more memory than the device has whose memory is known (setting `deviceMemory`, `check --memory`).",
        "`DataLoader(data, batch_size=512)` of a `resnet50()`, at 16 GB",
        "warning",
    ),
    FindingCode(
        "future-leak",
        "A model that says that it is causal, by a mask, its settings or its targets, has outputs that change with later inputs.",
        "`att = F.softmax(att, dim=-1)` without its mask",
        "warning",
        deep=True,
    ),
    FindingCode(
        "ignored-input",
        "Nothing that a model gives depends on one of its inputs.",
        "`def forward(self, x, mask):`, and no `mask` in it",
        "warning",
        deep=True,
    ),
)

CODES: dict[str, FindingCode] = {code.name: code for code in _ALL}


def similar(code: str) -> str:
    """Returns ` (did you mean broadcast?)` for "brodcast"; "" where no code is like it."""
    likely = get_close_matches(code, CODES, 1)
    return f" (did you mean {likely[0]}?)" if likely else ""


def is_lint(code: str) -> bool:
    """True if the code stands for something that runs, but looks odd."""
    return code in CODES and CODES[code].lint


def is_deep(code: str) -> bool:
    """True if only a run with real numbers finds what the code stands for."""
    return code in CODES and CODES[code].deep


def is_note(code: str) -> bool:
    """True if the code stands for an assumption rather than a mistake. Editors show it quietly."""
    return code in CODES and CODES[code].severity == "hint" and not CODES[code].lint


def severity(code: str) -> str:
    """The severity of a code without settings; "error" for one that is not registered."""
    return CODES[code].severity if code in CODES else "error"
