"""Values by the names of parameters: the words in the field's many spellings, and small life-like values for them.

The sizes fit together where code usually divides: pictures by patches and windows, widths by heads and groups. Different roles have
different sizes as far as that goes, so that dims can be told apart.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

# One spelling of each word. What stands for two words is written out.
SPELLINGS: Dict[str, str] = {
    "n": "num", "nb": "num", "nr": "num", "no": "num", "number": "num", "nums": "num", "count": "num", "ch": "channels",
    "chn": "channels", "chs": "channels", "chan": "channels", "chans": "channels", "channel": "channels", "planes": "channels",
    "plane": "channels", "filter": "filters", "nfilters": "num filters", "fmaps": "channels", "chns": "channels", "cs": "channels",
    "inplanes": "in channels", "inplane": "in channels", "outplanes": "out channels", "outplane": "out channels",
    "inchannels": "in channels", "outchannels": "out channels", "inchannel": "in channels", "outchannel": "out channels",
    "inch": "in channels", "outch": "out channels", "cin": "in channels", "cout": "out channels", "nc": "num channels",
    "ngf": "base channels", "ndf": "base channels", "nf": "base channels", "input": "in", "inputs": "in", "inp": "in", "ninp": "in dim",
    "output": "out", "outputs": "out", "oup": "out", "outp": "out", "nin": "in features", "nout": "out features",
    "infeatures": "in features", "outfeatures": "out features", "src": "source", "tgt": "target", "trg": "target", "nz": "latent dim",
    "z": "latent", "dimensions": "dim", "dimension": "dim", "dims": "dim s", "ndim": "num dim", "feature": "features",
    "feat": "features", "feats": "features", "ftrs": "features", "nfeat": "num features", "nfeatures": "num features",
    "nclass": "num classes", "nclasses": "num classes", "class": "classes", "cls": "classes", "label": "classes", "labels": "classes",
    "categories": "classes", "ncls": "num classes", "numclasses": "num classes", "nlabels": "num classes", "emb": "embed",
    "embd": "embed", "embedding": "embed", "embeddings": "embed", "emsize": "embed size", "embeds": "embed", "embsize": "embed size",
    "nembd": "embed dim", "nemb": "embed dim", "hid": "hidden", "nhid": "hidden dim", "hiddens": "hidden s", "hsize": "hidden size",
    "hdim": "hidden dim", "nhidden": "hidden dim", "h": "hidden", "nhead": "num heads", "nheads": "num heads", "head": "heads",
    "numheads": "num heads", "dhead": "head dim", "layer": "layers", "nlayers": "num layers", "nlayer": "num layers",
    "numlayers": "num layers", "block": "blocks", "nblocks": "num blocks", "stage": "stages", "depths": "depth s", "repeat": "repeats",
    "img": "image", "images": "image", "imgs": "image", "imsize": "image size", "imgsize": "image size", "picture": "image",
    "resolution": "image size", "res": "image size", "resolutions": "image size s", "crop": "image", "patches": "patch",
    "patchsize": "patch size", "k": "kernel", "ks": "kernel size", "ksize": "kernel size", "kernels": "kernel s",
    "kernelsize": "kernel size", "ksz": "kernel size", "strides": "stride s", "pad": "padding", "pads": "padding s",
    "paddings": "padding s", "dil": "dilation", "dilations": "dilation s", "sequence": "seq", "len": "length", "lengths": "length s",
    "seqlen": "seq length", "maxlen": "max length", "vocabulary": "vocab", "voc": "vocab", "token": "tokens", "ntoken": "num tokens",
    "ntokens": "num tokens", "nvocab": "vocab size", "dmodel": "model dim", "dff": "ffn dim", "ff": "ffn", "feedforward": "ffn",
    "intermediate": "ffn", "mlps": "mlp s", "ratios": "ratio s", "mult": "ratio", "multiplier": "ratio", "multiple": "ratio",
    "expand": "ratio", "expansion": "ratio", "expansions": "ratio s", "factor": "ratio", "factors": "ratio s", "squeeze": "reduction",
    "drop": "dropout", "dropouts": "dropout s", "pdrop": "dropout", "act": "activation", "activations": "activation",
    "nonlinearity": "activation", "nonlin": "activation", "normalization": "norm", "normalisation": "norm", "norms": "norm",
    "obs": "observation", "observations": "observation", "actions": "action", "states": "state", "epsilon": "eps", "mom": "momentum",
    "lookback": "seq length", "horizon": "pred length", "cond": "context", "condition": "context", "ctx": "context", "win": "window",
    "windows": "window s", "wsize": "window size", "group": "groups", "ngroups": "num groups", "scales": "scale s",
    "timesteps": "time steps", "timestep": "time steps", "frame": "frames", "point": "points", "node": "nodes", "edges": "edge",
    "expert": "experts", "sizes": "size s", "widths": "width s", "neurons": "units", "unit": "units", "rates": "rate s",
    "lens": "length s", "scalings": "scaling s", "wid": "width", "fs": "features s", "bs": "batch size",
}  # fmt: skip


_RESIDUAL = {"block", "blocks", "layer", "layers", "unit", "units", "net", "nets"}  # what is called residual, rather than a resolution


@functools.lru_cache(maxsize=4096)
def words(name: str) -> Tuple[str, ...]:
    """The words of a name, each in one spelling: `n_heads`, `numHeads` and `nhead` are ("num", "heads"). A plural of sizes ends in "s"."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    found: List[str] = []
    lower = [part.lower() for part in parts]
    for position, part in enumerate(lower):
        if part == "res" and lower[position + 1 : position + 2] and lower[position + 1] in _RESIDUAL:
            continue  # `num_res_blocks`
        if part == "d" and len(parts) > 1:
            part = "dim"
        elif part == "c" and len(parts) > 1:
            part = "channels"
        elif part == "h" and len(parts) == 1:
            part = "height"
        elif part == "p" and position == 0 and len(parts) > 1:
            part = "rate"
        found += SPELLINGS.get(part, part).split()
    return tuple(found)


