"""One model, called again and again with one part of its input changed: what depends on what."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch

from ...dependences import BATCH_MIX, FUTURE_LEAK, IGNORED_INPUT, INSIDE, CausalClaim, Dependence
from ..trace.module_memory import parts_of
from . import drawing
from .real_mode import RealMode, offset_of_mask
from .said_causal import said_by_modules

Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

NOISE = 1e-5  # of what is as large as one: less is no change
DRAWS = 3  # of an input that seems to be ignored
FEWEST_STEPS = 4
LONGEST = 24  # samples or steps: of more than that, a few are taken
SMALL = (11, 7, 13, 17)
_MASKS = ("mask", "length", "lens", "pad")


Said = Callable[[str], Optional[CausalClaim]]  # what the text says of a class, by its name


class NoAnswer(Exception):
    """Nothing can be said of a model. The message says why."""


class Input:
    """A tensor that the model is given."""

    def __init__(self, name: str, parameter: str, tensor: Tensor) -> None:
        self.name = name  # `batch["ids"]`
        self.parameter = parameter
        self.tensor = tensor
        self.is_mask = tensor.dtype is torch.bool or any(word in name.lower() for word in _MASKS)


class Experiment:
    """The calls of one model with these arguments."""

    def __init__(self, mode: RealMode, model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], said: Said) -> None:
        self.mode, self.model, self.args, self.kwargs = mode, model, args, kwargs
        self.said = said
        self.runs = 0
        self.found: List[Dependence] = []
        self.kept: List[Tensor] = []  # by modules, at the end of the last call
        self.inputs = list(_inputs(model, args, kwargs))

    # --- calls ---

    def _call(self, old: Optional[Tensor] = None, new: Optional[Tensor] = None) -> Any:
        self.runs += 1
        args, kwargs = self.args, self.kwargs
        with _plainly():
            given, named = drawing.replaced(list(args), old, new), drawing.replaced(dict(kwargs), old, new)
            self.mode.watched = {id(tensor): tensor for _, tensor in [*drawing.leaves(given), *drawing.leaves(named)]}
            drawing.seed(0)
        self.mode.is_forward = True
        try:
            return self.mode.call(self.model, tuple(given), named)
        finally:
            self.mode.is_forward = False

    def _outputs(self, old: Optional[Tensor] = None, new: Optional[Tensor] = None) -> List[Tuple[str, Tensor]]:
        result = self._call(old, new)
        with _plainly():
            given = [(path, tensor.detach().clone()) for path, tensor in drawing.leaves(result)]
            self.kept = [tensor.detach().clone() for tensor in _kept(self.model)]
            return given

    # --- all of it ---

    def run(self) -> None:
        """Find what there is. Raises NoAnswer, and what the model raises."""
        for part in parts_of(self.model):
            part.__dict__["training"] = False
        self._begin()
        with _plainly():
            drawing.seed(1)
            drawing.draw_parameters(self.model)
        self.mode.read, self.mode.shape_read = set(), set()
        base = self._outputs()
        self.base_kept = self.kept
        read, shape_read = self._read_now()
        again = self._outputs()
        with _plainly():
            self._refuse(base, again)
            self.base = base
            for each in self.inputs:
                if each.tensor.dim() >= 2 and each.tensor.shape[-1] == each.tensor.shape[-2]:
                    self.mode.look_at_mask(each.tensor, each.name)
            is_telling = any(_is_telling(tensor) for _, tensor in base)
        if not is_telling:
            self._look_inside()
            if not self.found:
                raise NoAnswer("its results are no numbers")
            return
        self._look_for_ignored(read, shape_read)
        self._look_for_leaks()
        self._look_for_mixes()

    def _begin(self) -> None:
        """Call the model for the first time, with few samples and steps if it takes them. Lazy layers begin with that."""
        whole = self.args, self.kwargs, self.inputs
        if self._narrow():
            try:
                self._call()
                return
            except Exception:  # It is made for as many as it was given.
                self.args, self.kwargs, self.inputs = whole
        try:
            self._call()
        except (IndexError, RuntimeError) as error:
            if "index out of range" not in str(error):
                raise
            self._smaller_numbers()
            self._call()

    def _narrow(self) -> bool:
        """Take fewer samples and steps of all inputs that have as many; whether there is anything to leave out."""
        sizes = {int(size) for each in self.inputs for size in _outer(each.tensor) if size > LONGEST}
        taken = {int(size) for each in self.inputs for size in each.tensor.shape}
        small = dict(zip(sorted(sizes), [size for size in SMALL if size not in taken]))
        if not small:
            return False

        def narrowed(tensor: Tensor) -> Tensor:
            for dim, size in enumerate(_outer(tensor)):
                tensor = tensor.narrow(dim, 0, small.get(int(size), int(size)))
            return tensor.clone()

        with _plainly():
            self.args, self.kwargs = drawing.mapped(tuple(self.args), narrowed), drawing.mapped(dict(self.kwargs), narrowed)
        self.inputs = list(_inputs(self.model, self.args, self.kwargs))
        return True

    def _smaller_numbers(self) -> None:
        for each in self.inputs:
            if not each.tensor.is_floating_point() and each.tensor.dtype is not torch.bool:
                each.tensor.clamp_(0, 1)

    def _refuse(self, base: List[Tuple[str, Tensor]], again: List[Tuple[str, Tensor]]) -> None:
        if self.mode.unsure:
            raise NoAnswer(self.mode.unsure)
        if not base:
            raise NoAnswer("it gives no tensor")
        if _shapes(base) != _shapes(again) or any(_changed(one, other).any() for (_, one), (_, other) in zip(base, again)):
            raise NoAnswer("its results differ from call to call")

    def _read_now(self) -> Tuple[Set[str], Set[str]]:
        """The names of inputs that the last call has read, and of those whose shape it has asked for."""
        places = list(self.mode.watched)
        names = [name for name, _ in _named(self.model, self.args, self.kwargs)]
        by_id = dict(zip(places, names)) if len(places) == len(names) else {}
        return {by_id.get(each, "") for each in self.mode.read}, {by_id.get(each, "") for each in self.mode.shape_read}

    # --- inputs that do not matter ---

    def _look_for_ignored(self, read: Set[str], shape_read: Set[str]) -> None:
        ignored = [each for each in self.inputs if each.tensor.numel() and not self._matters(each)]
        if not ignored or (len(ignored) == len(self.inputs) and all(each.name in read for each in ignored)):
            return
        kept = drawing.shaken(self.model)
        self.base = self._outputs()
        self.base_kept = self.kept
        ignored = [each for each in ignored if not self._matters(each)]
        with _plainly():
            for tensor, before in kept:
                tensor.copy_(before)
        self.base = self._outputs()
        for each in ignored:
            if each.name in read or each.name not in shape_read:
                self.found.append(Dependence(IGNORED_INPUT, type(self.model).__name__, each.name, reads=each.name in read))

    def _matters(self, each: Input) -> bool:
        """True if any output changes with an input, or where that is unclear."""
        for step in range(1, DRAWS + 1):
            with _plainly():
                drawing.seed(10 + step)
                other = drawing.others(each.tensor, None, 0, step)
            try:
                outputs = self._outputs(each.tensor, other)
            except Exception:  # Values that the model does not take.
                return True
            with _plainly():
                if _shapes(outputs) != _shapes(self.base) or any(_changed(a, b).any() for (_, a), (_, b) in zip(self.base, outputs)):
                    return True
                if len(self.kept) != len(self.base_kept) or any(map(_differ, self.base_kept, self.kept)):
                    return True  # It is kept for later: `self.last_loss = loss`.
        return False

    # --- the future ---

    def _look_for_leaks(self) -> None:
        claim, sizes = self._claim()
        if claim is None:
            return
        found: List[Dependence] = []
        for each in self.inputs:
            if each.is_mask:
                continue
            for dim in self._time_dims(each, sizes):
                matters, leak = self._leak(each, dim, claim)
                if matters and leak is None:
                    return  # It is causal in one of them: the others may be what it is given besides.
                found += [leak] if leak is not None else []
        self.found += found[:1]

    def _look_inside(self) -> None:
        """Looks inside where the outputs are no numbers: for the first result in which earlier steps change with later ones."""
        claim, sizes = self._claim()
        for each in self.inputs if claim is not None else ():
            shape = [int(size) for size in each.tensor.shape]
            dims = [dim for dim, size in enumerate(shape) if size in sizes and shape.count(size) == 1]
            if dims and not each.is_mask:
                place = shape[dims[0]] // 2
                found = Dependence(FUTURE_LEAK, type(self.model).__name__, each.name, INSIDE, place, shape[dims[0]], claim=claim)
                found.trail = self._first(each, dims[0], place, shape[dims[0]], found=found)
                self.found += [found] if found.trail else []
                return

    def _claim(self) -> Tuple[Optional[CausalClaim], Set[int]]:
        """Returns the sign that the model is causal, and the sizes of its masks, where the model came to some."""
        mode = self.mode
        sizes = mode.met - mode.picked
        for size in sorted(sizes):
            return mode.masks[size], sizes
        held = self._held_mask()
        claim = next(iter(mode.claims), None) or held or said_by_modules(self.model)
        claim = claim or self.said(type(self.model).__name__)
        return claim, set()

    def _held_mask(self) -> Optional[CausalClaim]:
        """A buffer of the model that is such a mask, and as long as its input at least."""
        longest = max([int(size) for each in self.inputs for size in each.tensor.shape[:2]], default=0)
        for path, part in self.model.named_modules():
            for name, tensor in list(part._buffers.items()) + list(part._parameters.items()):
                if tensor is not None and not tensor.is_meta and not tensor.requires_grad and tensor.shape[-1:] >= (longest,):
                    with _plainly():
                        size = int(tensor.shape[-1])
                        if offset_of_mask(tensor) is not None:
                            known = self.mode.masks.get(size)
                            return CausalClaim("mask", ".".join(filter(None, (path, name))), known.span if known is not None else None)
        return None

    def _time_dims(self, each: Input, sizes: Set[int]) -> Iterator[int]:
        """The dims of an input that may be its steps: as long as a mask is, or those that the batch is not."""
        shape = [int(size) for size in each.tensor.shape]
        for dim, size in enumerate(shape[:2] if not sizes else shape):
            if size < FEWEST_STEPS or (sizes and size not in sizes) or shape.count(size) > 1:
                continue
            if not sizes and each.tensor.is_floating_point() and len(shape) != 3:
                continue
            is_given_back = any(_steps(tensor, shape, dim) is not None for _, tensor in self.base)
            if is_given_back and (sizes or not self._is_batch(each, dim)):
                yield dim

    def _is_batch(self, each: Input, dim: int) -> bool:
        """True if the results of a place of an input depend on nothing else along its dim."""
        place = int(each.tensor.shape[dim]) // 2
        changes = self._changes(each, dim, place)
        return all(set(changed) <= {place} for _, changed in changes)

    def _changes(self, each: Input, dim: int, place: int) -> List[Tuple[str, List[int]]]:
        """The places of each output, along the same dim, that change with one place of an input."""
        with _plainly():
            drawing.seed(20 + place)
            other = drawing.others(each.tensor, dim, place, 1)
        outputs = self._outputs(each.tensor, other)
        shape, found = [int(size) for size in each.tensor.shape], []
        with _plainly():
            for (name, before), (_, after) in zip(self.base, outputs):
                seen = _steps(before, shape, dim) if before.shape == after.shape else None
                if seen is not None:
                    found.append((name, _places(before, after, *seen)))
        return found

    def _leak(self, each: Input, dim: int, claim: CausalClaim) -> Tuple[bool, Optional[Dependence]]:
        """Returns whether steps depend on those of an input, and how earlier ones depend on later ones; None where they do not."""
        length, matters = int(each.tensor.shape[dim]), False
        for place in (length // 2, length - 1):
            for name, changed in self._changes(each, dim, place):
                early, matters = [step for step in changed if step < place], matters or bool(changed)
                if early:
                    found = Dependence(FUTURE_LEAK, type(self.model).__name__, each.name, name, place, length, early, claim=claim)
                    found.trail = self._first(each, dim, place, length)
                    return True, found
        return matters, None

    # --- samples that meet ---

    def _look_for_mixes(self) -> None:
        for each in self.inputs:
            shape = [int(size) for size in each.tensor.shape]
            if each.is_mask or not shape or shape[0] < 2 or shape.count(shape[0]) > 1 or not self._has_batch(each):
                continue
            place = 1
            for name, changed in self._changes(each, 0, place):
                others = [sample for sample in changed if sample != place]
                if others:
                    found = Dependence(BATCH_MIX, type(self.model).__name__, each.name, name, place, shape[0], others)
                    found.trail = self._first(each, 0, place, shape[0], both=True)
                    self.found.append(found)
                    return

    def _has_batch(self, each: Input) -> bool:
        """True if dim 0 of an input is surely the batch: a picture that a convolution takes."""
        wanted = {torch.nn.Conv2d: 4, torch.nn.Conv3d: 5}
        ranks = {rank for layer, rank in wanted.items() for part in parts_of(self.model) if isinstance(part, layer)}
        return each.tensor.is_floating_point() and each.tensor.dim() in ranks

    # --- where ---

    def _first(
        self, each: Input, dim: int, place: int, length: int, *, both: bool = False, found: Optional[Dependence] = None
    ) -> List[Any]:
        """The user's calls that lead to the first operation whose result changed where it ought not to."""
        with _plainly():
            drawing.seed(20 + place)
            other = drawing.others(each.tensor, dim, place, 1)
        self.mode.record()
        self._call()
        before = self.mode.recorded()
        self.mode.record()
        self._call(each.tensor, other)
        after = self.mode.recorded()
        with _plainly():
            told = _first_leak(before, after, [int(size) for size in each.tensor.shape], dim, place, both=both)
        if told is None:
            return []
        number, places = told
        if found is not None:
            found.changed = places
        self.mode.record(number)
        self._call()
        self.mode.recorded()
        return self.mode.trail


