"""The meaning of an argument's name: a model, a loader, a loss, a number, or a setting that only steers and reports."""

from __future__ import annotations

import re
from typing import Iterator, List

from ..search.candidates.name_priors import BOOLEAN, prior_of
from ..search.inputs.forms import FIRST, Form
from ..search.inputs.name_priors import number_for, tensors_by_name, words_of
from .batch_parts import BatchPart

MOST_LISTS = 8

# Each fits the words of a name (`words_of`) as a whole.
STEERS = re.compile(
    r"(.*_)?(optim|optimi[sz]ers?|opt|scheduler|lr_sched\w*|schedule|scaler|writer|logger|log|pbar|bar|progress|tokeni[sz]er|vocab|vocabulary|word2id?x|word2index|stoi|itos|word_to_idx|word_to_ix|lang"
    r"|args|opts|hparams|params|cfg|config|conf|settings|callbacks?|accelerator|fabric|trainer|engine|evaluator|wandb|run|path|paths|dir|folder|file|filename"
    r"|filepath|fname|name|title|save_\w+|ckpt|checkpoint|meter|metrics?|early_stopp\w+|timer|history|print_\w+|env|ax|fig|plot"
    r"|amp|fp16|signum|processor|feature_extractor|collator|state_dict|generator_seed|summary|tb|exp|experiment)(_(src|tgt|source|target)|_?\d)?"
)
LOADER = re.compile(
    r"(.*_)?(loaders?|dataloaders?|data_loaders?|iterator|iter|dl|batches|dataset|data_iter|generator|ds|set)(_?\d)?"
    r"|.*loaders?_(local|train|val|valid|test|eval|src|tgt|source|target|[a-z0-9])"
)
LOSS = re.compile(r"(.*_)?(criterion|criterions|loss|loss_fn|loss_func|loss_function|objective|criteria|lossfn)(_\w+|\d)?")
MODEL = re.compile(
    r"(.*_)?(model|net|network|module|encoder|decoder|generator|discriminator|critic|backbone|classifier|student|teacher|policy|actor|agent|vae"
    r"|autoencoder|unet|transformer|gpt|diffusion|ema|learner|nn|net_?g|net_?d|ddp_model|lm)(_?\d)?"
)
EVALUATED = re.compile(r"eval_(pred\w*|preds|output)")
SURELY_INT = re.compile(r"(max|min|num|n)_\w+|.*_(size|idx|id|step|epoch)")

_FLOAT = re.compile(
    r"(.*_)?(eps|epsilon|alpha|beta\d?|gamma|lambda\w*|lam|lamda|lambd|temperature|temp|tau|margin|smoothing|lr|learning_rate|momentum|prob|p|rate"
    r"|threshold|thresh|thr|decay|ratio|factor|coeff?|coefficient|scale|sigma|std|delta|guidance_scale|cfg_scale|eta|clip|max_norm|dropout)"
)
_INT = re.compile(
    r"(num|n|max|min)_\w+|(.*_)?(size|len|length|num|n|k|idx|id|dim|axis|epochs?|steps?|iters?|iterations?|count|height|width|level|depth|layers|heads"
    r"|classes|seed|rank|every|interval|freq|start|end|h|w|c|b|bs|bsz|hidden|channels|features|dims|position|pos|offset|stride|padding|ks|radius|index"
    r"|time|bins|batch_idx|padding_idx|ignore_index|block_size)"
)
_AXES = ("dim", "axis", "ignore_index")
_LABEL = re.compile(r"(.*_)?(labels?|targets?|y|ys|class\w*|gt|answers?|idx|ids?)")


def numbers_by_name(name: str) -> List[Form]:
    """Returns the forms of a parameter that is a number by its name."""
    words = words_of(name)
    number, prior = number_for(name), prior_of(name)
    if words in _AXES:
        return [Form("-1")]
    if number is not None:
        return [Form(str(number)), *([Form("(%d, %d)" % (number, number))] if words == "size" else [])]
    if _FLOAT.fullmatch(words):
        return [Form(repr(float(prior.value) if prior is not None and prior.kind in ("int", "float") else 0.5))]
    if _INT.fullmatch(words):
        return [Form(repr(min(prior.value, 16) if prior is not None and prior.kind in ("int", "image") else 4))]
    if prior is not None and prior.kind in ("bool", "text") and BOOLEAN.search(name.lower()):
        return [Form(repr(prior.value))]
    return []


def lists_of_samples(samples: BatchPart) -> Iterator[Form]:
    """Lists of two samples of that form, the likelier first."""
    options = [_of_one(leaf.name) for leaf in samples.leaves()]
    first = [each[0] for each in options]
    variants = [first]
    for place in range(len(options) - 1, -1, -1):
        variants += [[*first[:place], form, *first[place + 1 :]] for form in options[place][1:4]]
    for parts in variants[:MOST_LISTS]:
        text = samples.written(iter(parts))
        yield Form("[%s, %s]" % (text, text))


def _of_one(name: str) -> List[str]:
    """Returns the forms of one sample under a name: its form in a batch without the batch."""
    texts = []
    for dtype, dims in tensors_by_name(name) or [("f32", "B C P P"), ("i64", "B T"), ("f32", "B D"), ("f32", "B T D")]:
        inner = dims.split()[1:] if dims.startswith("B") else dims.split()
        sizes = [part.partition("=")[2] or (part if part.isdigit() else str(FIRST.get(part, 64))) for part in inner]
        texts.append("%s[%s]" % (dtype, ", ".join(sizes) or "()"))
    if _LABEL.fullmatch(words_of(name)):
        texts[:0] = ["1"]
    return list(dict.fromkeys(texts))
