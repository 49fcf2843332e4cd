"""Module calls: which layer was given what and gave what, the check of what it was given, and the stand-in where that does not fit."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence, Set, Tuple, Union

import torch

from ...protocol import FileSpan, LayerCall, LayerSeen, Mismatch, ParameterSeen, Remark
from ..meta.backward_hooks import hooks
from ..meta.mode import MetaMode, NotRecovered, made, spread
from ..rewrite.instrument import Site
from ..trace import module_tree, provenance
from ..trace.devices import devices
from ..trace.frames import Frames
from ..trace.layer_inputs import Expectation, expectations, is_torch_layer, is_unmet, lone_picture, wrong_dtype
from ..trace.module_memory import Holdings, own_tensors, parts_of
from ..trace.progress import Progress
from ..trace.recorder import Recorder, SeenValues
from ..trace.suspects import modules_running, suspects_of
from ..trace.value_summary import HALF_BUILT, LAYER, MODE, STAND_IN, VAGUE, key_of, value_of
from ..unknown import unknown_sizes
from ..unknown.stand_ins import is_absent
from . import einops_recovery, misplaced_dims, misused_layers, refused_constructors, uninitialised_modules, unsure_calls
from .memo_protocols import CallRecording, CallReplay
from .recovery import Recovery, is_of_unknown_size, is_unable, is_vague

Module = torch.nn.Module
Tensor = torch.Tensor
_plainly = torch._C.DisableTorchFunction

Mistake = Tuple[str, ...]  # what tells the mistakes of a text apart (`mistake_of`)
Passes = Callable[[Mismatch, Sequence[Optional[FileSpan]]], bool]  # is given a mismatch, and where the layers were constructed

MOST_MISMATCHES = 100
MOST_MODELS = 16  # modules that are called by none, whose parts are named by their path in them
_LARGE_NUMBER = re.compile(r"\b\d{4,}\b")  # an unknown size, it may be
# Layers whose result has the shape of their input, by the code of what they refuse.
KEEPS_SHAPE = {"norm-num-features", "norm-num-channels", "norm-normalized-shape", "attention-embed-dim", "prelu-num-parameters"}


class Calls:
    """Watches the construction and the calls of all modules during an example."""

    def __init__(self, recorder: Recorder, meta: MetaMode, frames: Frames, defined: Sequence[Tuple[Any, Optional[FileSpan]]] = ()) -> None:
        self.recorder = recorder
        self.meta = meta
        self.frames = frames
        self.defined = defined  # modules made at module level, as the default of an argument say
        self.recording: Optional[CallRecording] = None  # where to write down what is called
        self.replay: Optional[CallReplay] = None  # what knows the results of some calls
        self.refuse: Optional[Callable[[Mismatch], BaseException]] = None  # makes the exception that ends an attempt at the first mismatch
        self.wants_batch = False  # whether an attempt ends where a convolution takes the only input of its rank for a picture without batch
        self.of_unknown: Optional[Callable[[Any, Tuple[Any, ...], Dict[str, Any]], Optional[Tuple[Any]]]] = None
        """Returns the result of a call with unknown arguments that no other module makes; None where they are known."""
        self.passes: Optional[Passes] = None  # whether an attempt goes past a mismatch, as no example avoids it
        self.on_mismatch: Optional[Callable[[], None]] = None  # called at the first mismatch
        self.start_example(0)

    def definitions_ended(self) -> None:
        """Gives the modules constructed until now to every example."""
        self.defined = list(zip(self.modules, self.spans))

    def start_example(self, example: int) -> None:
        """Forget the modules of the last example."""
        self.example = example
        self.modules: List[Any] = []  # by layer index
        self.spans: List[Optional[FileSpan]] = []
        self.constructing: List[int] = []  # ids of the frames that constructed them
        self.call_spans: List[Optional[FileSpan]] = []
        self.seen: Dict[int, SeenValues] = {}
        self.met_sure = False  # whether something has failed that fails for every input
        self.of_unknown_result: Set[int] = set()  # modules that were given tensors, and of whose result nothing is known
        self.models: List[Any] = []  # what no other module called: by the example, or by a function that it called
        self.mismatches: List[Mismatch] = []
        self.ended_modules: List[BaseException] = []  # what ended the `forward` of modules of the user's
        self.gone_past = False  # whether a statement has failed, and its function has gone on
        self.has_no_choice = False  # whether the attempt is given nothing that could be another, so that what fails is wrong in the code
        self.has_defaults_only = False  # whether the attempt builds a class with its defaults
        self.depth = 0
        self.picture: Optional[Tuple[Any, Tensor]] = None  # the first convolution that the model called, and what it was given
        self.most_dims = 0  # of the tensors that the model is called with that runs
        self.aside = False  # whether a module is called with sizes that are only tried: nothing of that is kept
        self.ended = False  # whether the example has run to its end, so that its modules stay as they are
        self._known_facts: Dict[int, Tuple[List[ParameterSeen], int, int, str]] = {}
        self.recovery = Recovery(self, self.meta, self.frames)
        if self.replay is not None:
            self.modules, self.spans = list(self.replay.modules), list(self.replay.spans)
            self.call_spans, self.constructing = [None] * len(self.modules), [0] * len(self.modules)
            return
        for module, span in self.defined:
            self._register(module, span)

    def start_attempt(self) -> None:
        """Forget what was called, but not the modules: they are called again with something else."""
        self.seen, self.models, self.mismatches, self.depth = {}, [], [], 0
        self.of_unknown_result = set()
        self.ended_modules, self.gone_past, self.has_no_choice = [], False, False
        self.recovery = Recovery(self, self.meta, self.frames)
        self.meta.recover = self.recovery.unable

    def called_classes(self) -> FrozenSet[type]:
        """The classes of the modules that gave a result, or took tensors and gave what is not known."""
        return frozenset([type(self.modules[index]) for index in (*self.seen, *self.of_unknown_result) if 0 <= index < len(self.modules)])

    # --- construction ---

    def _register(self, module: Any, span: Optional[FileSpan], constructing: int = 0) -> int:
        module.__dict__[LAYER] = len(self.modules)
        self.modules.append(module)
        self.spans.append(span)
        self.constructing.append(constructing)
        self.call_spans.append(None)
        return len(self.modules) - 1

    def constructed(self, module: Any) -> None:
        """A module ran `Module.__init__`. Where it lies outside of rewritten code, its frame tells where it was constructed."""
        self.recorder.made += 1
        self._register(module, *self.frames.constructor(module))

    def taken_over(self, module: Any) -> None:
        """A module takes the place of one that would have been constructed."""
        index = module.__dict__[LAYER]
        self.spans[index], self.constructing[index] = self.frames.constructor(module)

    def _index(self, module: Any) -> Optional[int]:
        """The layer index of a module; None for one that was made before a run began, in a library. A copy has that of its original."""
        index = module.__dict__.get(LAYER)
        if index is not None and not (index < len(self.modules) and type(self.modules[index]) is type(module)):
            return self._register(module, None)  # User code kept it from an earlier example.
        return index  # type: ignore[no-any-return]

    def reported(self, module: Any, site: Site) -> None:
        """A call expression of rewritten code gave a module: the first one to do so is its constructor."""
        uninitialised_modules.initialise(module)
        index = self._index(module)
        if index is not None and self.spans[index] is None and not self.frames.is_under_construction(module, self.constructing[index]):
            self.spans[index] = FileSpan(self.recorder.file_of(self.recorder.last), *site.place)

    # --- calls ---

    def call(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """`Module.__call__`: check, call, record."""
        self.recorder.used += 1
        if self.depth == 0:
            given_instead = self._model_called(module, args, kwargs)
            if given_instead is not None:
                return given_instead[0]
        uninitialised_modules.initialise(module)
        wrong = uninitialised_modules.not_initialised(module, self.frames, self.example)
        if wrong is not None and self.refuse is None:  # The run of what is found says so.
            self.add_mismatch(wrong)
        index = self._index(module)
        if index is not None and self.call_spans[index] is None:
            self.call_spans[index] = self.frames.innermost()
        known = None if self.replay is None else self.replay.result(module, args, kwargs)
        if known is not None:
            self.record(module, args, kwargs, known[0])
            return known[0]
        given, before = (args, kwargs), len(self.mismatches) if self.depth == 0 and self._is_told else None
        mark = None if self.recording is None else self.recording.begin(module, args, kwargs)
        args, kwargs, arrived = self._fitting(module, args, kwargs)
        inner = is_torch_layer(module)
        is_placed = devices.active and inner and not self.meta.inside_layer
        placement = devices.call_layer(module, *given) if is_placed else None
        unsure = not inner and unsure_calls.is_unsure(module, args, kwargs, self.frames.is_user_file)
        self.depth += 1
        self.meta.inside_layer += inner
        try:
            result = unsure_calls.called(self, module, args, kwargs) if unsure else module._call_impl(*args, **kwargs)
        except Exception as error:
            try:
                result = self._recovered(module, args, kwargs, error, inner)
            except NotRecovered:
                raise error  # noqa: B904  It is the same exception, that was not looked at.
        finally:
            self.depth -= 1
            self.meta.inside_layer -= inner
            reached = None if mark is None else self.recording.end(mark)  # type: ignore[union-attr]
        if reached is not None:
            self.recording.keep(module, mark, reached, *given, result)  # type: ignore[union-attr]
        if arrived is not None:
            result = _with_shape(result, arrived)
        if before is not None:
            result = self._with_right_picture(module, *given, result, before)
        if self.meta.vague:
            spread(given, result)
        if is_placed:
            devices.called_layer(result, placement)
        self.record(module, given[0], given[1], result)
        hooks.called(module, given[0], result)
        return result

    def _model_called(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Tuple[Any]]:
        """Note that a whole model is called. Returns the result of one that nothing is known of, in a tuple; else None."""
        given_instead = None if self.of_unknown is None else self.of_unknown(module, args, kwargs)
        if given_instead is not None:
            return given_instead
        if len(self.models) < MOST_MODELS:
            self.models.append(module)
        self.most_dims = max([tensor.dim() for tensor in provenance.tensors_in((args, kwargs))], default=0)
        self.picture = None
        if devices.active:
            devices.calls_root(module)
        if self.frames.called_by_example() and MODE not in module.__dict__:
            _switch_to_evaluation(module)
        return None

    @property
    def _is_told(self) -> bool:
        """True if a failure becomes a finding, rather than the end of an attempt."""
        return self.refuse is None and not self.aside

    def _with_right_picture(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any, before: int) -> Any:
        """The result of a model in which something failed: another one where it did so as its picture has another form than it takes.
        before: how many mismatches there were."""
        if self.picture is None or len(self.mismatches) <= before:
            return result
        known = misplaced_dims.found_in(self, module, args, kwargs, *self.picture)
        if known is None:
            return result
        for each in self.mismatches[before:]:
            if each.span is not None:
                self.recorder.failed.discard(each.span)
        del self.mismatches[before:]
        self.add_mismatch(known[0])
        return known[1]

    def _recovered(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], error: Exception, inner: bool) -> Any:
        """Returns the replacement for the result of a call that failed. Raises NotRecovered."""
        if not inner and unknown_sizes.state.in_library:
            raise NotRecovered
        may_be_unknown = is_unable(error) or (inner and is_of_unknown_size(module)) or HALF_BUILT in module.__dict__
        may_be_unknown = may_be_unknown or misused_layers.is_given_result_of_class(args) or misused_layers.lacks_forward(module)
        may_be_unknown = may_be_unknown or self.recovery.is_given_unknown(args, kwargs)
        if self.refuse is not None and not may_be_unknown and not self.recovery.goes_past(error):
            raise NotRecovered
        if (inner and self.meta.inside_layer == 1) or (not inner and misused_layers.lacks_forward(module)):
            return self.recovery.layer(module, args, kwargs, error)
        if self.refuse is None and not inner and misused_layers.does_not_bind(module, args, kwargs, error):
            return self.recovery.unfit_call(args, kwargs, error)
        if inner or self.depth <= 1:
            raise NotRecovered
        return self.recovery.module(args, kwargs, error, self.seen.get(module.__dict__.get(LAYER, -1)))

    def record(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        """A module was given these arguments and gave this result."""
        index = module.__dict__.get(LAYER)
        if index is None or self.aside:
            return
        output = key_of(result)
        if output is not None:
            given = tuple([key_of(argument) for argument in args if isinstance(argument, (Tensor, tuple, list, dict))])
            given += tuple([key_of(argument) for argument in kwargs.values() if isinstance(argument, (Tensor, tuple, list, dict))])
            self.seen.setdefault(index, SeenValues()).add((given, output))
        elif _are_known_tensors(args):
            self.of_unknown_result.add(index)
        if self.meta.inside_layer:
            return
        if is_torch_layer(module):
            provenance.mark_result(type(module).__name__, result, (args, kwargs), module, index)
        else:
            provenance.mark_returned(result, index)

    # --- what does not fit ---

    def _fitting(
        self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]
    ) -> Tuple[Tuple[Any, ...], Dict[str, Any], Optional[List[int]]]:
        """The arguments, with a stand-in of the right size or dtype in the place of those that the layer cannot take.

        Then the shape that the result has to be given, for a layer whose result has the shape of its input: the right layer would keep it.
        """
        arrived: Optional[List[int]] = None
        with _plainly():  # Nothing is computed.
            asked = expectations(module, args, kwargs)
            failed = [each for each in asked if is_unmet(each)]
            if not failed:
                provenance.mark_taken(asked)
            lone = lone_picture(module, args, kwargs) if self.wants_batch and self.refuse is not None else None
        if lone is not None and self.refuse is not None and self.most_dims <= lone.dim():
            message = "Expected %dD (unbatched) or %dD (batched) input, but got input of size: %s"
            raise self.refuse(self.finding(module, "shape", message % (lone.dim(), lone.dim() + 1, list(lone.shape)), lone))
        if self.picture is None and self.depth and self._is_told and isinstance(module, torch.nn.modules.conv._ConvNd):
            picture = args[0] if args else kwargs.get("input")
            self.picture = (module, picture) if isinstance(picture, Tensor) else None
        if failed:
            known = not (self.meta.vague and is_vague(failed[0].tensor))
            if known and not any(map(unknown_sizes.is_unknown, (failed[0].need, failed[0].tensor.shape[failed[0].dim]))):
                self._mismatch(module, failed[0])
            if failed[0].code in KEEPS_SHAPE and failed[0].position in (0, "input", "query", "src", "tgt"):
                arrived = list(failed[0].tensor.shape)
            args, kwargs = _with_asked_sizes(args, kwargs, failed)
        with _plainly():
            wrong = wrong_dtype(module, args, kwargs)
        if wrong is not None:
            position, tensor, dtype = wrong
            if not (self.meta.vague and is_vague(tensor)):
                self._wrong_dtype(module, tensor, dtype)
            args, kwargs = _replaced(args, kwargs, position, stand_in(tensor.to(dtype), list(tensor.shape)))
        return args, kwargs, arrived

    def _mismatch(self, module: Any, expected: Expectation) -> None:
        tensor, dim = expected.tensor, expected.dim
        message = "%s expected input dim %d of size %s, got input of shape %s" % (
            type(module).__name__,
            dim,
            expected.need,
            list(tensor.shape),
        )
        found = self.finding(module, expected.code, message, tensor)
        found.argument, found.got, found.need, found.dim = expected.argument, int(tensor.shape[dim]), expected.need, dim
        found.origins = provenance.trace_back(tensor, dim, self.recorder)
        found.pinned = provenance.pinned_size(tensor, dim)
        found.lacks_transpose = misplaced_dims.is_moved(tensor, dim, expected.need, self.recorder)
        self.add_mismatch(found)

    def _wrong_dtype(self, module: Any, tensor: Tensor, dtype: torch.dtype) -> None:
        code = "embedding-dtype" if isinstance(module, torch.nn.Embedding) else "dtype"
        name = type(module).__name__
        if code == "dtype":
            message = "%s got an input of dtype %s, but its weight is %s" % (name, str(tensor.dtype)[6:], str(dtype)[6:])
        else:
            message = "%s needs indices of dtype int64 or int32, got %s" % (name, str(tensor.dtype)[6:])
        self.add_mismatch(self.finding(module, code, message, tensor))

    def finding(self, module: Any, code: str, message: str, tensor: Tensor) -> Mismatch:
        """Returns the mismatch of a call of a module, at the expression that is running."""
        trail = self.frames.trail()
        inputs = [value_of(key_of(tensor))]
        span = trail[-1] if trail else None
        layer = module.__dict__.get(LAYER)
        suspects = suspects_of([tensor], self.recorder, layer)
        found = Mismatch(code, message, "RuntimeError", span, trail, self.example, layer, inputs=inputs, suspects=suspects)
        found.inside = modules_running(None, self.frames.is_user_frame)
        return found

    def add_mismatch(self, found: Mismatch) -> None:
        """Keep a mismatch, the same one once. What a library does with sizes that nobody knows is none."""
        if unknown_sizes.state.in_library and not self.aside:
            unknown_sizes.state.silent += 1
            return
        if self.refuse is not None and (self.aside or (found.code != "data-dependent" and not self.goes_past(found))):
            raise self.refuse(found)
        if len(self.mismatches) < MOST_MISMATCHES and found not in self.mismatches:
            self.mismatches.append(found)
            if found.span is not None:
                self.recorder.failed.add(found.span)
            on_mismatch, self.on_mismatch = self.on_mismatch, None
            if on_mismatch is not None:
                on_mismatch()

    def goes_past(self, found: Mismatch) -> bool:
        """True if an attempt goes past this mismatch."""
        return self.passes is not None and self.passes(found, self.spans)

    # --- the records of an example ---

    def layers(self, first: int, name: Any, only: Optional[Set[int]] = None) -> List[LayerSeen]:
        """All modules that user code made or that were called, or `only` some, as protocol records; `first` is added to their indices."""
        paths: Dict[Optional[int], str] = {}
        for model in self.models:
            for path, module in module_tree.named_modules(model):
                paths.setdefault(module.__dict__.get(LAYER), path)
        out = []
        said_early = self.replay is not None or (only is not None and not self.ended)  # What is wrong can be said without what they hold.
        holdings = None if said_early else Holdings(self.modules)
        for index, module in enumerate(self.modules):
            if only is not None and index not in only:
                continue
            calls = []
            seen = self.seen.get(index) or (None if self.replay is None else self.replay.seen.get(index))
            if seen is None and self.spans[index] is None:
                # A part of a layer of torch's own; the index stays what it is for the others.
                out.append(LayerSeen(first + index, type(module).__name__, "", "", "", None, self.example))
                continue
            if seen is not None:
                for (key, named), count in name(index, seen):
                    inputs, output = key
                    names = named or ([None] * len(inputs), None)
                    values = [value_of(part, part_name) for part, part_name in zip(inputs, names[0])]
                    calls.append(LayerCall(values, value_of(output, names[1]), count))
            own, count, size, description = self._facts(index, module, holdings)
            out.append(
                LayerSeen(
                    first + index,
                    type(module).__name__,
                    "%s.%s" % (type(module).__module__, type(module).__qualname__),
                    paths.get(index, ""),
                    description,
                    self.spans[index],
                    self.example,
                    own,
                    count,
                    size,
                    calls,
                    self.call_spans[index],
                )
            )
        return out

    def _facts(self, index: int, module: Any, holdings: Optional[Holdings]) -> Tuple[List[ParameterSeen], int, int, str]:
        """Its own parameters, the numbers and bytes that it and its children hold, and its description. Read once when all is over."""
        if holdings is None:
            return [], 0, 0, _description(module)
        facts = self._known_facts.get(index)
        if facts is None:
            facts = own_tensors(module), *holdings.of(module), _description(module)
            if self.ended:
                self._known_facts[index] = facts
        return facts


def _description(module: Any) -> str:
    """Its repr, on one line and without its children."""
    name = type(module).__name__
    try:
        extra = module.extra_repr()
    except Exception:  # User code, and torch's own for a half-built module.
        extra = ""
    extra = _LARGE_NUMBER.sub(lambda number: "?" if unknown_sizes.is_unknown(int(number.group())) else number.group(), extra)
    return "%s(%s)" % (name, " ".join(extra.split())) if len(extra) < 200 else name


def mistake_of(found: Mismatch, spans: Sequence[Optional[FileSpan]], first_layer: int = 0) -> Mistake:
    """Returns the key that tells the mistakes of a text apart: the place, the failure there, and where its layer was constructed.

    spans: where the layers of the example were constructed, of which the first has the index `first_layer`.
    """
    layer = -1 if found.layer is None else found.layer - first_layer
    made = spans[layer] if 0 <= layer < len(spans) else None
    return found.code, str(found.span), found.operation, found.argument, str(made)


def shift(found: Union[Mismatch, Remark], first_layer: int) -> None:
    """Add the index of an example's first layer to those that a mismatch or remark of it names."""
    if found.layer is not None:
        found.layer += first_layer
    for step in found.origins + list(getattr(found, "suspects", ())):
        if step.layer is not None:
            step.layer += first_layer
    if isinstance(found, Mismatch):
        found.inside = [index + first_layer for index in found.inside]


