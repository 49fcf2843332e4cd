"""Tensors by the names of parameters, and of the dims that an author names."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

# What the size of a picture is called that a network is built for.
PICTURE = re.compile(r"_?(in_|input_|image_?|img_?|pic_?|full_)?(size|res|resolution|hw)|_?image_shape|_?img_dim")
PICTURE_SHAPE = re.compile(r"_?(in|input|image|img|obs|observation|data)_?(dims?|shape|size)")  # three numbers of which are a picture's
PICTURE_SAID = re.compile(r"_?(image|img|pic)_?(size|res|resolution|hw|shape|dims?)|input_res(olution)?")  # that speaks of nothing else
CHANNELS = re.compile(r"(image_?|img_?|num_|n_)?(channels|chans)|in_chans|(image|img)_in_channels")  # of pictures, in a constructor

Words = Tuple[str, str]  # a dtype, and one word a dim (forms.py)

# Names, as patterns, and the forms that they speak for. The first row that fits counts; a row goes on in indented lines.
_TABLE = r"""
edge_index edges_index -> i64 2 E
edge_weights? -> f32 E
edge_(attr|features?|feats?|type|emb) edges? -> f32 E D, i64 E, f32 B N N D
(adj|adjacency)(_matrix|_mat|_t)? a_hat laplacian -> f32 N N, f32 B N N
(node_)?(batch|batch_index) -> i64 N, f32 B D
attention_masks? input_masks? -> bool B T, i64 B T, bool B 1 1 T, bool B 1 T T, f32 B 1 1 T, bool T T
(key_)?padding_masks? src_key_padding_mask attn_masks? .*_masks? masks?(_.*)? pad_mask -> bool B T, bool B 1 T T,
    bool T T, bool B T T, f32 B 1 1 T, f32 B T, f32 T T, bool B 1 1 T, bool B 1 T, f32 B 1 P P, f32 B T 1, bool B S, bool B 1 S
t ts timesteps? time_?steps? times? noise_levels? sigmas? log_snr diffusion_steps? gammas? noise_labels? -> i64 B, f32 B, f32 B 1, f32
    B 1 1 1, f32 B T D, f32 ()
(src_|tgt_|text_|seq_|input_|x_)?(lens?|lengths?|seq_lengths?|num_frames) -> i64 B
(input|token|decoder_input|encoder_input|text|word|char|item|user|sparse|cat|categorical)?_?(ids|idx|idxs|indices|tokens|indexes|index)
    words? text tokens? sentences? captions? caps x_cat x_categ chars sequence_ids src_tokens prev_output_tokens seqs?_ids? users?
    items? -> i64 B T, i64 B, f32 B T D
token_type_ids position_ids positions?_idx segment_ids segments? segment_label -> i64 B T, f32 B T D
labels? targets? y ys gt y_true class_labels? classes cls tgt_y -> i64 B, i64 B T, f32 B D, f32 B T D, f32 B C P P, i64 B P P, f32 B
h hx hidden hiddens hidden_states? h_?0 state states prev_state rnn_hxs h_prev prev_hidden h_t c cx cell c_?0 memory_state -> f32 1 B
    D, f32 B D, f32 B T D, f32 B C P P, f32 2 B D
(start|end)_positions? span_(start|end) -> i64 B
coords? coordinates? pos positions? xyz xyzs points? pts pcd point_cloud vertices coors -> f32 B Q 3, f32 N 3, f32 B 3 Q, f32 B T D, f32 B Q
    2, i64 B T, f32 T D
z zs latents? noise style styles w code codes cond condition conditions y_emb emb embedding t_emb time_emb temb global_cond c_emb
    label_emb embeddings? class_emb vec -> f32 B D, f32 B T D, f32 B C P P, f32 B D 1 1
imgs? images? pictures? photo rgb frames? img_tensor pixel_values lr hr left right input_images? x_img image\d img\d im ims real fake
    background source_img depth_map -> f32 B C P P, f32 B T C P P
