"""Data sets of the `datasets` package without a hub: what the code asks of their columns, and what it maps them to, says what a sample is.

A column that reads like text holds text, one that reads like a label a class, one that reads like a picture a picture; of any other nothing
is known. `map` runs the user's function on such a sample, so that the columns which a tokenizer adds have its shapes.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sized

import torch

from ...meta.mode import made
from ...unknown import unknown_sizes
from ...unknown.stand_ins import absent
from ..compilers import Replacement
from .absences import say
from .documented import DATA_SETS, Documented
from .pictures import picture, picture_of_unknown_size
from .unknown_names import UnknownNames
from .vision import a_class

IN_A_BATCH = 2  # samples that a function of batches is called with
TEXT = " ".join(["w%04d" % number for number in range(unknown_sizes.COUNT)])  # Nobody knows how many words there are.
TEXTS = (
    "text sentence sentence1 sentence2 premise hypothesis question question1 question2 context review content prompt summary document "
    "article dialogue title instruction output response caption highlights body query passage answer"
)
LABELS = "label labels target fine_label coarse_label idx id stars rating class"
PICTURES = "image img"
# Those whose pictures torchvision documents too.
SAME = {
    "mnist": "MNIST", "fashion_mnist": "FashionMNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100", "food101": "Food101", "svhn": "SVHN",
}  # fmt: skip


def hub(module: ModuleType) -> List[Replacement]:
    """The replacements in `datasets`."""
    load_from_disk = module.load_from_disk

    def loaded(path: Any = "", *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("data_files") is None:
            say("%s is not here: its columns are what the code takes them for" % (path,))
        known = DATA_SETS.get(SAME.get(str(path).rpartition("/")[2], ""))
        whole = Records({}, known)
        split = kwargs.get("split")
        if isinstance(split, (list, tuple)):
            return [Records({}, known) for _ in split]
        return whole if split is not None else Splits(whole)

    def from_disk(path: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_from_disk(path, *args, **kwargs)
        except OSError:
            say("%s is not here: its columns are what the code takes them for" % (path,))
            return Splits(Records({}, None))

    return [(module, "load_dataset", loaded), (module, "load_from_disk", from_disk)]


class Splits(Dict[str, Any]):
    """A DatasetDict: whatever split is asked for is there."""

    def __init__(self, whole: "Records") -> None:
        super().__init__()
        self.whole = whole

    def __missing__(self, name: str) -> "Records":
        found = self[name] = self.whole.like()
        return found

    def __getattr__(self, name: str) -> Any:
        """A method of each split; that of the whole where none was asked for yet."""
        method = getattr(self.whole, name)
        if not callable(method):
            return method

        def for_each(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            if isinstance(made, Records):
                return Splits(made)
            for records in self.values():
                getattr(records, name)(*args, **kwargs)
            return made

        return for_each


class Sample(Dict[str, Any]):
    """A row: whatever column is asked for is there, and belongs to the data set from then on."""

    def __init__(self, records: "Records", count: Optional[int] = None) -> None:
        super().__init__()
        self.records, self.count = records, count
        for name in records.columns:
            self[name]

    def __missing__(self, name: str) -> Any:
        value = self.records.value(name)
        return self.setdefault(name, value if self.count is None else [value] * self.count)


class Records:
    """A Dataset."""

    def __init__(self, columns: Dict[str, Any], known: Optional[Documented], length: Optional[int] = None) -> None:
        self.columns = columns
        self.known = known
        self.length = length
        self.format: Optional[str] = None
        self.shown: Optional[List[str]] = None  # the columns of the format
        self.transform: Optional[Callable[..., Any]] = None

    def value(self, name: str) -> Any:
        """Returns what a sample has in a column."""
        if name not in self.columns:
            self.columns[name] = self._of_name(name)
        return self.columns[name]

    def _of_name(self, name: str) -> Any:
        if name in TEXTS.split():
            return TEXT
        if name in LABELS.split():
            return a_class()
        if name in PICTURES.split():
            known = self.known
            return picture(known.mode, known.size) if known is not None and known.size is not None else picture_of_unknown_size()
        return absent("the column %s" % name, "missing-file")

    def like(self, columns: Optional[Dict[str, Any]] = None, length: Optional[int] = None) -> "Records":
        """Another one with these columns, or the same, and this length."""
        made = Records(dict(self.columns) if columns is None else columns, self.known, length if length is not None else self.length)
        made.format, made.shown, made.transform = self.format, self.shown, self.transform
        return made

    # --- rows and columns ---

    def __len__(self) -> int:
        return unknown_sizes.size(lasting=True) if self.length is None else self.length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            value = self.value(index)
            if self.format is not None and (self.shown is None or index in self.shown):
                return _column(_as_tensor(value))
            return UnknownNames(value) if isinstance(value, str) else [value] * unknown_sizes.count()
        if isinstance(index, int):
            if self.length is not None and index >= self.length:
                raise IndexError(index)
            return self._row()
        count = len(range(*index.indices(len(self)))) if isinstance(index, slice) else len(index)
        return Sample(self, count)

    def __getitems__(self, indices: List[int]) -> List[Any]:
        return [self._row() for _ in indices]

    def _row(self) -> Any:
        if self.transform is not None:
            batch = self.transform(Sample(self, 1))
            row: Dict[str, Any] = Sample(self) if isinstance(batch, Sample) else {}
            row.update((name, values[0]) for name, values in batch.items())
            return row
        if self.format is None:
            return Sample(self)
        return {name: _as_tensor(self.value(name)) for name in self.shown or list(self.columns)}

    def __iter__(self) -> Iterator[Any]:
        unknown_sizes.state.cut = True
        return iter([self._row() for _ in range(unknown_sizes.few())])

    @property
    def column_names(self) -> List[str]:
        """The columns that are known until now."""
        return list(self.columns)

    @property
    def features(self) -> Any:
        """Columns and what they hold."""
        return absent("the features of a data set", "missing-file")

    @property
    def num_rows(self) -> int:
        """Returns how many samples there are."""
        return len(self)

    def unique(self, column: str) -> Any:
        """The values of a column."""
        return UnknownNames(column + " ")

    # --- what makes another data set of it ---

    def map(self, function: Any = None, *args: Any, **kwargs: Any) -> "Records":
        """The columns that a function of a sample, or of a batch of samples, adds."""
        made = self.like()
        if function is None:
            return made
        is_batched = kwargs.get("batched", False)
        sample = Sample(made, IN_A_BATCH if is_batched else None)
        extra = (0,) if kwargs.get("with_indices") else ()
        result = function(sample, *extra, **(kwargs.get("fn_kwargs") or {}))
        for name, value in dict(result).items() if hasattr(result, "items") else ():
            if is_batched and name in sample and dict.get(sample, name) is value:
                continue
            made.columns[name] = value[0] if is_batched else value
        removed = kwargs.get("remove_columns") or ()
        for name in [removed] if isinstance(removed, str) else removed:
            made.columns.pop(name, None)
        return made

    def filter(self, *args: Any, **kwargs: Any) -> "Records":
        """Of unknown length."""
        made = self.like()
        made.length = None
        return made

    def shuffle(self, *args: Any, **kwargs: Any) -> "Records":
        """The same samples."""
        return self.like()

    sort = flatten = cast = cast_column = class_encode_column = flatten_indices = prepare_for_task = shard = repeat = shuffle

    def select(self, indices: Iterable[int], *args: Any, **kwargs: Any) -> "Records":
        """As many as are asked for."""
        return self.like(length=len(indices) if isinstance(indices, Sized) else None)

    def take(self, count: int) -> "Records":
        """The first ones."""
        return self.like(length=count)

    def skip(self, count: int) -> "Records":
        """All but the first ones."""
        return self.filter()

    def train_test_split(self, *args: Any, **kwargs: Any) -> Splits:
        """Two of them, of unknown lengths."""
        return Splits(self.filter())

    def remove_columns(self, names: Any) -> "Records":
        """Less these columns."""
        gone = {names} if isinstance(names, str) else set(names)
        return self.like({name: value for name, value in self.columns.items() if name not in gone})

    def select_columns(self, names: Any) -> "Records":
        """These columns alone."""
        return self.like({name: self.value(name) for name in ([names] if isinstance(names, str) else names)})

    def rename_column(self, old: str, new: str) -> "Records":
        """With another name of a column."""
        value = self.value(old)
        made = self.like({name: kept for name, kept in self.columns.items() if name != old})
        made.columns[new] = value
        return made

    def rename_columns(self, names: Dict[str, str]) -> "Records":
        """With other names of columns."""
        made = self
        for old, new in names.items():
            made = made.rename_column(old, new)
        return made

    def add_column(self, name: str, column: Any, *args: Any, **kwargs: Any) -> "Records":
        """With another column."""
        return self.like({**self.columns, name: column[0]})

    def set_format(self, type: Optional[str] = None, columns: Optional[List[str]] = None, **kwargs: Any) -> None:
        """Rows of tensors."""
        self.format, self.shown = type, columns
        for name in columns or ():
            self.value(name)

    def with_format(self, type: Optional[str] = None, columns: Optional[List[str]] = None, **kwargs: Any) -> "Records":
        """The same samples as tensors."""
        made = self.like()
        made.set_format(type, columns)
        return made

    def set_transform(self, transform: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Rows are what a function makes of them."""
        self.transform = transform

    def with_transform(self, transform: Callable[..., Any], *args: Any, **kwargs: Any) -> "Records":
        """The same samples, as a function makes them."""
        made = self.like()
        made.transform = transform
        return made

    def save_to_disk(self, *args: Any, **kwargs: Any) -> None:
        """Not written."""

    push_to_hub = cleanup_cache_files = reset_format = save_to_disk

    def to_pandas(self, *args: Any, **kwargs: Any) -> Any:
        """A table of which nothing is known."""
        return absent("the table of a data set", "missing-file")


def _column(value: Any) -> Any:
    """Returns what the format "torch" makes of a column of such values."""
    if not isinstance(value, torch.Tensor):
        return [value] * unknown_sizes.count()
    with torch._C.DisableTorchFunction():
        shape = list(value.shape)
    if unknown_sizes.any_unknown(shape):  # Each value has a length of its own.
        return [value] * unknown_sizes.count()
    return made([unknown_sizes.size(lasting=True), *shape], value.dtype)


def _as_tensor(value: Any) -> Any:
    """Returns what the format "torch" makes of a value."""
    if isinstance(value, (int, float)) or (isinstance(value, list) and value and not isinstance(value[0], str)):
        return torch.tensor(value)
    return value