def _switch_to_evaluation(module: Any) -> None:
    """`module.eval()`, at once where no class has a `train` of its own."""
    parts = list(parts_of(module))
    if any(type(part).train is not Module.train or type(part).eval is not Module.eval for part in parts):
        module.eval()
        return
    for part in parts:
        part.__dict__["training"] = False


def stand_in(like: Tensor, shape: List[int]) -> Tensor:
    """A tensor of another shape in the place of one that does not fit."""
    replacement = made(shape, like.dtype, like.requires_grad)
    setattr(replacement, STAND_IN, VAGUE if is_vague(like) else True)
    return replacement


def _with_shape(result: Any, shape: List[int]) -> Any:
    """A layer's result with another shape; of a tuple, its first tensor."""
    if isinstance(result, Tensor):
        return stand_in(result, shape)
    return (stand_in(result[0], shape),) + tuple(result[1:]) if isinstance(result, tuple) and result else result


def _with_asked_sizes(
    args: Tuple[Any, ...], kwargs: Dict[str, Any], failed: Sequence[Expectation]
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments, with stand-ins of the sizes that a layer asks for in the place of those that it cannot take."""
    by_position: Dict[Any, List[Expectation]] = {}
    for expected in failed:
        by_position.setdefault(expected.position, []).append(expected)
    for position, unmet in by_position.items():
        shape = _without_leftover_dim(unmet[0])
        for expected in unmet:
            if -len(shape) <= expected.dim < len(shape):  # Nobody knows how many dims a vague one has.
                shape[expected.dim] = expected.need
        args, kwargs = _replaced(args, kwargs, position, stand_in(unmet[0].tensor, shape))
    return args, kwargs


def _are_known_tensors(values: Tuple[Any, ...]) -> bool:
    """True if there are tensors among some values, and nothing is unknown of their shapes."""
    tensors = [each for each in values if isinstance(each, Tensor) or is_absent(each)]
    return bool(tensors) and all(key_of(each) is not None for each in tensors)


def _without_leftover_dim(unmet: Expectation) -> List[int]:
    """The shape of an input that a layer cannot take, without a dim of size 1 behind its features: `[B, 1024, 1]` in a linear layer of 1024
    features stands for `[B, 1024]`, so that what comes after the layer says nothing of its own."""
    shape = list(unmet.tensor.shape)
    is_left = unmet.code == "linear-in-features" and len(shape) > 2 and shape[-1] == 1 and shape[-2] == unmet.need
    return shape[:-1] if is_left else shape


def _replaced(args: Tuple[Any, ...], kwargs: Dict[str, Any], position: Any, value: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    if isinstance(position, int):
        return args[:position] + (value,) + args[position + 1 :], kwargs
    return args, {**kwargs, position: value}


@contextlib.contextmanager
def watching(current: Callable[[], Calls], progress: Progress) -> Iterator[None]:
    """Route the construction and the calls of all modules through the `Calls` of the example under way; `progress` may end it at each."""
    call, initialise, train = Module.__call__, Module.__init__, Module.train

    def observed_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        progress.tick()
        return current().call(self, args, kwargs)

    def observed_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if LAYER not in self.__dict__:
            progress.look()
            current().constructed(self)
        elif uninitialised_modules.is_early(self):
            return
        if args and is_torch_layer(self) and misused_layers.is_applied_class(type(self), args):  # `nn.Sigmoid(x)`
            args, kwargs = (), {}
            initialise(self)
            current().recovery.applied_class(self)
            return
        initialise(self, *args, **kwargs)

    def observed_train(self: Any, mode: bool = True) -> Any:
        if current().frames.called_by_example():
            self.__dict__[MODE] = mode  # The example says which mode it wants.
        return train(self, mode)

    Module.__call__, Module.__init__, Module.train = observed_call, observed_init, observed_train  # type: ignore[method-assign]
    try:
        refused_constructor = refused_constructors.recovering_constructors(
            current().meta,
            lambda module, error: current().recovery.constructor(module, error),
            lambda module: current().recovery.applied_class(module),
        )
        refused_pattern = einops_recovery.recovering_patterns(
            lambda error, tensors, shape: current().recovery.pattern(error, tensors, shape)
        )
        with refused_constructor, refused_pattern:
            yield
    finally:
        Module.__call__, Module.__init__, Module.train = call, initialise, train  # type: ignore[method-assign]
