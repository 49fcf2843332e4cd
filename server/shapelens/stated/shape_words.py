"""Shapes as people write them: `(B, C, H, W)`, `[batch, seq_len, dim]`, `B x T x C`, `BxCxHxW`, `\\mathbb{R}^{B \\times N}`.

A dim is a name, a number, or None where it is computed (`H * W`) or left open (`_`). `...` among the dims stands for any number of them.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple, Union

Dim = Union[str, int, None]
Dims = Tuple[Dim, ...]

REST = "..."  # any number of dims, also none

_SPACED = re.compile(r"(?<![\w.])(\w+(?:\s*[*+/-]+\s*\w+)?(?:\s+[xX×]\s+[\w*+/().-]+)+)")
_GLUED = re.compile(r"(?<![\w.])((?:[A-Z]\w?|[a-z]{1,2}|\d+)(?:[x×](?:[A-Z]\w?|[a-wyz]{1,2}|\d+)){1,5})(?![\w.])")
_LETTERS = re.compile(r"\b(?:shape|format|layout|order)s?\W{0,4}([BN][A-Z]{1,4})\b|\b([BN]C(?:D?HW|T?HW|[LT]))\b")
_REALS = re.compile(r"\\mathbb\s*\{?R\}?\s*\^\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_MARKUP = re.compile(r":(?:math|obj|class|attr|code|ref|mod):(?=`)|[`$]|\\(?:text|mathrm|mathbf|mathcal|textrm|mathit|texttt)\b|\\[,;! ]")
_INTRODUCED = re.compile(
    r"(?:\b(?:shape[sd]?|sized?|sizes|dim(?:ension)?s?|dimensionality)|[Tt]ensors?)\W{0,3}(?:\s?(?:is|are|as|of|be|with|like|in|being)\b)*\W{0,4}$"
)
_OPENING = re.compile(
    r"[\s:=∈~>-]*(?:(?:is|are|a|an|the|input|torch\.|[Tt]ensors?|of|with|has|have|shape[sd]?|sized?|torch\.Size|Size|dims?)[\s:=]*)*"
)
_TENSOR_RANK = re.compile(r"\b([1-6])\s?-?\s?[dD](?:imensional)?\s(?:(?:torch\.)?(?:Float|Long|Bool)?[Tt]ensor|batch)\b")
_ALTERNATIVE = re.compile(r"\b(?:or|OR|Or)\b|^[\s,]*[/|][\s,]*$")

# Words that stand in brackets in prose, but never name a dim.
_NO_DIM = frozenset((
    "optional", "default", "defaults", "none", "true", "false", "tensor", "tensors", "required", "ignored", "unused", "int", "float",
    "bool", "str", "string", "list", "tuple", "dict", "shape", "shapes", "size", "sizes", "etc", "and", "or", "if", "the", "an", "is",
    "are", "eg", "ie", "see", "not", "no", "only", "same", "as", "like", "with", "without", "for", "of", "to", "from", "on", "at", "by",
    "than", "default:", "long", "float32", "float16", "int64", "int32", "deprecated",
))  # fmt: skip
_DIM_PARTS = frozenset((
    "b", "bs", "bsz", "nb", "batch", "batches", "batchsize", "minibatch", "n", "m", "k", "t", "s", "l", "c", "d", "e", "f", "h", "w",
    "p", "q", "r", "g", "v", "z", "i", "j", "o", "u", "y", "num", "nums", "no", "number", "count", "counts", "seq", "sequence", "len",
    "length", "lengths", "time", "times", "timesteps", "timestep", "step", "steps", "dim", "dims", "dimension", "dimensions", "size",
    "sizes", "height", "width", "depth", "channel", "channels", "chan", "chans", "ch", "chn", "feat", "feats", "feature", "features",
    "head", "heads", "hidden", "hid", "embed", "emb", "embedding", "embeddings", "vocab", "class", "classes", "token", "tokens",
    "patch", "patches", "frame", "frames", "node", "nodes", "edge", "edges", "point", "points", "sample", "samples", "query", "queries",
    "key", "keys", "value", "values", "in", "out", "input", "inputs", "output", "outputs", "model", "src", "tgt", "source", "target",
    "spatial", "img", "image", "images", "pixel", "pixels", "x", "xy", "row", "rows", "col", "cols", "column", "columns", "mel", "mels",
    "freq", "freqs", "frequency", "bins", "bin", "layer", "layers", "group", "groups", "window", "windows", "slot", "slots", "object",
    "objects", "box", "boxes", "anchor", "anchors", "label", "labels", "var", "vars", "variables", "nvars", "nvar", "series", "mem",
    "memory", "state", "states", "latent", "latents", "rank", "order", "max", "min", "total", "atoms", "atom", "residues", "res", "ctx",
    "context", "block", "blocks", "chunk", "chunks", "cls", "lat", "lon", "views", "view",
))  # fmt: skip
# Words of dims that, alone, are more likely to name a tensor: (query, key, value).
_TENSORS = frozenset((
    "query", "key", "value", "input", "inputs", "output", "outputs", "target", "source", "image", "images", "label", "labels", "context",
    "memory", "state", "states", "latent", "latents", "anchor", "box", "boxes", "object", "series", "src", "tgt", "img", "x", "y", "mem",
    "in", "out",
))  # fmt: skip
_BATCH = frozenset((
    "b", "bs", "bsz", "nb", "batch", "batches", "batch_size", "batchsize", "batch_dim", "n", "num_batch", "num_batches", "minibatch",
    "mini_batch", "bz", "bsize", "n_batch", "nbatch", "btz",
))  # fmt: skip


@dataclass(frozen=True)
class StatedShape:
    """A shape that a text states, and where in that text."""

    dims: Dims
    start: int
    end: int
    alternatives: Tuple[Dims, ...] = ()  # "(N, C) or (N, C, L)": the others


def is_open_rank(dims: Dims) -> bool:
    """True if the number of dims is left open."""
    return REST in dims


def is_batch(dim: Dim) -> bool:
    """True if a dim's name is one of those that people give the batch."""
    return isinstance(dim, str) and dim.lower() in _BATCH