@dataclass(frozen=True)
class Prior:
    """The value that a name speaks for. kind: "int", "float", "text", "bool", "image" (height and width, or a single number), "shape"."""

    kind: str
    value: Any
    items: Tuple[Any, ...] = ()  # of a list of such, the first so many
    role: str = ""  # of two parameters of one role that are tied by the code, both have the same size


def _prior(kind: str, value: Any, *items: Any, role: str = "") -> Prior:
    return Prior(kind, value, items or (value,) * 4, role)


HEADS = _prior("int", 4, role="heads")
DEPTH = _prior("int", 2, role="depth")
DIM = _prior("int", 64, 32, 64, 128, 256, role="dim")
IN = _prior("int", 3, 32, 64, 128, 256, role="in")
CHANNELS = _prior("int", 32, 32, 64, 128, 256, role="channels")
OUT = _prior("int", 32, 32, 48, 64, 96, role="out")
HIDDEN = _prior("int", 128, 64, 48, 40, 32, role="hidden")
CLASSES = _prior("int", 10, role="classes")
RATE = _prior("float", 0.1, role="rate")
LENGTH = _prior("int", 128, role="length")
RATIO = _prior("int", 2, 2, 2, 2, 2, role="ratio")
IMAGE = _prior("image", 224, 224, 224, role="image")
KERNEL = _prior("int", 3, role="kernel")

