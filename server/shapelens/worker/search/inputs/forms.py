"""Forms that an argument of `forward` may have: tensors of a rank and dtype with free sizes, and what is no tensor, the likelier first.

A parameter's name speaks for forms (`mask`, `input_ids`, `edge_index`), and so does the layer that most likely consumes it first.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple, Union

from torch import nn

from ....stated.shape_words import REST
from ...trace import module_tree
from ..evidence import InputShape
from ..text.annotations import display_names
from .name_priors import ENTRIES, GENERAL, number_for, read_forms, role_of, tensors_by_name, words_of

# What a free size is at first, by its role.
BATCH, STEPS, OTHER_STEPS, FEATURES, CHANNELS, PICTURE, VOLUME, SIGNAL, NODES, EDGES, POINTS = 2, 16, 12, 64, 3, 64, 32, 256, 10, 24, 32
LARGEST = 1 << 22
SHOWN = ("B", "T", "S", "N", "E")  # roles that are named dims without being asked


@dataclass(frozen=True)
class Form:
    """One way to give an argument: a template (evidence.py) and the sizes that are free in it."""

    template: str
    sizes: Dict[str, int] = field(default_factory=dict, hash=False)
    rank: int = -1  # of the tensor; -1 for what is no single tensor
    dtype: str = ""


def tensor_form(parameter: str, dtype: str, *dims: str) -> Form:
    """A tensor with one word a dim: a role shared by all arguments (`B`, `T`, `S`, `N`, `E`), a role of this one (`C=3`, `D`), or a number.

    `name:role` shows a dim by a name of the author's.
    """
    words: List[str] = []
    sizes: Dict[str, int] = {}
    for dim in dims:
        role, _, size = dim.partition("=")
        shown, separator, other = role.partition(":")
        role = other if separator else shown
        if role.isdigit():
            words.append(role)
            continue
        key = "#" + role if role in _SHARED and not separator else role if separator else "%s.%s" % (parameter, role)
        first = int(size) if size else FEATURES
        # What is larger depends on data (unknown_sizes.py): any size will do.
        sizes.setdefault(key, first if size and first <= LARGEST else FIRST.get(role, FEATURES))
        name = shown if separator else role if role in SHOWN else ""
        words.append("%s:⟨%s⟩" % (name, key) if name else "⟨%s⟩" % key)
    return Form("%s[%s]" % (dtype, ", ".join(words)) if words else "%s[()]" % dtype, sizes, len(words), dtype)


_SHARED = {"B", "T", "S", "N", "E"}
FIRST = {
    "B": BATCH, "T": STEPS, "S": OTHER_STEPS, "D": FEATURES, "C": CHANNELS, "P": PICTURE, "H": PICTURE, "W": PICTURE, "V": VOLUME,
    "L": SIGNAL, "N": NODES, "E": EDGES, "Q": POINTS, "F": 8, "K": 4,
}  # fmt: skip


def shape_of(dtype: str, dims: str, parameter: str) -> Form:
    """`tensor`, with the dims in one string."""
    return tensor_form(parameter, dtype, *dims.split())


def distinct_forms(found: Iterable[Form], path: str) -> List[Form]:
    """Each form once, with the sizes that belong to one argument alone named by its path."""
    out: Dict[Tuple[str, Tuple[Tuple[str, int], ...]], Form] = {}
    for form in found:
        own = {name: "%s.%s" % (path, name.rpartition(".")[2]) for name in form.sizes if "." in name}
        if any(name != other for name, other in own.items()):
            template = re.sub("⟨([^⟩]*)⟩", lambda match: "⟨%s⟩" % own.get(match[1], match[1]), form.template)  # noqa: B023
            form = replace(form, template=template, sizes={own.get(name, name): size for name, size in form.sizes.items()})
        out.setdefault((form.template, tuple(form.sizes.items())), form)
    return list(out.values())


def is_of_channels(name: str, form: Form) -> bool:
    """True if a size is that of the channels of pictures: what is called so, or the second of four."""
    if form.rank != 4 or form.dtype != "f32":
        return False
    return name.rpartition(".")[2] == "C" or "⟨%s⟩" % name in form.template.split(", ")[1]


_SIDES = ("P", "H", "W", "@h", "@H", "@height", "@w", "@W", "@width")  # what a picture's dims are called


def is_of_side(name: str, form: Form) -> bool:
    """True if a size is the height or width of a picture: what is called so, or one of the last two of four."""
    role = name.rpartition(".")[2]
    return role in _SIDES or (form.rank == 4 and role in ("U2", "U3"))


# --- by the layer that most likely comes first ---


def first_layer(model: Any) -> Any:
    """The layer of torch's that a model registered first, of those whose input says something; None where there is none."""
    for module in module_tree.modules(model):
        if isinstance(module, _TELLING) and (module is not model or not module.__dict__.get("_modules")):
            return module
    return None


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
# By the number of their values: pictures of MNIST, CIFAR and their like, which models flatten themselves.
_FLATTENED = {count * side * side: (count, side, side) for count, side in ((1, 28), (3, 28), (3, 32), (3, 64), (3, 96), (3, 128), (3, 224))}
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)
_TELLING = (
    *_CONVOLUTIONS, *_RECURRENT, nn.Linear, nn.Embedding, nn.LayerNorm, nn.MultiheadAttention, nn.TransformerEncoderLayer,
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm,
)  # fmt: skip


