"""Statements of a program that failed in Python, and are wrong whatever data they get: they are said, while other failures may come from
what stands in for the world. So is what fails in an example of a class and would in any other."""

from __future__ import annotations

import linecache
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

import torch

from ...protocol import ExampleRun, FileSpan, Mismatch
from ..calls.exception_handlers import was_awaited
from ..calls.mismatches import meant_name, mismatch_of, one_line
from ..calls.misused_layers import backs_from_number, cannot_be_collated, lacks_forward_function, made_at, refuses_tensor
from ..calls.module_calls import Mistake, mistake_of
from ..calls.sure_mistakes import code_of_sure, is_sure, may_be_of_another_class, not_divided, tuple_of_layer, unpacks_known_tensor
from ..evaluation.evaluation import Evaluation
from ..evaluation.example_runner import ExampleRunner
from ..sandbox.exceptions import raised_at
from .plain_values import is_of_plain_values
from .program import Program
from .results import nothing_returned, unpacked_otherwise

Spans = Sequence[Optional[FileSpan]]  # where layers were constructed


def tell_certain(
    runner: ExampleRunner,
    example: ExampleRun,
    certain: Mapping[Mistake, Mismatch],
    is_told: Callable[[Mismatch, Spans], bool] = lambda found, spans: True,
) -> None:
    """Evaluate an example past its mismatches, and add it to the trace with the certain ones that are to be told, if there are any."""
    trace, calls = runner.trace, runner.evaluation.watch_anew()
    number, first = len(trace.mismatches), len(trace.layers)
    found = runner.evaluate(example)
    runner.evaluation.watch_anew()
    told = []
    for each in trace.mismatches[number:]:
        has_ended = not any(each is other for other in calls.mismatches)  # The example; it counts the layers of the trace.
        spans = [*[None] * first, *calls.spans] if has_ended else calls.spans
        told += [each] if mistake_of(each, spans) in certain and is_told(each, spans) else []
    if found is None or not told:
        runner.take_back()
    else:
        trace.mismatches[number:] = told
        runner.record(found)
        runner.name_dims([found])


def tell_sure(runner: ExampleRunner, example: ExampleRun) -> None:
    """Evaluate an example with guessed arguments past its mismatches, and add to the trace those that no argument avoids: a call that lacks
    an argument, a key that nothing sets. They belong to no example, as what that was given has no part in them."""
    trace, calls = runner.trace, runner.evaluation.watch_anew()
    number = len(trace.mismatches)
    evaluated = runner.evaluate(example)
    runner.evaluation.watch_anew()
    found = [each for each in (*calls.mismatches, *trace.mismatches[number:]) if each.sure]
    if evaluated is not None:
        runner.take_back()
    tell_of_no_example(runner, found)


def tell_of_no_example(runner: ExampleRunner, found: Sequence[Mismatch]) -> None:
    """Add mistakes to the trace, each place once, that belong to no example."""
    known = {each.span for each in runner.trace.mismatches}
    for each in found:
        if each.span is not None and each.span not in known:
            known.add(each.span)
            each.example, each.layer, each.inputs, each.suspects, each.inside = -1, None, [], [], []
            runner.trace.mismatches.append(each)


def sure_whatever_is_given(program: Program, evaluation: Evaluation, since: int) -> List[Mismatch]:
    """Returns the sure mistakes among statements that failed in functions with guessed arguments.

    since: how many statements had failed before these functions were called.
    """
    return _mistakes(program, evaluation, -1, program.failures[since:], _code_of_sure)


def sure_failures(program: Program, evaluation: Evaluation, example: int) -> List[Mismatch]:
    """Returns the sure mistakes among statements that failed, each place once."""
    return _mistakes(program, evaluation, example, program.failures, _code_of)


def _mistakes(
    program: Program,
    evaluation: Evaluation,
    example: int,
    failures: Sequence[Tuple[int, BaseException]],
    code_of: Callable[[BaseException], str],
) -> List[Mismatch]:
    """Returns the mistakes among failures of statements. code_of: the code of one, "" where an exception may be none."""
    found: List[Mismatch] = []
    for _, error in failures:
        name = program.tensors_called.get(id(error), "") if example >= 0 else ""
        said = unpacked_otherwise(error, evaluation.recorder) or nothing_returned(error) if example >= 0 else ""
        code = "tensor-called" if name else code_of(error) or ("exception" if said else "")
        if code:
            mismatch = mismatch_of(error, example, evaluation.frames, evaluation.meta, evaluation.calls)
            mismatch.code, mismatch.message, mismatch.argument, mismatch.sure = code, one_line(error), name, True
            if code == "exception":  # No tensor's shape is at fault.
                mismatch.suspects, mismatch.meant = [], meant_name(error)
            mismatch.message = said or mismatch.message
            held, sizes = cannot_be_collated(error), not_divided(error)
            if held:
                mismatch.message = "default_collate takes a tensor, and gets %s from the data set" % held
            elif refuses_tensor(error):
                mismatch.message = "ToTensor takes a picture or an array, and gets a tensor"
            elif sizes is not None:
                mismatch.message = "%s: %d is not divisible by %d" % (one_line(error) or mismatch.exception, *sizes)
                mismatch.got, mismatch.need = sizes
            elif code == "layer-input":
                mismatch.origins = made_at(tuple_of_layer(error), evaluation.calls.recorder)
            if not mismatch.trail:  # What a loop goes through failed.
                mismatch.span = evaluation.frames.line(*program.failed_at[id(error)])
                mismatch.trail = [mismatch.span]
            if all(each.span != mismatch.span for each in found):
                found.append(mismatch)
    return found


def _code_of(error: BaseException) -> str:
    """The code of a mistake; "" where it is none for sure."""
    if backs_from_number(error):
        return "detached-loss"
    if cannot_be_collated(error) or refuses_tensor(error):
        return "layer-input"
    if lacks_forward_function(error):
        return "call-arguments"
    if unpacks_known_tensor(error):
        return "shape"
    if not_divided(error) is not None and not was_awaited(error):
        return "layer-arguments"
    if isinstance(error, ImportError):
        return ""  # It is told where the definitions are loaded.
    if _is_half_typed(error) or _is_told_of_its_layer(error):
        return ""
    if is_of_plain_values(error):
        return "exception"
    return code_of_sure(error) if is_sure(error) else ""


def _code_of_sure(error: BaseException) -> str:
    """The code of a mistake that no argument avoids; "" where an exception may be none."""
    if isinstance(error, ImportError) or _is_half_typed(error) or was_awaited(error) or may_be_of_another_class(error):
        return ""
    return code_of_sure(error) if is_sure(error) else ""


def _is_half_typed(error: BaseException) -> bool:
    """True if a missing name is all that stands in its line: somebody is about to write on."""
    place = raised_at(error) if isinstance(error, NameError) else None
    return place is not None and linecache.getline(place.tb_frame.f_code.co_filename, place.tb_lineno).strip() == getattr(
        error, "name", None
    )


def _is_told_of_its_layer(error: BaseException) -> bool:
    """True if a loss, `loss = nn.CrossEntropyLoss(out, y)`, is asked for what a tensor has: it is told where it is made."""
    owner = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    return isinstance(owner, torch.nn.modules.loss._Loss) and hasattr(torch.Tensor, str(getattr(error, "name", "")))