# (words that have to be there, words of which one has to be there, what they say). The first that fits counts.
_RULES: List[Tuple[str, str, Prior]] = [
    ("ratio", "mlp ffn hidden expand", _prior("int", 4, role="ratio")), ("dropout", "", RATE),
    ("rate", "learning", _prior("float", 0.001)), ("rate", "sample sampling", _prior("int", 16000)),
    ("rate", "drop dropout path keep attn att attention", RATE), ("rate", "dilation", _prior("int", 1, 1, 2, 4, 8)),
    ("rate growth", "", _prior("int", 16)), ("lr", "", _prior("float", 0.001)), ("eps", "", _prior("float", 1e-5)),
    ("momentum", "", _prior("float", 0.1)), ("prob", "", RATE), ("decay", "", _prior("float", 0.01)),
    ("temperature", "", _prior("float", 1.0)), ("std", "", _prior("float", 0.02)), ("slope", "", _prior("float", 0.2)),
    ("alpha", "", _prior("float", 0.5)), ("beta", "", _prior("float", 0.5)), ("gamma", "", _prior("float", 0.5)),
    ("lambda", "", _prior("float", 0.5)), ("weight", "loss", _prior("float", 1.0)), ("sigma", "", _prior("float", 1.0)),
    ("theta", "", _prior("float", 10000.0)), ("threshold", "", _prior("float", 0.5)), ("bias", "", _prior("bool", True)),
    ("causal", "", _prior("bool", False)), ("bidirectional", "", _prior("bool", False)), ("kernel", "", _prior("int", 3, role="kernel")),
    ("stride", "", _prior("int", 1, 1, 2, 2, 2, role="stride")), ("padding idx", "", _prior("int", 0)), ("idx", "", _prior("int", 0)),
    ("index", "", _prior("int", 0)), ("id", "", _prior("int", 0)), ("padding mode", "", _prior("text", "zeros")),
    ("padding", "", _prior("int", 1, role="padding")), ("dilation", "", _prior("int", 1, 1, 2, 4, 8, role="dilation")),
    ("patch size", "", _prior("image", 16, 16, 16, role="patch")), ("patch num", "", _prior("int", 196)),
    ("patch", "height width h w", _prior("int", 16)), ("window size", "", _prior("image", 7, 7, 7, role="window")),
    ("window", "", _prior("int", 7, role="window")), ("pool size", "", _prior("image", 2, 2, 2)),
    ("dim head", "", _prior("int", 16, role="head dim")), ("heads", "dim channels size", _prior("int", 16, role="head dim")),
    ("heads", "kv", _prior("int", 2, role="kv heads")), ("kv heads", "", _prior("int", 2, role="kv heads")),
    ("heads", "", _prior("int", 4, 1, 2, 4, 8, role="heads")), ("vocab", "", _prior("int", 1000, role="vocab")),
    ("tokens", "num", _prior("int", 1000, role="vocab")), ("dict", "size", _prior("int", 1000, role="vocab")),
    ("embed num", "", _prior("int", 1000, role="vocab")), ("codebook size", "", _prior("int", 512)),
    ("codebook dim", "", _prior("int", 32)), ("codes num", "", _prior("int", 512)), ("users num", "", _prior("int", 100)),
    ("items num", "", _prior("int", 200)), ("user num", "", _prior("int", 100)), ("item num", "", _prior("int", 200)),
    ("experts", "", _prior("int", 4)), ("topk", "", DEPTH), ("top", "kernel", DEPTH), ("classes", "", CLASSES),
    ("anchors", "", _prior("int", 9)), ("boxes", "", _prior("int", 2)), ("targets", "num", CLASSES), ("batch size", "", DEPTH),
    ("time steps num", "", _prior("int", 8)),
    ("frames", "", _prior("int", 8)), ("max length", "", LENGTH), ("max positions", "", LENGTH), ("max position", "", LENGTH),
    ("seq length", "", LENGTH), ("seq size", "", LENGTH), ("block size", "", LENGTH), ("blocks size", "", LENGTH),
    ("pred length", "", _prior("int", 24, role="pred length")), ("context length", "", LENGTH), ("label length", "", _prior("int", 48)),
    ("length", "", LENGTH), ("max seq", "", LENGTH), ("position num", "", LENGTH), ("positions", "", LENGTH), ("time steps", "", LENGTH),
    ("time", "num", LENGTH), ("nodes", "num", _prior("int", 20)), ("points", "", _prior("int", 64)), ("relations", "", _prior("int", 3)),
    ("edge", "dim features in channels", _prior("int", 8)), ("queries", "", _prior("int", 16)), ("slots", "", _prior("int", 5)),
    ("latents", "num", _prior("int", 16)), ("steps", "", _prior("int", 4)), ("iters", "", DEPTH), ("iterations", "", DEPTH),
    ("mlp dim", "", HIDDEN), ("ffn", "", HIDDEN), ("action", "", _prior("int", 6, role="action")),
    ("observation", "", _prior("int", 17, role="observation")), ("state", "num dim size in", _prior("int", 17, role="state")),
    ("latent", "", _prior("int", 20, 20, 16, 12, 8, role="latent")), ("noise", "dim size", _prior("int", 20)),
    ("modes", "", _prior("int", 8)), ("rank", "", _prior("int", 4)), ("degree", "", DEPTH), ("order", "", DEPTH),
    ("groups", "norm", _prior("int", 8)), ("groups num", "", _prior("int", 4)), ("groups", "", _prior("int", 1)),
    ("reduction", "", _prior("int", 4)), ("se ratio", "", _prior("float", 0.25)), ("ratio", "up down upsample downsample scale", RATIO),
    ("ratio", "mask masked masking noise corruption keep pretraining pool pooling", _prior("float", 0.5)),
    ("scaling", "", _prior("int", 1)),
    ("ratio", "", RATIO), ("scale", "", RATIO), ("cardinality", "", _prior("int", 4)), ("growth", "", _prior("int", 16)),
    ("image height", "", _prior("int", 224)), ("image width", "", _prior("int", 224)), ("image", "channels", IN), ("image", "", IMAGE),
    ("size", "spatial crop", _prior("image", 64, 64, 64, 64, role="image")), ("shape", "in observation", _prior("shape", (3, 64, 64))),
    ("shape", "", _prior("image", 32, 32, 32, role="image")), ("out", "channels", OUT), ("out", "dim features size num", OUT),
    ("channels out", "", OUT), ("hidden", "channels", _prior("int", 48, 32, 48, 64, 96, role="hidden")), ("hidden", "", HIDDEN),
    ("inner", "", HIDDEN), ("units", "", HIDDEN), ("bottleneck", "dim channels size", _prior("int", 16)),
    ("mid channels", "", _prior("int", 24)), ("mid", "", _prior("int", 24)), ("base channels", "", CHANNELS), ("in channels", "", IN),
    ("in dim", "", _prior("int", 64, role="in")), ("in features", "", _prior("int", 64, role="in")),
    ("in size", "", _prior("int", 64, role="in")), ("in num", "", _prior("int", 64, role="in")), ("embed", "", DIM),
    ("model dim", "", DIM), ("channels", "color", IN), ("spatial dim num", "", DEPTH), ("dim", "spatial", DEPTH),
    ("layers dim", "", HIDDEN), ("layers", "", DEPTH),
    ("depth", "", DEPTH), ("blocks", "", DEPTH), ("repeats", "", DEPTH), ("stages", "", _prior("int", 4)),
    ("levels", "", _prior("int", 3)), ("stacks", "", DEPTH), ("hops", "", DEPTH),
    ("context", "dim channels size features", _prior("int", 48, role="context")),
    ("time", "dim channels embed features", _prior("int", 32)), ("skip", "channels dim", _prior("int", 24)),
    ("fields", "", _prior("int", 5)), ("dim num", "", DEPTH), ("variates num", "", _prior("int", 7)), ("features num", "", DIM),
    ("features", "", DIM), ("filters", "", CHANNELS), ("channels num", "", CHANNELS), ("channels", "", CHANNELS),
    ("width", "", _prior("int", 32)), ("height", "", _prior("int", 32)), ("q dim", "", DIM), ("key", "dim", DIM), ("query", "dim", DIM),
    ("value", "dim", DIM), ("dim", "", DIM), ("size", "", _prior("int", 32)), ("activation", "", _prior("text", "relu")),
    ("norm", "", _prior("text", "batch")), ("act", "", _prior("text", "relu")),
    ("init", "", _prior("float", 0.02)), ("mode", "interpolation upsample up", _prior("text", "nearest")), ("num", "", _prior("int", 4)),
    ("in", "", _prior("int", 64, role="in")), ("out", "", OUT), ("dropout", "", RATE), ("max", "", LENGTH), ("rate", "", RATE),
    ("s", "dim", DIM),
]  # fmt: skip

