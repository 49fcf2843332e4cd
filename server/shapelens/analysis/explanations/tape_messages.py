"""Words for what is wrong with gradients and with calls of layers, and the places that have to do with it."""

from __future__ import annotations

from collections.abc import Iterable

from shapelens.protocol import Mismatch, Origin

OF_THE_TAPE = ("in-place", "second-backward", "numpy-of-gradient", "layer-input", "layer-as-function", "tensor-called")
_COMPARES = ("eq", "ne", "gt", "lt", "ge", "le")
_CUTS = {
    "no_grad": "it is computed while gradients are switched off (no_grad)",
    "frozen": "no parameter that it is computed with requires a gradient",
    "data": ".data cuts it off",
    "tensor": "torch.tensor() copies the number without its graph",
}


def tape_words(mismatch: Mismatch, named: str) -> str:
    """The words; "" for any other code. named: the first tensor of what failed, by its name and shape."""
    say = {
        "detached-loss": _detached_loss,
        "in-place": _in_place,
        "second-backward": _second_backward,
        "numpy-of-gradient": _numpy,
        "layer-input": _layer_input,
        "layer-as-function": _layer_as_function,
        "tensor-called": _tensor_called,
    }.get(mismatch.code)
    return say(mismatch, named) if say is not None else ""


def _detached_loss(mismatch: Mismatch, named: str) -> str:
    if "object has no attribute" in mismatch.message:
        return "backward() fails: this is a plain number, as item() or float() gives it, and leads back to no parameter"
    cut = mismatch.origins[0].operation.strip("_") if mismatch.origins else ""
    by = _CUTS.get(cut) or f"{'a comparison' if cut in _COMPARES else cut} cuts it off"
    return f"backward() fails: {named} depends on no parameter{f', as {by}' if cut else ''}"


def _in_place(mismatch: Mismatch, named: str) -> str:
    if len(mismatch.origins) < 2:
        return f"{named} requires a gradient and is changed in place while gradients are recorded: torch refuses that outside of no_grad()"
    saved, changed = mismatch.origins[:2]
    if changed.operation == "step":
        return f"step() changes the weight of {saved.operation} before backward() has used it, which fails then"
    return f"this changes in place what {saved.operation} has kept for its gradient: backward() fails"


def _second_backward(mismatch: Mismatch, named: str) -> str:
    saved = mismatch.origins[0].operation if mismatch.origins else "the graph"
    again = "detach() what is carried from turn to turn" if _is_of_last_turn(mismatch) else "keep the graph (retain_graph=True) or detach()"
    return f"backward() goes back through {saved} once more, but the backward() before has freed what that needs: {again}"


def _is_of_last_turn(mismatch: Mismatch) -> bool:
    """True if the `backward` that has freed the graph is the same one, in the turn of a loop before."""
    return len(mismatch.origins) > 1 and mismatch.origins[1].span == mismatch.span


def _numpy(mismatch: Mismatch, named: str) -> str:
    return f"{named} requires a gradient, so that numpy() fails: detach() it first"


def _layer_input(mismatch: Mismatch, named: str) -> str:
    gave = f", all that {mismatch.origins[0].operation} gives: take the tensor out of it" if mismatch.origins else ""
    if " takes tensors, and gets " in mismatch.message or mismatch.message.endswith(", and gets a tensor"):
        return mismatch.message
    if " takes a tensor, and gets " in mismatch.message:
        return f"{mismatch.message}{gave if mismatch.message.endswith('a tuple') else ''}"
    kind = "list" if "'list'" in mismatch.message else "tuple"
    asked = mismatch.message.partition(" has no attribute '")[2].rstrip("'") if kind in mismatch.message else ""
    return f"this is a {kind}, not a tensor{gave or (f', and has no {asked}' if asked else '')}"


def _layer_as_function(mismatch: Mismatch, named: str) -> str:
    name = mismatch.message.partition("(")[0]
    return f"{name}(…) makes a layer, and computes nothing: it has to be made first and called then, {name}()(…)"


def _tensor_called(mismatch: Mismatch, named: str) -> str:
    return f"{mismatch.argument} is a tensor here: an assignment has put a result in the place of the function that {mismatch.argument} was"


def roles(mismatch: Mismatch) -> Iterable[tuple[Origin, str]]:
    """The places that have to do with what the tape says, each with its words."""
    if mismatch.code == "in-place" and len(mismatch.origins) > 1:
        yield mismatch.origins[0], f"{mismatch.origins[0].operation} keeps it here"
        if len(mismatch.origins) > 2:
            yield mismatch.origins[2], "backward() needs it here"
    elif mismatch.code == "second-backward":
        for origin, words in zip(mismatch.origins, ("this is gone back through twice", "this backward() has freed it"), strict=False):
            yield origin, words
    elif mismatch.code == "layer-input":
        for origin in mismatch.origins:
            yield origin, f"{origin.operation} gives a tuple here"