def is_dim_word(name: str) -> bool:
    """True if a name looks like that of a dim: a letter (`C`, `H2`, `N_q`), or words that dims are called by (`seq_len`)."""
    parts = [part for part in re.split(r"_|\d+|(?<=[a-z])(?=[A-Z])", name) if part]
    if not parts:
        return False
    return len(parts[0]) == 1 or any(part.lower() in _DIM_PARTS for part in parts)


_READ_AS: Tuple[Tuple["re.Pattern[str]", Dim], ...] = (
    (re.compile(r"\.\.\.?|…|\\?\*|∗|\\l?dots|\*\s?#?[A-Za-z_]\w*|[A-Za-z_]\w*\.\.\."), REST),
    (re.compile(r".*\\(?:sum|cdot|prod|frac|lfloor|lceil|times|max|min)\b.*", re.DOTALL), None),  # computed
    (re.compile(r"(?:\w+_)?spatial(?:_?(?:dims?|dimensions?|sizes?|shape))?", re.IGNORECASE), REST),  # one dim or several
    (re.compile(r"\[.*\]", re.DOTALL), REST),  # (B, C, [H, W]): those in brackets may be left out
    (re.compile(r"\?|-1|_|:|none", re.IGNORECASE), None),
)


def read_dim(text: str, lenient: bool = True) -> Dim:
    """One dim of a shape. lenient: several words may name it (`batch size`). Raises ValueError for what is no dim."""
    text = re.sub(r"_\{(\w+)\}", r"_\1", text).strip().strip("'\"{}").strip()
    text = re.sub(r"^\*(\w+)\*$", r"\1", text)  # *N*, in italics
    for pattern, dim in _READ_AS:
        if pattern.fullmatch(text):
            return dim
    for rule in DIM_RULES:
        found = rule(text, lenient)
        if found is not None:
            return found[0]
    raise ValueError(text)