RULES: List[Tuple[FrozenSet[str], FrozenSet[str], Prior]] = [
    (frozenset(all_of.split()), frozenset(any_of.split()), prior) for all_of, any_of, prior in _RULES
]
SINGLE: Dict[str, Prior] = {
    "d": DIM, "m": DIM, "c": CHANNELS, "k": KERNEL, "s": _prior("int", 1), "p": RATE, "t": LENGTH, "l": LENGTH, "r": _prior("int", 4),
    "w": _prior("int", 32), "g": _prior("int", 1), "e": _prior("float", 0.5), "b": DEPTH, "z": _prior("int", 20), "v": _prior("int", 1000),
    "mask": _prior("int", 1, role="mask"), "c1": CHANNELS, "c2": CHANNELS, "n": DEPTH, "f": CHANNELS, "h": HEADS,
}  # fmt: skip
BOOLEAN = re.compile(
    r"^(use|is|with|has|do|enable|apply|add|return|learn|learnable|share|shared|include|no|force|save|allow|should|need|can)(_|$)"
    r"|_(first|only|enabled|flag)$|^(pretrained|training|verbose|debug|shortcut|affine|inplace|deterministic|normalize|bidirectional)$"
)


TEXTUAL = re.compile(r"(^|_)(name|path|dir|file|filename|url|str|string|backend|checkpoint|ckpt)$|_type$|^type$")
_TEXTS = {"norm": "batch", "activation": "relu", "conv": "conv", "pool": "max", "padding": "zeros"}
_WIDTHS = {"channels", "features", "filters", "units", "width"}
_OF_WIDTHS = {"ratio", "reduction", "blocks", "layers", "stages", "scale", "window", "norm", "activation", "dropout", "growth", "points"}