def _first_leak(
    before: List[Any], after: List[Any], shape: List[int], dim: int, place: int, *, both: bool
) -> Optional[Tuple[int, List[int]]]:
    """The number of the first result in which places changed that ought not to, and these; of results that have the dim once."""
    for number, (one, other) in enumerate(zip(before, after)):
        if one.name != other.name or len(one.tensors) != len(other.tensors):
            return None
        for a, b in zip(one.tensors, other.tensors):
            if a.shape != b.shape or list(a.shape).count(shape[dim]) != 1:
                continue
            changed = _places(a, b, list(a.shape).index(shape[dim]), None)
            wrong = [each for each in changed if each < place or (both and each != place)]
            if wrong:
                return number, wrong
    return None


# --- comparing ---


def _kept(model: Any) -> Iterator[Tensor]:
    """Yields the tensors that modules keep for later: attributes of theirs, and no parameters."""
    for part in parts_of(model):
        for value in [*vars(part).values(), *part._buffers.values()]:
            if isinstance(value, (Tensor, list, tuple)):
                yield from (tensor for _, tensor in drawing.leaves(value))


def _differ(one: Tensor, other: Tensor) -> bool:
    return one.shape != other.shape or bool(_changed(one, other).any())


def _outer(tensor: Tensor) -> Tuple[int, ...]:
    """The sizes of dims that may be samples or steps: the first two, but for the last one of floats."""
    return tuple(tensor.shape[: 2 if not tensor.is_floating_point() else min(2, tensor.dim() - 1)]) if tensor.dim() < 4 else ()


