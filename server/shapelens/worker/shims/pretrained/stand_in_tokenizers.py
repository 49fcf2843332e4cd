"""Tokenizers and processors whose files are not here: what comes out of them has the sizes that are known, and no values.

A text has an unknown length, unless it is padded to a number. A picture has the size that the model's configuration says.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

from ...meta.mode import made
from ...unknown import stand_ins, unknown_sizes
from ..data_sets.unknown_names import UnknownNames
from . import hub

# Families whose tokenizers say which of two texts a token is of; how many special tokens their positions leave out.
WITH_TYPES = {"bert", "albert", "electra", "deberta", "deberta-v2", "xlnet", "layoutlm", "mobilebert", "convbert", "funnel", "vilt"}
POSITIONS_LEFT_OUT = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2, "longformer": 2, "layoutlmv3": 2}
# Families whose vocabulary has as many words as the embedding has rows.
WHOLE_VOCABULARY = {"bert", "distilbert", "roberta", "xlm-roberta", "gpt2", "albert", "electra", "mpnet", "camembert", "gpt_neo"}
LONGEST = {"clip": 77, "clip_text_model": 77, "siglip": 64, "groupvit": 77, "clipseg": 77, "owlvit": 16}  # texts, by default
SPECIAL = {
    "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "unk_token": "[UNK]", "bos_token": "<s>",
    "eos_token": "</s>",
}  # fmt: skip
# Families whose pictures have the size that the configuration says; others' sizes, None where each picture keeps its own.
SQUARE = {"vit", "deit", "swin", "beit", "convnext", "convnextv2", "clip", "siglip", "vit_mae", "blip", "videomae", "timesformer"}
PICTURE: Dict[str, Optional[int]] = {
    "dinov2": 224,
    "resnet": 224,
    "segformer": 512,
    "sam": 1024,
    "layoutlmv3": 224,
    "detr": None,
    "yolos": None,
}
BY_SHORTEST_EDGE = {"convnext", "convnextv2", "resnet", "dinov2", "clip", "detr", "yolos"}
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
HALF = ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
OF_CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
MEAN = {"vit": HALF, "beit": HALF, "clip": OF_CLIP, "blip": OF_CLIP, "siglip": HALF}


def unknown() -> int:
    """A size that nobody knows."""
    return unknown_sizes.UnknownInt(unknown_sizes.size(lasting=True))


def _lengths_of(texts: Any) -> Optional[int]:
    """Returns how many texts there are; None for a single one."""
    if stand_ins.is_absent(texts):
        return unknown()
    if isinstance(texts, (list, tuple)):
        return len(texts)
    return len(texts) if hasattr(texts, "__len__") and not isinstance(texts, (str, bytes)) else None


def _values(shape: List[int], kind: Any, dtype: torch.dtype = torch.int64) -> Any:
    """Returns what a tokenizer or processor gives for one name: a tensor, an array, or lists of numbers where nothing is asked for."""
    kind = getattr(kind, "value", kind)
    if kind == "np":
        import numpy  # type: ignore[import-not-found, unused-ignore]

        return numpy.broadcast_to(numpy.zeros((), str(dtype).rpartition(".")[2]), shape)
    if kind is not None:
        return made(shape, dtype)
    if not shape:
        return 1
    if unknown_sizes.is_unknown(shape[0]):
        return [_values(shape[1:], None)] * unknown_sizes.count()
    return [_values(shape[1:], None) for _ in range(shape[0])]


def encoding(values: Dict[str, Any]) -> Any:
    """Returns what tokenizers and processors give."""
    from transformers.tokenization_utils_base import BatchEncoding  # type: ignore[import-not-found]

    return BatchEncoding(values)


class StandInTokenizer:
    """A tokenizer of a known family, or of an unknown one. What is not defined here is unknown."""

    def __init__(self, name: Any, options: Dict[str, Any]) -> None:
        config = hub.config_of(name)
        self.name_or_path = str(name)
        self.family = str(config.get("model_type", ""))
        words = config.get("vocab_size") if self.family in WHOLE_VOCABULARY else None
        positions = config.get("max_position_embeddings") or config.get("n_positions") or LONGEST.get(self.family)
        left_out = POSITIONS_LEFT_OUT.get(self.family, 0)
        self.model_max_length = options.get("model_max_length") or (positions - left_out if positions else unknown())
        if self.family in ("t5", "mt5"):
            self.model_max_length = options.get("model_max_length") or 512
        self.vocab_size: int = words or unknown()
        self.padding_side, self.truncation_side = options.get("padding_side", "right"), options.get("truncation_side", "right")
        self.added, self.is_fast, self.chat_template = 0, True, None
        for special, text in SPECIAL.items():
            setattr(self, special, text)
            known = config.get(special + "_id")
            setattr(self, special + "_id", known if isinstance(known, int) else unknown())
        self.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
        if self.family not in WITH_TYPES:
            self.model_input_names.remove("token_type_ids")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return stand_ins.absent("%s of the tokenizer" % name, "missing-file")

    def __len__(self) -> int:
        return int(self.vocab_size) + self.added

    def __bool__(self) -> bool:
        return True

    def __call__(
        self, text: Any = None, text_pair: Any = None, add_special_tokens: bool = True, padding: Any = False, truncation: Any = None,
        max_length: Optional[int] = None, stride: int = 0, is_split_into_words: bool = False, pad_to_multiple_of: Any = None,
        padding_side: Any = None, return_tensors: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if text is None and options.get("text_target") is not None:
            text = options["text_target"]
        count = _lengths_of(text[0] if is_split_into_words and isinstance(text, (list, tuple)) and text else text)
        if is_split_into_words:
            count = None if count is None else _lengths_of(text)
        if options.get("return_overflowing_tokens"):
            count = unknown()
        kind = getattr(padding, "value", padding)
        length: int = (max_length or self.model_max_length) if kind == "max_length" or options.get("pad_to_max_length") else unknown()
        shape = [length] if count is None else [count, length]
        if return_tensors is not None and count is None:
            shape = [1, length]
        names = [name for name in self.model_input_names if options.get("return_" + name) is not False]
        values = {name: _values(shape, return_tensors) for name in names}
        if options.get("return_token_type_ids"):
            values["token_type_ids"] = _values(shape, return_tensors)
        if options.get("return_offsets_mapping"):
            values["offset_mapping"] = _values([*shape, 2], return_tensors)
        if options.get("return_special_tokens_mask"):
            values["special_tokens_mask"] = _values(shape, return_tensors)
        if options.get("return_overflowing_tokens"):
            values["overflow_to_sample_mapping"] = _values(shape[:1], return_tensors)
        if options.get("text_target") is not None and options["text_target"] is not text:
            values["labels"] = _values(shape, return_tensors)
        return encoding(values)

    encode_plus = batch_encode_plus = prepare_for_model = __call__

    def tokenize(self, *args: Any, **options: Any) -> List[str]:
        """The tokens of a text."""
        return UnknownNames("token")

    def encode(self, text: Any = None, text_pair: Any = None, *args: Any, **options: Any) -> Any:
        """The ids of a text."""
        return self(text, text_pair, *args, **options)["input_ids"]

    def pad(self, features: Any, padding: Any = True, max_length: Optional[int] = None, *args: Any, **options: Any) -> Any:
        """The features of several texts, as long as each other."""
        count = len(features) if isinstance(features, (list, tuple)) else unknown()
        first = features[0] if isinstance(features, (list, tuple)) and features else features
        length = (max_length or self.model_max_length) if padding == "max_length" else unknown()
        names = list(first if hasattr(first, "keys") else self.model_input_names)
        ids = [name for name in names if name in (*self.model_input_names, "special_tokens_mask")]
        values = {name: _values([count, length], options.get("return_tensors")) for name in ids}
        rest = [name for name in names if name not in values]
        values.update({name: _values([count], options.get("return_tensors")) for name in rest})
        return encoding(values)

    def apply_chat_template(self, conversation: Any = None, *args: Any, **options: Any) -> Any:
        """A conversation as a text or its ids."""
        if options.get("tokenize") is False:
            return "text"
        encoded = self("text", **{key: value for key, value in options.items() if key in ("padding", "max_length", "return_tensors")})
        return encoded if options.get("return_dict") else encoded["input_ids"]

    def decode(self, *args: Any, **options: Any) -> str:
        """A text."""
        return "text"

    def batch_decode(self, sequences: Any, *args: Any, **options: Any) -> List[str]:
        """A text for each sequence."""
        count: int = len(sequences) if hasattr(sequences, "__len__") else 1
        return ["text"] * (1 if unknown_sizes.is_unknown(count) else count)

    def add_tokens(self, tokens: Any, *args: Any, **options: Any) -> int:
        """Returns how many tokens came."""
        count = len(tokens) if isinstance(tokens, (list, tuple)) else 1
        self.added += count
        return count

    def add_special_tokens(self, tokens: Dict[str, Any], *args: Any, **options: Any) -> int:
        """Returns how many tokens came; which of them there were already is not known."""
        for name, text in tokens.items():
            setattr(self, name, text)
        self.vocab_size = unknown()
        return unknown()

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """A number for each token."""
        if isinstance(tokens, UnknownNames) or stand_ins.is_absent(tokens):
            return [unknown()] * unknown_sizes.count()
        return [unknown() for _ in tokens] if isinstance(tokens, (list, tuple)) else unknown()

    def get_vocab(self) -> Dict[str, int]:
        """No words are known."""
        return {}

    def save_pretrained(self, *args: Any, **options: Any) -> Any:
        """Nothing is written."""
        return ()

    push_to_hub = save_vocabulary = save_pretrained


class StandInImageProcessor:
    """An image processor: pictures of the size that the model wants."""

    def __init__(self, name: Any, options: Dict[str, Any]) -> None:
        config = hub.config_of(name)
        self.family = str(config.get("model_type", ""))
        vision = config.get("vision_config") if isinstance(config.get("vision_config"), dict) else config
        side: Any = vision.get("image_size") if self.family in SQUARE else PICTURE.get(self.family)  # type: ignore[union-attr]
        if side is None and self.family in SQUARE:
            side = 224
        asked = options.get("size")
        if isinstance(asked, dict):
            side = asked.get("height", asked.get("shortest_edge"))
        elif isinstance(asked, int):
            side = asked
        self.side = side if isinstance(side, int) else unknown()
        edge = {"shortest_edge": self.side} if self.family in BY_SHORTEST_EDGE else {"height": self.side, "width": self.side}
        self.size, self.crop_size = edge, {"height": self.side, "width": self.side}
        self.image_mean, self.image_std = MEAN.get(self.family, IMAGENET)
        self.frames = vision.get("num_frames")  # type: ignore[union-attr]
        self.do_resize = self.do_rescale = self.do_normalize = True
        self.do_center_crop, self.rescale_factor, self.resample = False, 1 / 255, 2
        self.model_input_names = ["pixel_values"]
        for key, value in options.items():
            if key.startswith(("do_", "image_", "crop_")):
                setattr(self, key, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return stand_ins.absent("%s of the processor" % name, "missing-file")

    def __call__(self, images: Any = None, *args: Any, return_tensors: Any = None, **options: Any) -> Any:
        if images is None:
            images = options.get("videos")
        return encoding(self.values(images, return_tensors, args))

    preprocess = __call__

    def values(self, images: Any, kind: Any, more: Any = ()) -> Dict[str, Any]:
        """Returns what comes of pictures, by name."""
        count = _count_of_pictures(images, bool(self.frames))
        shape = [count, *([self.frames] if self.frames else []), 3, self.side, self.side]
        values: Dict[str, Any] = {"pixel_values": made(shape, torch.float32) if kind is not None else _pictures(shape)}
        if self.family in ("detr", "yolos", "vilt"):
            values["pixel_mask"] = made([count, self.side, self.side], torch.int64)
        if more and more[0] is not None and self.family in ("segformer", "beit", "mobilevit"):
            values["labels"] = made([count, self.side, self.side], torch.int64)
        return values

    def save_pretrained(self, *args: Any, **options: Any) -> Any:
        """Nothing is written."""
        return ()


def _pictures(shape: List[int]) -> Any:
    if unknown_sizes.is_unknown(shape[0]):
        return stand_ins.absent("pictures", "missing-file")
    return [made(shape[1:], torch.float32) for _ in range(shape[0])]


def _count_of_pictures(images: Any, is_video: bool) -> int:
    if stand_ins.is_absent(images):
        return 1
    if isinstance(images, (list, tuple)):
        nested = bool(images) and isinstance(images[0], (list, tuple))
        return len(images) if nested or not is_video else 1
    rank = getattr(images, "ndim", None)
    return int(images.shape[0]) if isinstance(rank, int) and rank == 4 else 1


class StandInFeatureExtractor:
    """A feature extractor of sounds."""

    def __init__(self, name: Any, options: Dict[str, Any]) -> None:
        config = hub.config_of(name)
        self.family = str(config.get("model_type", ""))
        self.sampling_rate = 16000
        self.bands = config.get("num_mel_bins")
        self.longest = config.get("max_length")
        self.feature_size = self.bands or 1
        self.padding_value, self.return_attention_mask = 0.0, False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return stand_ins.absent("%s of the feature extractor" % name, "missing-file")

    def __call__(self, raw_speech: Any = None, *args: Any, return_tensors: Any = None, **options: Any) -> Any:
        audio = options.get("audio") if raw_speech is None else raw_speech
        sounds = audio if isinstance(audio, (list, tuple)) and audio and not isinstance(audio[0], (int, float)) else [audio]
        return encoding(self.values(len(sounds), return_tensors, options))

    def values(self, count: int, kind: Any, options: Dict[str, Any]) -> Dict[str, Any]:
        """Returns what comes of sounds, by name."""
        if self.family == "whisper":
            return {"input_features": made([count, self.bands or unknown(), 3000], torch.float32)}
        if self.family == "audio-spectrogram-transformer":
            return {"input_values": made([count, self.longest or unknown(), self.bands or unknown()], torch.float32)}
        length = options.get("max_length") if options.get("padding") == "max_length" else None
        values = {"input_values": made([count, length or unknown()], torch.float32)}
        if options.get("return_attention_mask") or self.return_attention_mask:
            values["attention_mask"] = made([count, length or unknown()], torch.int64)
        return values

    def pad(self, features: Any, *args: Any, **options: Any) -> Any:
        """The features of several sounds, as long as each other."""
        return encoding(self.values(len(features) if isinstance(features, (list, tuple)) else unknown(), "pt", options))

    def save_pretrained(self, *args: Any, **options: Any) -> Any:
        """Nothing is written."""
        return ()


SOUNDS = {"whisper", "wav2vec2", "hubert", "wavlm", "audio-spectrogram-transformer", "wav2vec2-conformer", "speech_to_text"}


class StandInProcessor:
    """A processor of texts together with pictures or sounds."""

    def __init__(self, name: Any, options: Dict[str, Any]) -> None:
        self.tokenizer = StandInTokenizer(name, options)
        self.hears = self.tokenizer.family in SOUNDS
        if self.hears:
            self.feature_extractor = self.current_processor = StandInFeatureExtractor(name, options)
        else:
            self.image_processor = self.feature_extractor = StandInImageProcessor(name, options)  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tokenizer, name)

    def __call__(self, *args: Any, return_tensors: Any = None, **options: Any) -> Any:
        given = dict(zip(("audio",) if self.hears else ("text", "images"), args))
        for value in list(given.values()):  # The order of texts and pictures has changed from version to version.
            if not self.hears and len(args) == 1 and not _is_text(value):
                given = {"images": value}
            elif not self.hears and len(args) == 2 and not _is_text(args[0]) and _is_text(args[1]):
                given = {"images": args[0], "text": args[1]}
        given.update({name: options.pop(name) for name in ("text", "images", "audio", "audios", "videos") if name in options})
        values: Dict[str, Any] = {}
        if given.get("text") is not None:
            values.update(self.tokenizer(given["text"], return_tensors=return_tensors, **options))
        pictures = given.get("images") if given.get("images") is not None else given.get("videos")
        if pictures is not None and not self.hears:
            values.update(self.image_processor.values(pictures, return_tensors))
        sounds = given.get("audio") if given.get("audio") is not None else given.get("audios")
        if sounds is not None and self.hears:
            values.update(self.feature_extractor(sounds, return_tensors=return_tensors, **options))
        return encoding(values)

    def as_target_processor(self) -> Any:
        """An old way to say that a text is what is to be predicted."""
        import contextlib

        return contextlib.nullcontext()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], str))
