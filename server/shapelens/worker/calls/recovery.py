"""Going on past what failed: a stand-in takes the place of the result, and the failure becomes a mismatch, once.

A stand-in has the shape that the right operation would have given, an unknown size where that is not known (unknown_sizes.py), so that what
follows is still checked where it can be. Where not even the number of dims is known the stand-in is vague: nothing is shown of it or of
what is made from it, and what fails on it is not reported.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ...protocol import FileSpan, Mismatch
from ..meta import expected_shapes, op_cache
from ..meta.linked_results import packed_anyway
from ..meta.mode import OTHER_RANKS, FailedTorchCall, MetaMode, NotRecovered, is_unimplemented, made, needs_data
from ..sandbox.exceptions import lacks_memory, traceback_of
from ..torch_calls import changed_tensor
from ..trace.frames import Frames
from ..trace.provenance import follows_failure, tensors_in
from ..trace.recorder import SeenValues
from ..trace.suspects import suspects_of
from ..trace.tape import tape
from ..trace.value_summary import HALF_BUILT, LAYER, STAND_IN, VAGUE, key_of, value_of
from ..unknown import unknown_sizes
from ..unknown.stand_ins import holds_absent
from . import misused_layers
from .exception_handlers import would_be_caught
from .mismatches import mismatch_of, one_line
from .size_conflicts import known_sizes_clash
from .sure_mistakes import is_refused_for_good

Tensor = torch.Tensor
Args = Tuple[Any, ...]
Kwargs = Dict[str, Any]
_plainly = torch._C.DisableTorchFunction

MOST_OF_ONE_KIND = 8  # of mismatches at one place
# What Python raises where a stand-in is not what the code takes it for.
FOLLOWS = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, RuntimeError, AssertionError)
# The functions that losses call.
LOSSES = {
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "CTCLoss": "ctc_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "CrossEntropyLoss": "cross_entropy", "GaussianNLLLoss": "gaussian_nll_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss", "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "L1Loss": "l1_loss",
    "MSELoss": "mse_loss", "MarginRankingLoss": "margin_ranking_loss", "MultiLabelMarginLoss": "multilabel_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "MultiMarginLoss": "multi_margin_loss", "NLLLoss": "nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss", "SmoothL1Loss": "smooth_l1_loss", "SoftMarginLoss": "soft_margin_loss",
    "TripletMarginLoss": "triplet_margin_loss",
}  # fmt: skip


# What Python takes for what a tensor of several elements cannot be made: of other types it would complain of the stand-in.
_NUMBERS: Dict[str, Callable[[], Any]] = {
    "__bool__": lambda: True, "__int__": lambda: int(unknown_sizes.size()), "__index__": lambda: int(unknown_sizes.size()),
    "__float__": lambda: float("nan"),
}  # fmt: skip


class Recovery:
    """Replaces the results of failed operations and calls during one example. `calls` watches its module calls."""

    def __init__(self, calls: Any, meta: MetaMode, frames: Frames) -> None:
        self.calls = calls
        self.meta = meta
        self.frames = frames
        self.met: Dict[Any, int] = {}  # how often a failure of a kind was seen at a place

    def operation(self, function: Callable[..., Any], args: Args, kwargs: Kwargs, error: Exception) -> Any:
        """The result of a torch function that raised. Raises NotRecovered where the code expects the failure, or no user code is near."""
        trail = self._trail(error)
        with _plainly():
            changed = _changed(function, args, kwargs)
            is_known = not (holds_absent(args) or holds_absent(kwargs.values()))
            is_told = not self._is_vague(args, kwargs) and (is_known or expected_shapes.keeps_first(function))
            shapes = expected_shapes.shapes_of(function, args, kwargs) if is_told else None
            if shapes is None and expected_shapes.gives_number(function, args, kwargs):
                shapes = [[]]
            # That there is no meta kernel says nothing about the code; it is said only where nothing is known of the result.
            if not (is_unable(error) and (changed is not None or shapes is not None)) and not self._follows(args, kwargs, function):
                self._tell(function, args, error, trail)
            if changed is not None:
                return changed[0]
            if getattr(function, "__name__", "") in _NUMBERS:
                return _NUMBERS[function.__name__]()
            if getattr(function, "__name__", "") == "_pack_padded_sequence" and is_told:
                return packed_anyway(*args)
            return self._made(shapes, expected_shapes.dtype_of(function, args, kwargs), args, kwargs)

    def _tell(self, function: Callable[..., Any], args: Args, error: Exception, trail: List[FileSpan]) -> None:
        """Report that an operation fails. Where it was given the whole result of a layer in the place of a tensor, that is what is said."""
        found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)
        is_exception = found.code == "exception" and self._is_followed and bool(args)
        if is_exception and misused_layers.holds_tuples(args[0]):
            found.code, found.message = "layer-input", "%s takes tensors, and gets tuples" % getattr(function, "__name__", "it")
        elif is_exception and misused_layers.is_tuple_of_layer(args[0]):
            found.code, found.origins = "layer-input", misused_layers.made_at(args[0], self.calls.recorder)
            found.message = "%s takes a tensor, and gets a tuple" % getattr(function, "__name__", "it")
        self._report(found)
        if found.code == "backward-scalar" and args and isinstance(args[0], Tensor):
            args[0].__dict__[STAND_IN], self.meta.vague = VAGUE, True  # It should be a number: what else fails follows.

    def unable(self, function: Callable[..., Any], args: Args, kwargs: Kwargs, error: Exception) -> Any:
        """As `operation`, but only where the failure says nothing about the code: an attempt ends at any other. Raises NotRecovered."""
        with _plainly():
            follows = is_unable(error) or self._follows(args, kwargs, function)
        if not follows and not self.goes_past(error):
            raise NotRecovered
        return self.operation(function, args, kwargs, error)

    def goes_past(self, error: Exception) -> bool:
        """True if an attempt goes past this failure, a mistake."""
        if self.calls.passes is None:
            return False
        trail = self._trail(error)
        with _plainly():
            return bool(self.calls.goes_past(mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)))

    def layer(self, module: Any, args: Args, kwargs: Kwargs, error: Exception) -> Any:
        """The result of a layer of torch whose forward raised. Raises NotRecovered."""
        trail = self._trail(error)
        with _plainly():
            half_built = HALF_BUILT in module.__dict__ or misused_layers.is_given_result_of_class(args)
            is_said = misused_layers.lacks_forward(module) and self.calls.refuse is not None  # By the run of what is found.
            is_unfit = misused_layers.does_not_bind(module, args, kwargs, error) and misused_layers.is_plain_call(trail[-1])
            follows = not is_unfit and (is_of_unknown_size(module) or self._follows(args, kwargs))
            if not (half_built or is_said or follows):
                loss = LOSSES.get(type(module).__name__) if isinstance(module, torch.nn.modules.loss._Loss) else None
                if loss is not None:  # The layer is only another way to write the function.
                    self.meta.failure = FailedTorchCall(loss, _of_loss(module, args, kwargs), error)
                found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)
                found.layer = module.__dict__.get(LAYER) if loss is None else None
                if self._is_followed and misused_layers.is_given_no_tensor(module, args, kwargs):
                    found.code, found.origins = "layer-input", misused_layers.made_at(args[0], self.calls.recorder)
                    found.message = "%s takes a tensor, and gets %s" % (type(module).__name__, misused_layers.words_for(args[0]))
                elif misused_layers.lacks_forward(module):
                    found.code, found.exception = "call-arguments", "TypeError"
                    found.message = "%s only lists layers, and has no forward() that could be called" % type(module).__name__
                elif is_unfit:  # Whatever the arguments are.
                    self.calls.met_sure = True
                    found.code, found.message, found.sure = "call-arguments", one_line(error), True
                if isinstance(module, torch.nn.Embedding) and "index out of range in self" in found.message:
                    found.code = "embedding-range"
                    found.argument, found.got, found.need = "num_embeddings", _rows_needed(args, kwargs), module.num_embeddings
                self._report(found)
            is_told = not (half_built or self._is_vague(args, kwargs) or holds_absent(args))
            shapes = expected_shapes.layer_shapes(module, args, kwargs) if is_told else None
            weight = getattr(module, "weight", None)
            dtype = weight.dtype if isinstance(weight, Tensor) else expected_shapes.dtype_of(module, args, kwargs)
            if isinstance(module, torch.nn.RNNBase) and shapes:
                output, state = self._made(shapes, dtype, args, kwargs), self._made(None, dtype, args, kwargs)
                return output, (state, state) if isinstance(module, torch.nn.LSTM) else state
            return self._made(shapes, dtype, args, kwargs)

    @property
    def _is_followed(self) -> bool:
        """True if the code as it stands makes the call: in an example, or where the program gets to it. The program's functions without
        callers may get other inputs than the guessed ones."""
        return tape.active or not op_cache.state.assumes_gradients

    def unfit_call(self, args: Args, kwargs: Kwargs, error: Exception) -> Any:
        """The result of a user's module that does not take the arguments of its call. Raises NotRecovered."""
        trail = self._trail(error)
        if not self._is_followed or not misused_layers.is_plain_call(trail[-1]):
            raise NotRecovered
        with _plainly():
            found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)
            found.code, found.message = "call-arguments", one_line(error)  # Whatever the arguments are.
            self._report(found)
            return self._made(None, torch.get_default_dtype(), args, kwargs)

    def applied_class(self, module: Any) -> None:
        """The class of a layer was called with what the layer should have been called with: `nn.ReLU(x)`."""
        module.__dict__[HALF_BUILT] = True
        trail = self.frames.trail()
        if self.calls.refuse is not None or not trail:  # The run of what is found says so.
            return
        message = "%s(…) makes a layer, and computes nothing" % type(module).__name__
        self._report(Mismatch("layer-as-function", message, "TypeError", trail[-1], trail, self.calls.example))

    def module(self, args: Args, kwargs: Kwargs, error: Exception, seen: Optional[SeenValues]) -> Any:
        """The result of a user's module whose forward raised: as of an earlier call of it, or a vague one. Raises NotRecovered."""
        if isinstance(error, (MemoryError, RecursionError, NotImplementedError)):
            raise NotRecovered
        upper = self._trail(error)
        tensors = list(tensors_in((args, kwargs)))
        if not tensors:
            raise NotRecovered
        with _plainly():
            trail = upper + self.frames.trail_of(traceback_of(error))
            found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)
            self.calls.ended_modules += [error] if found.code == "exception" else []
            is_of_python = found.code == "exception" or str(error) in ("tuple index out of range", "list index out of range")
            if not (is_of_python and self.meta.vague and isinstance(error, FOLLOWS)) and not self._follows(args, kwargs):
                self._report(found)
            key = seen.sequence[-1][1] if seen is not None and seen.sequence else None
            shapes: Optional[List[expected_shapes.Shape]] = None
            if key is not None and key[0] == "tensor":
                shapes = [list(key[1])]
            return self._made(shapes, tensors[0].dtype, args, kwargs)

    def vague(self, args: Args, kwargs: Kwargs) -> Tensor:
        """Returns the replacement for a result about which nothing is known, as a failure produced its inputs."""
        return self._made(None, expected_shapes.dtype_of(None, args, kwargs), args, kwargs)  # type: ignore[no-any-return]

    def instead(self, like: Tensor) -> Tensor:
        """Returns the replacement for a missing tensor, with as many dims as another one, of unknown sizes. Of three dims, the first keeps
        the size of the batch. With more dims nothing is known, as torch cannot count so many unknown sizes."""
        with _plainly():
            known = [like.shape[0]] if like.dim() > expected_shapes.MOST_UNKNOWN else []
            made_of: List[expected_shapes.Shape] = [[*known, *[None] * (like.dim() - len(known))]]
            return self._made(made_of, like.dtype, (like,), {})  # type: ignore[no-any-return]

    def pattern(self, error: Exception, tensors: List[Tensor], shape: Optional[expected_shapes.Shape]) -> Any:
        """The result of an einops function that raised; `shape` is what its pattern asks for. Raises NotRecovered."""
        if self.calls.refuse is not None and not self._follows(tuple(tensors), {}):
            raise NotRecovered
        trail = self._trail(error)
        with _plainly():
            if not self._follows(tuple(tensors), {}):
                found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, trail)
                found.inputs = [value_of(key_of(tensor)) for tensor in tensors[:6]]
                found.suspects = suspects_of(tensors, self.calls.recorder, found.layer)
                self._report(found)
            vague = self._is_vague(tuple(tensors), {})
            return self._made(None if vague else [shape] if shape is not None else None, tensors[0].dtype, tuple(tensors), {})

    def constructor(self, module: Any, error: Exception) -> None:
        """A layer of torch refused the arguments of its constructor. Raises NotRecovered."""
        in_search = self.calls.refuse is not None
        # Defaults that do not divide each other are a mistake; one that is only there to be replaced says so by being none.
        is_certain = self.calls.has_no_choice or (self.calls.has_defaults_only and "divisible" in str(error))
        is_certain = not in_search or is_certain or is_refused_for_good(type(module))
        if not is_certain and self.calls.passes is None:
            raise NotRecovered
        found = mismatch_of(error, self.calls.example, self.frames, self.meta, self.calls, self._trail(error))
        found.layer = module.__dict__.get(LAYER)
        if found.code not in ("attention-heads", "definition", "data-dependent", "missing-import", "missing-file", "unavailable"):
            found.code = "layer-arguments"
        part = getattr(error, "obj", None)
        follows = isinstance(part, torch.nn.Module) and HALF_BUILT in part.__dict__  # What that one lacks has been said.
        if not is_certain and not follows and not self.calls.goes_past(found):
            raise NotRecovered
        module.__dict__[HALF_BUILT] = True
        if not in_search and not follows:  # The run of what is found says so.
            self._report(found)

    # --- what is reported ---

    def _trail(self, error: Exception) -> Any:
        if lacks_memory(error) or isinstance(error, RecursionError) or would_be_caught():
            raise NotRecovered
        trail = self.frames.trail()
        if not trail:
            raise NotRecovered  # The example's own expression failed.
        return trail

    def _follows(self, args: Args, kwargs: Kwargs, function: Optional[Callable[..., Any]] = None) -> bool:
        """True if a failure says nothing about the code, as an argument of the operation is unknown, and the known ones fit."""
        if self._is_vague(args, kwargs) or self._is_given_absent(args, kwargs) or _is_given_nothing(args):
            return True
        if not unknown_sizes.state.met:
            return False
        if function is not None and known_sizes_clash(function, args, kwargs) and not follows_failure((args, kwargs)):
            return False
        return unknown_sizes.any_unknown(_numbers(args)) or unknown_sizes.any_unknown(_numbers(tuple(kwargs.values())))

    def _is_vague(self, args: Args, kwargs: Kwargs) -> bool:
        return self.meta.vague and any(is_vague(tensor) for tensor in tensors_in((args, kwargs), 64))

    def is_given_unknown(self, args: Args, kwargs: Kwargs) -> bool:
        """True if nothing is known about an argument of a module."""
        with _plainly():
            return self._is_vague(args, kwargs) or self._is_given_absent(args, kwargs)

    def _is_given_absent(self, args: Args, kwargs: Kwargs) -> bool:
        """True if nothing is known about an argument of an operation. In any example, that is a result of a package that could not be
        imported. In a program, or after a failed statement, it is any unknown. Any other example with an unknown does not have the right
        inputs."""
        expected = not (op_cache.state.assumes_gradients or self.calls.gone_past)
        return holds_absent(args, expected=expected) or holds_absent(kwargs.values(), expected=expected)

    def _report(self, found: Mismatch) -> None:
        if found.code == "definition":  # Of something that failed there, which has been said.
            return
        if found.exception == "NotImplementedError" and OTHER_RANKS.search(found.message) is None:
            found.code = "data-dependent"
        kind = found.code, str(found.span)
        self.met[kind] = self.met.get(kind, 0) + 1
        if self.met[kind] <= MOST_OF_ONE_KIND:
            self.calls.add_mismatch(found)

    # --- what takes the place of the result ---

    def _made(self, shapes: Optional[List[expected_shapes.Shape]], dtype: torch.dtype, args: Args, kwargs: Kwargs) -> Any:
        """Stand-ins of these shapes, one alone not in a tuple; a vague one for None."""
        grad = torch.is_grad_enabled() and (dtype.is_floating_point or dtype.is_complex)
        if shapes is None or any(_unknown_among(shape) > expected_shapes.MOST_UNKNOWN for shape in shapes):
            tensors = list(tensors_in((args, kwargs), 64))
            self.meta.vague = True
            vague = made(list(tensors[0].shape) if tensors else [1], dtype, grad)
            vague.__dict__[STAND_IN] = VAGUE
            return vague
        out = []
        for shape in shapes:
            tensor = made([unknown_sizes.size() if size is None else size for size in shape], dtype, grad)
            tensor.__dict__[STAND_IN] = True
            out.append(tensor)
        return out[0] if len(out) == 1 else tuple(out)