def _is_telling(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor).any()) if tensor.is_floating_point() else bool(tensor.numel())


def _shapes(outputs: List[Tuple[str, Tensor]]) -> List[Tuple[str, Any]]:
    return [(name, tuple(tensor.shape)) for name, tensor in outputs]


def _changed(before: Tensor, after: Tensor) -> Tensor:
    """Where two results differ; what is no number in both does not."""
    if not before.is_floating_point() and not before.is_complex():
        return before != after
    if before.is_complex():
        before, after = torch.view_as_real(before), torch.view_as_real(after)
    finite = before[torch.isfinite(before)]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    same = (before == after) | (torch.isnan(before) & torch.isnan(after))
    return ~same & ~((before - after).abs() <= NOISE * max(scale, 1e-30))


def _steps(output: Tensor, shape: List[int], dim: int) -> Optional[Tuple[int, Optional[List[int]]]]:
    """The dim of an output that is one of an input, and the shape that it has to be given before, where it joins that with the batch."""
    sizes, size = [int(each) for each in output.shape], shape[dim]
    if len(sizes) > dim and sizes[dim] == size and sizes.count(size) == 1:
        return dim, None
    if sizes.count(size) == 1:
        return sizes.index(size), None
    if len(sizes) > dim and sizes[dim] == size and len(sizes) == len(shape) + 1:
        return dim, None
    if len(shape) >= 2 and dim < 2 and sizes and sizes[0] == shape[0] * shape[1] and sizes.count(sizes[0]) == 1:
        return dim, [shape[0], shape[1], *sizes[1:]]
    return None


def _places(before: Tensor, after: Tensor, dim: int, shape: Optional[List[int]]) -> List[int]:
    """The places along a dim where two results differ."""
    changed = _changed(before, after)
    if before.is_complex():
        changed = changed.any(-1)
    changed = changed.reshape(shape) if shape is not None else changed
    if changed.dim() > 1:
        changed = changed.transpose(0, dim).flatten(1).any(1)
    return [int(place) for place in changed.nonzero().flatten()]


# --- names ---


def _named(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Tuple[str, Tensor]]:
    """The tensors that a model is called with, with their names."""
    try:
        names = list(inspect.signature(type(model).forward).parameters.values())[1:]
    except (TypeError, ValueError):
        names = []
    for place, value in enumerate(args):
        known = names[place] if place < len(names) else None
        name = known.name if known is not None and known.kind is not known.VAR_POSITIONAL else "input %d" % place
        for path, tensor in drawing.leaves(value):
            yield name + path, tensor
    for name, value in kwargs.items():
        for path, tensor in drawing.leaves(value):
            yield name + path, tensor


def _inputs(model: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Iterator[Input]:
    for name, tensor in _named(model, args, kwargs):
        yield Input(name, name.partition("[")[0].partition(".")[0], tensor)