def forms_of_layer(layer: nn.Module, parameter: str, is_square: bool = False) -> List[Form]:
    """The forms that a first layer takes; [] where its class does not build what it inherits, so that its sizes are not there.

    is_square: whether pictures are as high as they are wide.
    """
    try:
        found = _forms_of_layer(layer, parameter)
        return [form for form in found if not is_square or not {"%s.H" % parameter, "%s.W" % parameter} <= form.sizes.keys()]
    except AttributeError:
        return []


def _forms_of_layer(layer: Any, parameter: str) -> List[Form]:

    def forms(*texts: str, dtype: str = "f32") -> List[Form]:
        return [shape_of(dtype, text, parameter) for text in texts]

    if isinstance(layer, _CONVOLUTIONS):
        channels = layer.in_channels
        rank = len(layer.kernel_size)
        if _makes_pictures_of_vectors(layer):
            return forms("B C=%d%s" % (channels, " 1" * rank), "B C=%d%s" % (channels, " P" * rank))
        texts = {1: ["B C=%d L" % channels, "B L C=%d" % channels, "B L"], 2: ["B C=%d P P" % channels, "B C=%d H W" % channels],
                 3: ["B C=%d V V V" % channels, "B C=%d F P P" % channels]}[rank]  # fmt: skip
        return forms(*texts)
    if isinstance(layer, (nn.BatchNorm2d, nn.GroupNorm)):
        channels = layer.num_features if isinstance(layer, nn.BatchNorm2d) else layer.num_channels
        return forms("B C=%d P P" % channels, "B C=%d L" % channels, "B C=%d" % channels)
    if isinstance(layer, nn.BatchNorm3d):
        return forms("B C=%d V V V" % layer.num_features)
    if isinstance(layer, nn.BatchNorm1d):
        return forms("B D=%d" % layer.num_features, "B C=%d L" % layer.num_features)
    if isinstance(layer, nn.Embedding):
        return forms("B T", "B", dtype="i64")
    if isinstance(layer, nn.RNNCellBase):
        return forms("B D=%d" % layer.input_size)
    if isinstance(layer, nn.RNNBase):
        return forms(*_sequences(layer.input_size, layer.batch_first))
    if isinstance(layer, nn.LayerNorm):
        shape = layer.normalized_shape
        if len(shape) > 1:
            return forms(" ".join(["B", *map(str, shape)]))
        return forms("B T D=%d" % shape[0], "B D=%d" % shape[0], "B P P D=%d" % shape[0])
    if isinstance(layer, (nn.MultiheadAttention, nn.TransformerEncoderLayer)):
        attention = layer if isinstance(layer, nn.MultiheadAttention) else layer.self_attn
        return forms(*_sequences(attention.embed_dim, attention.batch_first))
    if isinstance(layer, nn.Linear):
        picture = _FLATTENED.get(layer.in_features)
        flattened = ["B %d %d %d" % picture] if picture is not None else []
        return forms("B D=%d" % layer.in_features, "B T D=%d" % layer.in_features, *flattened, "B P P D=%d" % layer.in_features)
    return []


def _makes_pictures_of_vectors(layer: Any) -> bool:
    """True if a layer is the first of a generator's, as in DCGAN: https://arxiv.org/abs/1511.06434"""
    is_transposed = isinstance(layer, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d))
    return is_transposed and min(layer.kernel_size) > 2 and {*layer.stride, *layer.dilation} == {1} and not any(layer.padding)


def _sequences(features: int, batch_first: bool) -> List[str]:
    order = ["B T D=%d" % features, "T B D=%d" % features]
    return order if batch_first else order[::-1]


_WIDTHS = ("in_channels", "in_features", "in_dim", "in_feats", "input_dim", "input_size", "num_features", "node_dim")


def forms_of_graph_nodes(model: Any, layer: Any, parameter: str) -> List[Form]:
    """The forms of what a graph's nodes hold, by the width that a model remembers or its first layer takes."""
    if isinstance(layer, nn.Embedding):
        return [shape_of("i64", "N", parameter), shape_of("f32", "N D", parameter)]
    widths = [getattr(model, name, None) for name in _WIDTHS] + [getattr(layer, "in_features", None)]
    features = next((width for width in widths if type(width) is int and width > 0), FEATURES)
    return [shape_of("f32", "N D=%d" % features, parameter)]


