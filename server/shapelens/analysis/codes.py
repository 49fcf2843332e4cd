"""The codes of findings: stable words, documented in the README, silenced with `# shapelens: ignore[code]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """What a code stands for. severity: "error" | "warning" | "information" | "hint", unless the settings say another."""

    name: str
    title: str
    severity: str
    description: str


_ALL = (
    Code("linear-in-features", "Linear: in_features", "error", "The last dim of a Linear layer's input is not its `in_features`."),
    Code("bilinear-in-features", "Bilinear: in_features", "error", "The last dim of an input of a Bilinear layer is not its `in1_features` or `in2_features`."),
    Code("conv-in-channels", "convolution: in_channels", "error", "The channels of a convolution's (or transposed convolution's) input are not its `in_channels`."),
    Code("norm-num-features", "normalisation: channels", "error", "The channels that a BatchNorm, InstanceNorm or GroupNorm gets are not its `num_features` or `num_channels`."),
    Code("norm-normalized-shape", "LayerNorm: normalized_shape", "error", "The last dims of a LayerNorm's or RMSNorm's input are not its `normalized_shape`."),
    Code("rnn-input-size", "recurrent layer: input_size", "error", "The features of the input of an RNN, LSTM, GRU or of their cells are not its `input_size`."),
    Code("rnn-hidden-size", "recurrent layer: state", "error", "The state that is given to an RNN, LSTM, GRU or to their cells does not have the shape that its `hidden_size` and `num_layers` ask for."),
    Code("attention-embed-dim", "attention: embed_dim", "error", "The features of a query, key or value are not the `embed_dim`, `kdim` or `vdim` (`d_model` in a Transformer) of the attention layer."),
    Code("attention-heads", "attention: heads", "error", "`embed_dim` is not divisible by `num_heads`, or the heads of query, key and value differ."),
    Code("attention-mask", "attention: mask", "error", "A mask does not have the shape that the query and key lengths ask for."),
    Code("embedding-range", "Embedding: index out of range", "error", "An index that is known without data is not smaller than `num_embeddings`."),
    Code("embedding-index", "Embedding: indices", "error", "The indices of an Embedding are not integers."),
    Code("matmul", "matrix product", "error", "The inner sizes of a matrix product (`@`, `matmul`, `bmm`, `mm`, `einsum`, `F.linear`) differ."),
    Code("broadcast", "broadcasting", "error", "Two tensors of an elementwise operation have sizes that differ where neither is 1."),
    Code("cat", "cat and stack", "error", "The tensors of a `cat` or `stack` differ in a dim other than the one they are joined along."),
    Code("view", "view and reshape", "error", "A `view`, `reshape` or `unflatten` asks for another number of elements than the tensor has, or the strides don't allow the view."),
    Code("expand", "expand", "error", "An `expand` changes a dim that is not 1."),
    Code("dim-range", "dim out of range", "error", "A `dim` argument (or an index) lies outside the tensor's dims or sizes."),
    Code("split", "split, chunk, unpacking", "error", "The sizes of a `split` do not add up, or a tensor is unpacked into another number of names."),
    Code("input-rank", "number of dims", "error", "A layer or an operation gets a tensor with more or fewer dims than it takes."),
    Code("kernel-size", "window larger than its input", "error", "The window of a convolution or pooling is larger than the (padded) picture, or the output would be empty."),
    Code("dtype", "dtype", "error", "The dtypes of an operation's inputs do not go together, or the operation does not take this dtype."),
    Code("device", "device", "error", "The tensors of an operation are on different devices."),
    Code("exception", "exception", "error", "The code raised an exception that has no code of its own while the example ran."),
    Code("example", "example", "error", "The example cannot be evaluated: its syntax is wrong, or it names something that the file does not have."),
    Code("definitions", "definitions", "error", "The file's definitions (imports, classes, functions, assignments) could not be run, so no example could be."),
    Code("syntax", "syntax", "error", "The file is not valid Python, so nothing was run."),
    Code("deadline", "deadline", "error", "The run did not end within the deadline (setting `deadline`)."),
    Code("memory", "memory", "error", "The run asked for more memory than the limit (setting `memoryLimit`)."),
    Code("exit", "exit", "error", "The code ended the Python process (`sys.exit`, `os._exit`)."),
    Code("crash", "crash", "error", "The Python process that ran the code crashed."),
    Code("missing-import", "missing import", "information", "A module could not be imported; a stand-in took its place, and what comes out of it is unknown."),
)

CODES: dict[str, Code] = {code.name: code for code in _ALL}


def severity(code: str) -> str:
    """The severity of a code without settings; "error" for one that is not registered."""
    return CODES[code].severity if code in CODES else "error"
