"""Datasets and loaders: in this process, in order, and no more than a few batches, as all have the same shapes."""

from __future__ import annotations

import itertools
from typing import Any, Iterator, List, NamedTuple, Optional

import torch.utils.data
from torch.utils.data import Subset, dataloader, dataset, sampler
from torch.utils.data._utils import collate

from ..trace.devices import devices
from ..unknown import stand_ins, unknown_sizes  # noqa: F401  Stand-ins tell what they are.
from .compilers import Replacement
from .data_sets.vision import SAMPLE

MOST_SAMPLES = 32  # that are made for a batch
MOST_ALIKE = 2  # of a data set that is not here, whose samples are all alike
MOST_BATCHES = 2  # that a loop over a loader takes


class LastBatch(NamedTuple):
    """The last batch of a loader, which is smaller than the others; `said`: why, `100 = 3·32 + 4`; `number`: of the batches before it."""

    batch: Any
    said: str
    number: int


class Giving:
    """Which iterator over a loader gave a batch last."""

    def __init__(self) -> None:
        self.latest: Optional["BatchIterator"] = None

    def forget(self) -> None:
        """None has given one since now."""
        self.latest = None


giving = Giving()


class BatchIterator:
    """The iterator of a DataLoader, without worker processes. `current`: the batch that it gave last."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches = _batches(loader)
        self.current: Any = None

    def __iter__(self) -> "BatchIterator":
        return self

    def __next__(self) -> Any:
        self.current = self._batches.__next__()
        giving.latest = self
        return self.current

    def last_batch(self) -> Optional[LastBatch]:
        """The last batch, where it is smaller than the others; None where all are alike, or nobody knows how many samples there are."""
        loader = self._loader
        size = loader.batch_size
        if type(size) is not int or loader.drop_last or type(loader.batch_sampler) is not sampler.BatchSampler:
            return None
        count = len(loader.sampler)
        left = count % size if type(count) is int and not unknown_sizes.any_unknown([count, size]) and count > size > 0 else 0
        if not left:
            return None
        batch = loader.collate_fn([loader.dataset[place] for place in itertools.islice(iter(loader.sampler), left)])
        return LastBatch(batch, "%d = %d·%d + %d" % (count, count // size, size, left), count // size)


BatchIterator.__name__ = BatchIterator.__qualname__ = "_SingleProcessDataLoaderIter"  # for the messages of Python


def _batches(loader: Any) -> Iterator[Any]:
    if not hasattr(loader.dataset, "__getitem__") and not hasattr(loader.dataset, "__iter__"):
        return
    fetcher = dataloader._DatasetKind.create_fetcher(  # type: ignore[no-untyped-call]
        loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
    )
    is_listed = loader._dataset_kind == dataloader._DatasetKind.Map and loader._auto_collation
    most = MOST_ALIKE if _is_stood_in_for(loader.dataset) else MOST_SAMPLES
    for number, index in enumerate(loader._index_sampler):
        if number >= MOST_BATCHES:
            unknown_sizes.state.ended_early += 1
            return
        try:
            is_large = is_listed and type(index) is list and len(index) > most
            batch = _large_batch(loader, index, most) if is_large else fetcher.fetch(index)
        except StopIteration:  # The end of an iterable dataset.
            return
        yield devices.loaded(batch)


def _is_stood_in_for(data: Any) -> bool:
    while isinstance(data, Subset):
        data = data.dataset
    return SAMPLE in getattr(data, "__dict__", ())


def _large_batch(loader: Any, index: List[Any], most: int) -> Any:
    """A batch of many samples, of which the first are made; the others are like them."""
    data = loader.dataset
    samples = [data[place] for place in index[:most]]
    return loader.collate_fn((samples * (len(index) // most + 1))[: len(index)])


def _in_order(sampler_: Any) -> Iterator[int]:
    """RandomSampler, WeightedRandomSampler: some order, with replacement where more are asked for than there are."""
    population = getattr(sampler_, "data_source", getattr(sampler_, "weights", None))  # The data may be one tensor.
    size = len(population) if population is not None else int(sampler_.num_samples)
    return (number % max(size, 1) for number in range(int(sampler_.num_samples)))


def _subset_in_order(sampler_: Any) -> Iterator[Any]:
    return iter(list(sampler_.indices))


def _split(dataset: Any, lengths: Any, generator: Any = None) -> List[Any]:
    """torch.utils.data.random_split, in order."""
    size = len(dataset)
    if lengths and sum(lengths) <= 1 and any(isinstance(length, float) for length in lengths):
        counts = [int(size * length) for length in lengths]
        for number in range(size - sum(counts)):
            counts[number % len(counts)] += 1
        lengths = counts
    if sum(lengths) != size and not unknown_sizes.any_unknown([size, *lengths]):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    parts, start = [], 0
    for length in lengths:
        parts.append(Subset(dataset, range(start, start + length)))
        start += length
    return parts


def _unknown_parts(batch: Any, **kwargs: Any) -> Any:
    """Returns what default_collate makes of parts of which nothing is known."""
    return batch[0]


for _kind in unknown_sizes.STAND_INS:
    collate.default_collate_fn_map[_kind] = _unknown_parts


def replacements() -> List[Replacement]:
    """Returns what takes the place of torch's functions for the time of a run."""
    return [
        (torch.utils.data.DataLoader, "__iter__", lambda loader: BatchIterator(loader)),
        (sampler.RandomSampler, "__iter__", _in_order),
        (sampler.WeightedRandomSampler, "__iter__", _in_order),
        (sampler.SubsetRandomSampler, "__iter__", _subset_in_order),
        (torch.utils.data, "random_split", _split),
        (dataset, "random_split", _split),
    ]