videos? clips? vid volumes? vol -> f32 B C F P P, f32 B F C P P, f32 B C V V V
audios? wav wavs waveforms? speech signals? raw_audio -> f32 B L=16000, f32 B 1 L=16000, f32 B C L
mels? spectrograms? spec specs spect fbank mel_spec -> f32 B C=80 L=128, f32 B 1 C=80 L=128, f32 B L=128 C=80
(context|memory|encoder_out(put)?s?|enc_out(put)?s?|encoder_hidden_states|enc|kv|memories|cross|ctx|context_emb|text_embeds?|cross_attn_cond|src_out|y_context)
    -> f32 B S D, f32 B D, f32 B C P P, f32 S B D
q k v query queries keys? values? queries_ q_in kv_in -> f32 B T D, f32 B K T D, f32 T B D, f32 B D, f32 B T K D, f32 B C P P
src source tgt target_seq trg sources enc_input dec_input enc_inputs dec_inputs enc_x dec_x decoder_input encoder_input -> f32 B T D,
    i64 B T, f32 T B D, i64 T B, f32 B C P P
skip skips residual res identity shortcut x_skip skip_x encoder_features? low high low_level_feat -> f32 B C=64 P P, f32 B T D, f32 B
    C=64 L, f32 B C=64 V V V
feats? features? feature_maps? fmap x_feat -> f32 B C=64 P P, f32 B T D, f32 B D, f32 N D
obs observations? state_input actions? act a rewards? -> f32 B D, i64 B, f32 B C P P, f32 B T D
nodes? node_feats? node_features? h_nodes? -> f32 N D, f32 B N D
series x_enc x_dec seq_x past_values history x_hist time_series ts_data -> f32 B T D, f32 B D T
x_mark_enc x_mark_dec x_mark time_marks? past_time_features -> f32 B T 4
bbox -> i64 B T 4, f32 B Q 4, f32 Q 4
bboxes boxes rois? -> f32 B Q 4, f32 Q 4
freqs?_cis rope rotary_emb freqs? -> f32 T D
x_num x_cont x_numer numerical dense dense_features? x_dense continuous -> f32 B D
"""

# What a loss or metric is given.
_MEASURED = re.compile(
    r"(\w+_)?(logits?|preds?|predictions?|outputs?|outs?|pred\w*|y_?hats?|scores?|probs?|probabilities)|(z_?)?(mus?|means?|log_?vars?|log_?stds?)"
)
MEASURED = "f32 B D, f32 B T D, f32 B C P P, f32 B, f32 B 1"


def is_measured(name: str) -> bool:
    """True if a parameter of a function that is no `forward` has the name of what a model gives: `logits`, `y_hat`, `mu`."""
    return _MEASURED.fullmatch(words_of(name)) is not None


# What any argument may be, and what the values of a dict mostly are: columns of a table, a batch of texts.
GENERAL = """
f32 B C P P, f32 B T D, f32 B D, i64 B T, f32 B C L, f32 B C V V V, i64 B, f32 N D, f32 B, f32 B T C P P, f32 T B D, f32 B K T D, bool B T,
f32 D, f32 B P P C, f32 (), f32 B T N D, f32 B F K T D
"""
ENTRIES = "i64 B, i64 B T, f32 B, f32 B D, f32 B T D, f32 B C P P, i64 B T D, f32 B 1"


# What code that plays a game, or learns to, is given: of one step or of many.
_PLAYED = """
(\\w+_)?(states?|obs\\w*) s_ s_next -> f32 B D, f32 D, f32 B C P P, f32 B T D
actions? action_batch a -> i64 B 1, i64 B, f32 B D
(rewards?|returns?|dones?|terminals?|masks?|not_done|advantages?|log_probs?|old_log_probs?|weights|is_weights)(_batch)? r d
    -> f32 B 1, f32 B, f32 B D
"""
_PLAYS = re.compile(r"\b(\w+_)?(actions?|rewards?|q_?values?|policy)(_\w+)?\b", re.IGNORECASE)


def is_played(text: str) -> bool:
    """True if code is about an agent: it speaks of actions or rewards."""
    return _PLAYS.search(text) is not None


def tensors_of_agents(parameter: str) -> List[Words]:
    """The forms that a parameter's name speaks for where the code is about an agent; [] where it says nothing there."""
    words = words_of(parameter)
    return next((found for pattern, found in _PLAYED_ROWS if pattern.match(words)), [])