@functools.lru_cache(maxsize=4096)
def prior_of(name: str, is_number: bool = False) -> Optional[Prior]:
    """Returns the prior that a name speaks for; None where a name says nothing. is_number: as is known already."""
    if name.lower() in SINGLE:
        return SINGLE[name.lower()]
    if not is_number and BOOLEAN.search(name.lower()):
        return _prior("bool", False)
    if not is_number and TEXTUAL.search(name.lower()):
        return _prior("text", _TEXTS.get(words(name)[0], words(name)[-1]))
    found = set(words(name))
    if words(name) and words(name)[-1] in _WIDTHS:
        found -= _OF_WIDTHS  # `init_block_channels` are channels.
    for all_of, any_of, prior in RULES:
        if all_of <= found and (not any_of or any_of & found):
            return prior
    return None


def is_plural(name: str) -> bool:
    """True if a name reads like that of a list of sizes: `dims`, `kernel_sizes`, `hidden_dims`; `num_heads` and `filters` don't count."""
    found = words(name)
    return "s" in found[1:] and "num" not in found


def is_embedding_width(name: str) -> bool:
    """True if a name is that of the width of embeddings: `embed_dim`, `emb_size`, `d_embedding`."""
    found = set(words(name))
    return "embed" in found and bool(found & {"dim", "size"}) and found <= {"embed", "dim", "size", "word", "tokens", "input", "in"}