def forms_of_state(model: Any, parameter: str) -> List[Form]:
    """The form of the state that a model's recurrent layer takes; [] where there is none."""
    layer = next((module for module in module_tree.modules(model) if isinstance(module, _RECURRENT)), None)
    if isinstance(layer, nn.RNNCellBase):
        return [shape_of("f32", "B %d" % layer.hidden_size, parameter)]
    if isinstance(layer, nn.RNNBase):
        size = getattr(layer, "proj_size", 0) or layer.hidden_size
        return [shape_of("f32", "%d B %d" % (layer.num_layers * (1 + layer.bidirectional), size), parameter)]
    return []


# --- by name ---


def forms_by_name(parameter: str) -> List[Form]:
    """The forms that a parameter's name speaks for, the likelier first."""
    return [shape_of(dtype, dims, parameter) for dtype, dims in tensors_by_name(parameter)]


def forms_of_sample(key: str) -> List[Form]:
    """The forms that a value of one sample's dict may have, which has no batch: a row for each of its objects, or a picture."""
    found = [(dtype, dims[2:] if dims.startswith("B ") else dims) for dtype, dims in (*tensors_by_name(key), ("f32", "B D"))]
    return [shape_of(dtype, "Q" if dims in ("B", "") else dims, key) for dtype, dims in found]


def general_forms(parameter: str) -> List[Form]:
    """The forms that any parameter may have."""
    return [shape_of(dtype, dims, parameter) for dtype, dims in read_forms(GENERAL)]


def forms_of_dict_value(path: str) -> List[Form]:
    """The forms that the value of a dict may have."""
    return [shape_of(dtype, dims, path) for dtype, dims in read_forms(ENTRIES)]


def scalars(parameter: inspect.Parameter) -> List[Form]:
    """Returns the forms of a parameter whose annotation says that it is no tensor; [] for other parameters."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else annotation.__name__ if isinstance(annotation, type) else str(annotation)
    text = re.sub(r"^(typing\.)?Optional\[(.*)\]$", r"\2", text.strip()).replace(" | None", "")
    words = words_of(parameter.name)
    if text == "int":
        number = number_for(parameter.name)
        return [Form(str(4 if number is None else number))]
    if text == "float":
        return [Form("0.5")]
    if text == "bool":
        return [Form("False"), Form("True")]
    if text == "str":
        return [Form('"%s"' % words)]
    return []


# --- by what the text says ---


def forms_of_shape(parameter: str, shape: InputShape, *, is_sample: bool = False) -> List[Form]:
    """The forms that what the text says of a parameter allows; dims that have the same name in several parameters are one size.

    is_sample: it is of one sample, so that no dim is the batch.
    """
    found: List[Form] = []
    for dims in (*([shape.dims] if shape.dims is not None else _open(shape)), *shape.alternatives):
        if REST not in dims:
            words = _words(dims, shape, is_sample)
            found += [tensor_form(parameter, dtype, *words) for dtype in ([shape.dtype] if shape.dtype else ["f32", "i64"])]
    return found


_USUAL = {1: "B", 2: "B D", 3: "B T D", 4: "B C P P", 5: "B C V V V"}  # dims that are not named, by the rank


def _open(shape: InputShape) -> Iterator[Tuple[Union[str, int, None], ...]]:
    """The dims of a shape of which the first or the last ones are known, for one rank after the other."""
    if REST not in shape.pattern:
        return
    at = shape.pattern.index(REST)
    known = len(shape.pattern) - 1
    for rank in (3, 2, 4, 1, 5):
        if rank >= max(shape.min_rank, known):
            yield shape.pattern[:at] + (None,) * (rank - known) + shape.pattern[at + 1 :]


def _words(dims: Sequence[Union[str, int, None]], shape: InputShape, is_sample: bool) -> List[str]:
    names = display_names(replace(shape, dims=tuple(dims)))
    roles = [role_of(dim) if isinstance(dim, str) else "" for dim in dims]
    if is_sample:
        roles = ["" if role == "B" else role for role in roles]
    elif dims and not roles[0] and (dims[0] is None or (type(dims[0]) is str and (len(dims) > 1 and ("B" not in roles or dims[0] == "a")))):
        roles = ["B", *["" if role == "B" else role for role in roles[1:]]]  # In `a, b, c = x.shape` b is no batch either.
    words = []
    for index, dim in enumerate(dims):
        if isinstance(dim, int):
            words.append(str(dim))
            continue
        role = roles[index]
        first = FIRST.get(role, FEATURES)
        if role == "B":  # One batch for all inputs, whatever each calls it.
            words.append("B")
        elif dim is not None and dim.isidentifier():
            shown = names[index] if role in SHOWN and index < len(names) else None
            words.append("%s:@%s=%d" % (shown or "", dim, first))
        else:
            usual = _USUAL.get(len(dims), "").split()[index : index + 1]
            words.append("T" if usual == ["T"] else "U%d=%d" % (index, FIRST.get("".join(usual), first)))
    return words