# --- the rules for one dim, in the order of DIM_RULES: each gives it in a tuple, and None for what it does not know ---


def _number(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`64`"""
    return (int(text),) if re.fullmatch(r"\d+", text) else None


def _given_size(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`channels=3`, `H: height`: a number that is given, or else the name."""
    given = re.fullmatch(r"(\w[\w ]*?)\s*(?:=|:)\s*(\S.*)", text)
    if given is None:
        return None
    left, right = read_dim(given[1], lenient), read_dim(given[2], lenient)
    return (right if isinstance(right, int) or left is None else left,)


def _with_remark(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`T (time)`"""
    remark = re.fullmatch(r"(\w+)\s?\([^()]*\)", text)
    return (read_dim(remark[1], lenient),) if remark is not None and remark[1].lower() not in _NO_DIM else None


def _name(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`seq_len`. Raises ValueError for a word that is no dim."""
    if not text.isidentifier():
        return None
    if text.lower() in _NO_DIM or keyword.iskeyword(text):
        raise ValueError(text)
    return (text,)


def _attribute(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`config.hidden_size`; `decoder.hidden_size`, where the attribute is called as a dim is."""
    if re.fullmatch(r"(?:self|config|cfg|args|opt|hparams)(?:\.\w+)+", text):
        return (text.rsplit(".", 1)[1],)
    is_dim = re.fullmatch(r"[A-Za-z_]\w*\.[A-Za-z_]\w*", text) is not None and is_dim_word(text.rsplit(".", 1)[1])
    return (text.replace(".", "_"),) if is_dim else None


def _hyphenated(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`batch-size`"""
    return (read_dim(text.replace("-", "_"), lenient),) if re.fullmatch(r"[A-Za-z]{2,}(?:-[A-Za-z]{2,})+", text) else None


def _computed(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`H * W`, `T/4`: which size that is nobody says."""
    if not re.search(r"[+*/^·×|%-]|\*\*|//|\\", text) or not re.fullmatch(r"[\w\s.+*/^·×|%(){}\[\]\\-]+", text):
        return None
    words = re.findall(r"[A-Za-z_]\w*", text)
    is_one = (words or text[0].isdigit()) and len(words) <= 6 and not _NO_DIM.intersection(word.lower() for word in words)
    return (None,) if is_one else None


def _several_words(text: str, lenient: bool) -> Optional[Tuple[Dim]]:
    """`batch size`, where that may be meant"""
    words = text.split()
    named = lenient and 2 <= len(words) <= 3 and all(word.isidentifier() for word in words)
    is_one = named and not (_NO_DIM - {"size"}).intersection(word.lower() for word in words) and any(map(is_dim_word, words))
    return ("_".join(words),) if is_one else None


# The first rule that knows a dim tells it.
DIM_RULES: Tuple[Callable[[str, bool], Optional[Tuple[Dim]]], ...] = (
    _number,
    _given_size,
    _with_remark,
    _name,
    _attribute,
    _hyphenated,
    _computed,
    _several_words,
)


def _pieces(text: str) -> List[str]:
    """The text at its commas, but not at those in brackets."""
    pieces, depth, last = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            pieces.append(text[last:index])
            last = index + 1
    return pieces + [text[last:]]


def read_dims(text: str, lenient: bool = True) -> Optional[Dims]:
    """The dims that stand in the brackets of a shape: `B, C, H, W`, `bs x nvars x len`. None where that is no shape."""
    pieces = _pieces(text.strip())
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()  # (N,)
    if len(pieces) == 1:
        pieces = _without_commas(pieces[0])
    if len(pieces) > 8:
        return None
    try:
        dims = tuple(read_dim(piece, lenient) for piece in pieces)
    except ValueError:
        return None
    return _without_series(dims) if dims.count(REST) <= 1 else None


def _without_series(dims: Dims) -> Dims:
    """`batch, channels, ...` for `batch, channels, d1, ..., dN`, which says of what is left out where it begins and ends."""
    place = dims.index(REST) if REST in dims else 0
    ends = dims[place - 1], dims[place + 1] if place + 1 < len(dims) else None
    first, last = [re.fullmatch(r"([A-Za-z]+)_?(\d+|[A-Za-z])", end) if isinstance(end, str) else None for end in ends]
    if not 0 < place < len(dims) - 1 or first is None or last is None or first[1] != last[1]:
        return dims
    return (*dims[: place - 1], REST, *dims[place + 2 :])


def jaxtyping_dims(text: str) -> Optional[Dims]:
    """The dims of a jaxtyping string: `batch 3 *rest dim=4 _ h*w`. A broadcastable `#n` counts as `n`. None where it cannot be read."""
    dims: List[Dim] = []
    for word in text.split():
        plain = word.lstrip("#?")
        if plain == "..." or plain.startswith("*"):
            dims.append(REST)
        elif plain.startswith("_") and (plain == "_" or plain.isidentifier()):
            dims.append(plain[1:] or None)
        else:
            try:
                dims.append(read_dim(plain, lenient=False))
            except ValueError:
                if not any(char in "+-*/()" for char in plain):
                    return None
                dims.append(None)
    return tuple(dims) if dims.count(REST) <= 1 else None


def _without_commas(text: str) -> List[str]:
    for separator in (r"\s+[xX]\s+", r"\s*×\s*", r"\s*\\times\s*"):
        parts = re.split(separator, text)
        if len(parts) > 1:
            return parts
    if _GLUED.fullmatch(text) and is_batch(re.split("[x×]", text)[0]):
        return re.split("[x×]", text)
    factors = [part.strip() for part in text.split("*")]
    if len(factors) >= 4 and is_batch(factors[0]):
        return factors  # N*C*H*W is meant as a shape; with fewer, it could as well be one size
    words = text.split()
    if len(words) > 1 and all(len(word) <= 2 and word.isalnum() for word in words):
        return words
    return [text]


def _names(dims: Dims) -> List[str]:
    return [dim for dim in dims if isinstance(dim, str) and dim != REST]


def opens_description(dims: Dims, text: str) -> bool:
    """True if dims are a shape where a description begins with them in brackets. text: what stands in those."""
    names = _names(dims)
    if not names or not all(is_dim_word(name) and name.lower() not in _TENSORS for name in names) or _is_picture_size(dims):
        return False
    return len(dims) > 1 or is_batch(dims[0]) or text.rstrip().endswith(",")


def _is_picture_size(dims: Dims) -> bool:
    return len(dims) == 2 and all(isinstance(dim, str) and dim.lower() in ("h", "w", "height", "width") for dim in dims)


def is_plausible(dims: Dims) -> bool:
    """True if dims in brackets are a shape although no word says so: `(batch, time)`, `(B, C, H, W)`, but not `(see, below)`, `[0, 1]`."""
    names = _names(dims)
    if len(dims) < 2 or not names or not all(is_dim_word(name) and name.lower() not in _TENSORS for name in names):
        return False
    if _is_picture_size(dims):
        return False
    return is_batch(dims[0]) or len(dims) >= 3 or (len(names) == 2 and all(len(name) > 1 for name in names))


def _cleaned(text: str) -> str:
    text = _REALS.sub(lambda match: f" shape ({match[1]}) ", text)
    text = _MARKUP.sub("", text)
    return " ".join(text.split())


def stated_shapes(text: str) -> List[StatedShape]:
    """The shapes that a text states, in its order; those that follow an `or` are alternatives of the one before."""
    text = _cleaned(text)
    found = _in_brackets(text)
    for match in (*_SPACED.finditer(text), *_GLUED.finditer(text)):
        if not _is_inside(match.start(), found):
            dims = read_dims(match[1], lenient=False)
            if dims is not None and _is_plain_shape(dims):
                found.append(StatedShape(dims, match.start(), match.end()))
    for match in _LETTERS.finditer(text):
        if not _is_inside(match.start(), found):
            found.append(StatedShape(tuple(match[1] or match[2]), match.start(), match.end()))
    found.sort(key=lambda one: one.start)
    return _with_alternatives(found, text)


def _in_brackets(text: str) -> List[StatedShape]:
    """The shapes that a text states in brackets, with what introduces them."""
    found: List[StatedShape] = []
    for start, end in _groups(text):
        if found and start < found[-1].end:
            continue
        before, inside = text[:start], text[start + 1 : end - 1]
        introduction, first = _INTRODUCED.search(before[-40:]), not before.strip(" :=-~>∈") or before.strip(" :") in ("a", "an")
        dims = read_dims(inside, introduction is not None or first)
        if dims is None or dims in ((), (None,), (REST,)):
            continue
        introduced = introduction is not None and not (_is_picture_size(dims) and "size" in introduction[0])
        introduced = introduced or re.match(r"\s?(?:torch\.)?(?:Float|Long|Bool)?[Tt]ensor\b", text[end:]) is not None  # an [N] Tensor
        stated_so = introduced and (len(dims) > 1 or "," in inside or isinstance(dims[0], str))
        if stated_so or is_plausible(dims) or (first and opens_description(dims, inside)):
            found.append(StatedShape(dims, start, end))
    return found


def _is_inside(place: int, found: List[StatedShape]) -> bool:
    return any(other.start <= place < other.end for other in found)


def _is_plain_shape(dims: Dims) -> bool:
    """True if dims without brackets around them are a shape: a batch is among them, and each is called as a dim is."""
    has_batch = any(is_batch(dim) for dim in (dims if len(dims) > 2 else dims[:1]))
    return len(dims) > 1 and has_batch and all(isinstance(dim, int) or dim is None or is_dim_word(dim) for dim in dims)


def _groups(text: str) -> List[Tuple[int, int]]:
    """Where what stands in round or square brackets begins and ends, brackets included: outer ones before those in them."""
    opened: List[int] = []
    found: List[Tuple[int, int]] = []
    for index, char in enumerate(text):
        if char in "([":
            opened.append(index)
        elif char in ")]" and opened:
            found.append((opened.pop(), index + 1))
    return sorted(found)


def _with_alternatives(found: List[StatedShape], text: str) -> List[StatedShape]:
    merged: List[StatedShape] = []
    for one in found:
        between = text[merged[-1].end : one.start] if merged else ""
        if merged and len(between) < 90 and _ALTERNATIVE.search(between):
            first = merged[-1]
            alternatives = first.alternatives + ((one.dims,) if one.dims not in (first.dims,) + first.alternatives else ())
            merged[-1] = StatedShape(first.dims, first.start, one.end, alternatives)
        else:
            merged.append(one)
    return merged


def first_stated(text: str) -> Optional[StatedShape]:
    """The first shape of a text that describes one tensor, or the rank of `a 3D tensor`. None where there is none."""
    shapes = stated_shapes(text)
    if shapes:
        return shapes[0]
    rank = _TENSOR_RANK.search(text)
    if rank is not None and not _ALTERNATIVE.search(text[rank.end() : rank.end() + 20]):
        return StatedShape((None,) * int(rank[1]), rank.start(), rank.end())
    return None


def opening_shape(text: str) -> Optional[StatedShape]:
    """The shape that a text begins with, as that of `(B, T, C), normalised` and `tensor of shape [N]`."""
    text = _cleaned(text)
    opening = _OPENING.match(text)
    shapes = stated_shapes(text)
    return shapes[0] if opening is not None and shapes and shapes[0].start <= opening.end() else None