_GRAPH = re.compile(r"edge_?(index|attr|weight|type|feat|list)\w*|edges?_index|adj(acency)?(_\w+)?|node_feats?|a_hat|laplacian")


def is_graph(name: str) -> bool:
    """True if a name says that an input is a graph's: what goes with it has nodes for rows, and no batch."""
    return _GRAPH.fullmatch(words_of(name)) is not None


def read_forms(text: str) -> List[Words]:
    """`i64 B, f32 B T D` → [("i64", "B"), ("f32", "B T D")]; `()` has no dims."""
    found = []
    for part in text.replace("\n", " ").split(","):
        dtype, _, dims = part.strip().partition(" ")
        found.append((dtype, "" if dims == "()" else dims))
    return found


def _rows(table: str) -> List[Tuple["re.Pattern[str]", List[Words]]]:
    found = []
    for row in re.split(r"\n(?! )", table.strip("\n")):
        patterns, _, forms = row.replace("\n", " ").partition(" -> ")
        found.append((re.compile("(?:%s)\\Z" % "|".join(patterns.split())), read_forms(forms)))
    return found


_ROWS = _rows(_TABLE)
_PLAYED_ROWS = _rows(_PLAYED)


def words_of(name: str) -> str:
    """`xMarkEnc` → `x_mark_enc`: the parts of a name in lower case, without a leading or trailing underscore."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")


# A noun that others follow in a name: `labels_photo`, `img_lq`.
_LEADS = re.compile(r"im(g|age)s?|pictures?|photos?|\w{3,}s")


def tensors_by_name(parameter: str) -> List[Words]:
    """The forms that a parameter's name speaks for, the likelier first."""
    words = words_of(parameter)
    first, last = words.partition("_")[0], words.rpartition("_")[2]
    parts = [last]
    if _LEADS.fullmatch(first):  # A word says more than a letter, and the plural is what there is several of.
        parts.insert(0 if len(last) == 1 or (first[-1] == "s" != last[-1]) else 1, first)
    for name in (words, re.sub(r"_?\d+\Z", "", words), *parts):
        for pattern, forms in _ROWS:
            if pattern.match(name):
                return forms
    return []


_STATE = re.compile(r"(?:%s)\Z" % "|".join(next(row for row in _TABLE.split("\n") if row.startswith("h hx ")).partition(" ->")[0].split()))


def is_state(name: str) -> bool:
    """True if a name is that of a recurrent layer's state."""
    return _STATE.match(words_of(name)) is not None


_NUMBERS = """
h 64, w 64, height 64, width 64, hh 8, ww 8, hp 8, wp 8, size 64, n 10, num_nodes 10, batch_size 2, bs 2, b 2, seq_len 16, max_len 16,
length 16, t 4, steps 2, num_steps 2, scale 2, num_samples 4, n_samples 4, k 2, layer 0, idx 0, i 0, step 1, epoch 1, start_pos 0
"""
_NUMBER = {word: int(number) for word, number in (pair.split() for pair in _NUMBERS.split(","))}


def number_for(name: str) -> Optional[int]:
    """Returns the number for a parameter that is one by its name; None for other names."""
    return _NUMBER.get(words_of(name))


_ROLES = [
    (re.compile("(?:%s)\\Z" % pattern), role)
    for pattern, role in (
        (r"b|bs|bsz|batch|batch_?size|n_?batch|nb", "B"),
        (r"t|l|s|n|seq|seq_?len(gth)?|sequence(_length)?|time|steps|length|tokens?|num_tokens|len|(q|k|s|src|tgt)_?len", "T"),
        (r"c|ch|chan|channels?|in_?channels?|c_?in|in_?ch|nc", "C"),
        (r"h|w|height|width|hw|x|y|d?h|d?w|rows?|cols?", "P"),
        (
            r"d|f|e|dim|dims?|features?|emb(ed)?(_dim|ding|ding_dim|_size)?|hidden(_size|_dim)?|d_?model|input_?(size|dim)|in_?features?",
            "D",
        ),
    )
]


def role_of(name: str) -> str:
    """The role of a dim that its author named, or "" where the name says none."""
    return next((role for pattern, role in _ROLES if pattern.match(name.lower())), "")