def _of_loss(module: Any, args: Args, kwargs: Kwargs) -> List[Tensor]:
    """The tensors that a loss is computed with: what it is given, and its weights of the classes where they are of another dtype."""
    given, weight = list(tensors_in((args, kwargs))), getattr(module, "weight", None)
    return [*given, weight] if isinstance(weight, Tensor) and given and weight.dtype != given[0].dtype else given


def _is_given_nothing(args: Args) -> bool:
    """True if an operation of a program is given an empty list: the code that fills it may not have been followed."""
    return op_cache.state.assumes_gradients and len(args) > 0 and type(args[0]) in (list, tuple) and not args[0]


def is_unable(error: Exception) -> bool:
    """True if an operation failed only as there are no data."""
    return is_unimplemented(error) or needs_data(error)


def is_vague(tensor: Tensor) -> bool:
    """True if not even the number of dims of a stand-in is known."""
    return tensor.__dict__.get(STAND_IN) == VAGUE


def _unknown_among(shape: expected_shapes.Shape) -> int:
    """Returns the number of unknown sizes of a stand-in: torch cannot count the elements of a tensor of many such sizes."""
    return sum(size is None or unknown_sizes.is_unknown(size) for size in shape)


def _changed(function: Callable[..., Any], args: Args, kwargs: Kwargs) -> Optional[Tuple[Any]]:
    """Returns the result of an operation in place: the tensor that it would have changed, or nothing for an assignment. None for any other
    operation."""
    if getattr(function, "__name__", "") == "__setitem__":
        return (None,)
    changed = changed_tensor(function, args, kwargs)
    return None if changed is None else (changed,)


def _rows_needed(args: Args, kwargs: Kwargs) -> Optional[int]:
    """Returns the number of rows that an embedding needs for the given indices; None where one is negative."""
    index = next(tensors_in((args, kwargs)))
    return int(index.max()) + 1 if int(index.min()) >= 0 else None


def _numbers(values: Any, depth: int = 0) -> List[Any]:
    """The sizes of the tensors among some values, and the numbers among them."""
    found: List[Any] = []
    for value in values:
        if isinstance(value, Tensor):
            found += list(value.shape)
        elif isinstance(value, int):
            found.append(value)
        elif isinstance(value, (tuple, list)) and depth < 3:
            found += _numbers(value[:64], depth + 1)
    return found


def is_of_unknown_size(module: Any) -> bool:
    """True if a layer has a parameter with an unknown size: nothing is wrong with its input."""
    return unknown_sizes.state.met and any(
        unknown_sizes.any_unknown(parameter.shape) for parameter in module._parameters.values() if isinstance(parameter, Tensor)
    )
