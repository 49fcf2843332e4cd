"""`tokenizers`: one that a program trains, saves or loads. Nothing is written; how large its vocabulary becomes only the data says."""

from __future__ import annotations

from types import ModuleType
from typing import Any, List

from ...unknown.stand_ins import is_absent
from ..compilers import Replacement, nothing
from ..data_sets.hugging_face import TEXT
from .stand_in_tokenizers import unknown

SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[SOS]", "[EOS]", "<s>", "</s>", "<pad>", "<unk>"]


def tokenizers(module: ModuleType) -> List[Replacement]:
    """The replacements in `tokenizers`."""
    kind = module.Tokenizer
    from_file, size, encode, encode_batch = kind.from_file, kind.get_vocab_size, kind.encode, kind.encode_batch
    of_data: List[Any] = []  # those whose vocabulary is of data; their classes have no room for it

    def loaded(path: Any, *args: Any) -> Any:
        try:
            return from_file(path, *args)
        except Exception:  # The library has no type of its own for it.
            made = kind(module.models.WordLevel({word: number for number, word in enumerate(SPECIAL)}, unk_token=SPECIAL[0]))
            made.pre_tokenizer = module.pre_tokenizers.Whitespace()
            of_data.append(made)
            return made

    def training(method: Any) -> Any:
        def trained(self: Any, *args: Any, **kwargs: Any) -> None:
            of_data.append(self)
            try:
                method(self, *args, **kwargs)
            except Exception:  # As above: the texts are not there.
                self.add_special_tokens(SPECIAL)

        return trained

    def encoded(self: Any, sequence: Any, *args: Any, **kwargs: Any) -> Any:
        return encode(self, TEXT if is_absent(sequence) else sequence, *args, **kwargs)

    def encoded_batch(self: Any, texts: Any, *args: Any, **kwargs: Any) -> Any:
        known = [TEXT] if is_absent(texts) else [TEXT if is_absent(each) else each for each in texts]
        return encode_batch(self, known, *args, **kwargs)

    def vocabulary(self: Any, *args: Any, **kwargs: Any) -> Any:
        return unknown() if any(each is self for each in of_data) else size(self, *args, **kwargs)

    return [
        (kind, "from_file", staticmethod(loaded)),
        (kind, "train", training(kind.train)),
        (kind, "train_from_iterator", training(kind.train_from_iterator)),
        (kind, "get_vocab_size", vocabulary),
        (kind, "encode", encoded),
        (kind, "encode_batch", encoded_batch),
        (kind, "save", nothing),
    ]
