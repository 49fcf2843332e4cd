"""Tokenizers, processors and pipelines of `transformers`: read from their files where these are here, stood in for where they are not."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

import torch

from ...unknown import stand_ins
from ..compilers import Replacement
from ..imported_names import wherever_imported
from . import hub
from .stand_in_tokenizers import StandInFeatureExtractor, StandInImageProcessor, StandInProcessor, StandInTokenizer
from .unsure_sizes import UnknownModel

OF_A_TOKENIZER = (
    "tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "bpe.codes", "tekken.json",
)  # fmt: skip
OF_PICTURES = ("preprocessor_config.json", "processor_config.json")
OF_A_PROCESSOR = ("preprocessor_config.json", "processor_config.json", "tokenizer_config.json")
_classes: Dict[Tuple[type, type], type] = {}


def _stand_in(kind: Any, cls: Any, name: Any, options: Dict[str, Any]) -> Any:
    """A stand-in that is also an instance of the class that was asked for, as far as `isinstance` goes."""
    asked = cls
    if cls.__name__.startswith("Auto"):
        if kind is not StandInTokenizer:
            return kind(name, options)
        asked = sys.modules["transformers"].PreTrainedTokenizerFast
    if (kind, asked) not in _classes:

        def is_instance(self: Any) -> Any:
            return asked

        names = {"__class__": property(is_instance), "__module__": asked.__module__}
        _classes[kind, asked] = type(asked.__name__, (kind,), names)
    return _classes[kind, asked](name, options)


def _from_files_or(kind: Any, files: Tuple[str, ...], original: Callable[..., Any]) -> Any:
    def from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        if hub.has_file(name, *files):
            with contextlib.suppress(OSError, ImportError, ValueError, KeyError, TypeError, AttributeError):
                return original(cls, name, *args, **kwargs)
        return _stand_in(kind, cls, name, kwargs)

    return classmethod(from_pretrained)


def _replaced(kind: Any, files: Tuple[str, ...], *names: str) -> Callable[[ModuleType], List[Replacement]]:
    def replacements(module: ModuleType) -> List[Replacement]:
        out: List[Replacement] = []
        for name in names:
            cls = module.__dict__.get(name)
            held = None if cls is None else cls.__dict__.get("from_pretrained")
            if held is not None:
                out.append((cls, "from_pretrained", _from_files_or(kind, files, held.__func__)))
        return out

    return replacements


tokenizers = _replaced(StandInTokenizer, OF_A_TOKENIZER, "AutoTokenizer", "PreTrainedTokenizerBase")
image_processors = _replaced(
    StandInImageProcessor, OF_PICTURES, "AutoImageProcessor", "AutoVideoProcessor", "ImageProcessingMixin", "ImageProcessorMixin"
)
feature_extractors = _replaced(StandInFeatureExtractor, OF_PICTURES, "FeatureExtractionMixin")
processors = _replaced(StandInProcessor, OF_A_PROCESSOR, "AutoProcessor", "ProcessorMixin")


def auto_feature_extractors(module: ModuleType) -> List[Replacement]:
    """`AutoFeatureExtractor` and `AutoProcessor`: of what kind they are is said by the model's family."""
    out: List[Replacement] = []
    for name in ("AutoFeatureExtractor", "AutoProcessor"):
        cls = module.__dict__.get(name)
        if cls is not None:
            out.append((cls, "from_pretrained", classmethod(_by_family(cls.__dict__["from_pretrained"].__func__, name))))
    return out


TEXTS = set(
    "bert distilbert roberta xlm-roberta albert electra deberta deberta-v2 mpnet gpt2 t5 mt5 bart llama mistral qwen2 qwen3".split()  # noqa: SIM905
)
TOGETHER = {"clip", "siglip", "blip", "vilt", "layoutlmv3", "whisper", "wav2vec2", "hubert", "wavlm"}


def _by_family(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    from .stand_in_tokenizers import PICTURE, SOUNDS, SQUARE

    def from_pretrained(cls: Any, model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if hub.has_file(model, *OF_A_PROCESSOR):
            with contextlib.suppress(OSError, ImportError, ValueError, KeyError, TypeError, AttributeError):
                return original(cls, model, *args, **kwargs)
        family = str(hub.config_of(model).get("model_type", ""))
        if name == "AutoProcessor" and family in TOGETHER:
            return StandInProcessor(model, kwargs)
        if family in SOUNDS:
            return StandInFeatureExtractor(model, kwargs)
        if family in SQUARE or family in PICTURE:
            return StandInImageProcessor(model, kwargs)
        if family in TEXTS:
            return _stand_in(StandInTokenizer, cls, model, kwargs)
        return stand_ins.absent("the processor of %s" % model, "missing-file")

    return from_pretrained


# --- pipelines ---

# By task: the Auto class of its model.
TASKS = {
    "text-classification": "AutoModelForSequenceClassification", "sentiment-analysis": "AutoModelForSequenceClassification",
    "zero-shot-classification": "AutoModelForSequenceClassification", "token-classification": "AutoModelForTokenClassification",
    "ner": "AutoModelForTokenClassification", "question-answering": "AutoModelForQuestionAnswering", "fill-mask": "AutoModelForMaskedLM",
    "text-generation": "AutoModelForCausalLM", "summarization": "AutoModelForSeq2SeqLM", "translation": "AutoModelForSeq2SeqLM",
    "text2text-generation": "AutoModelForSeq2SeqLM", "feature-extraction": "AutoModel", "image-feature-extraction": "AutoModel",
    "image-classification": "AutoModelForImageClassification", "object-detection": "AutoModelForObjectDetection",
    "image-segmentation": "AutoModelForImageSegmentation", "automatic-speech-recognition": "AutoModelForSpeechSeq2Seq",
    "audio-classification": "AutoModelForAudioClassification",
}  # fmt: skip


class StandInPipeline:
    """The result of `transformers.pipeline`: it has a model, and what it says of an input is not known."""

    def __init__(self, task: Any = None, model: Any = None, **options: Any) -> None:
        self.task = str(task or "")
        self._given, self._tokenizer, self._options = model, options.get("tokenizer"), options

    @property
    def model(self) -> Any:
        """The model, built when it is asked for."""
        if isinstance(self._given, torch.nn.Module):
            return self._given
        cls = getattr(sys.modules["transformers"], TASKS.get(self.task, "AutoModel"))
        self._given = UnknownModel(self.task) if self._given is None else cls.from_pretrained(self._given)
        return self._given

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, one for whatever model."""
        if self._tokenizer is None or isinstance(self._tokenizer, str):
            self._tokenizer = StandInTokenizer(self._tokenizer or (self._given if isinstance(self._given, str) else ""), {})
        return self._tokenizer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return stand_ins.absent("%s of a pipeline" % name, "missing-file")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return stand_ins.absent("what the pipeline says", "missing-file")


def pipelines(module: ModuleType) -> List[Replacement]:
    """The replacements in `transformers.pipelines`."""
    return wherever_imported(module, "pipeline", StandInPipeline)
