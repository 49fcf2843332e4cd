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
    from_file, train, size = kind.from_file, kind.train, kind.get_vocab_size
    from_iterator, encode, encode_batch = kind.train_from_iterator, kind.encode, kind.encode_batch
    of_data: List[Any] = []  # those whose vocabulary is of data; their classes have no room for it

    def loaded(path: Any, *args: Any) -> Any:
        try:
            return from_file(path, *args)
        except Exception:  # The library has no type of its own for it.
            made = kind(module.models.WordLevel({word: number for number, word in enumerate(SPECIAL)}, unk_token=SPECIAL[0]))
            made.pre_tokenizer = module.pre_tokenizers.Whitespace()
            of_data.append(made)
            return made

    def trained(self: Any, files: Any, *args: Any, **kwargs: Any) -> None:
        of_data.append(self)
        try:
            train(self, files, *args, **kwargs)
        except Exception:  # As above.
            self.add_special_tokens(SPECIAL)

    def trained_from(self: Any, *args: Any, **kwargs: Any) -> None:
        of_data.append(self)
        from_iterator(self, *args, **kwargs)

    def encoded(self: Any, sequence: Any, *args: Any, **kwargs: Any) -> Any:
        return encode(self, TEXT if is_absent(sequence) else sequence, *args, **kwargs)

    def encoded_batch(self: Any, texts: Any, *args: Any, **kwargs: Any) -> Any:
        known = [TEXT] if is_absent(texts) else [TEXT if is_absent(each) else each for each in texts]
        return encode_batch(self, known, *args, **kwargs)

    def vocabulary(self: Any, *args: Any, **kwargs: Any) -> Any:
        return unknown() if any(each is self for each in of_data) else size(self, *args, **kwargs)

    return [
        (kind, "from_file", staticmethod(loaded)),
        (kind, "train", trained),
        (kind, "train_from_iterator", trained_from),
        (kind, "get_vocab_size", vocabulary),
        (kind, "encode", encoded),
        (kind, "encode_batch", encoded_batch),
        (kind, "save", nothing),
    ]
