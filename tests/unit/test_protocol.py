"""Messages go through a frame unchanged, and what is no message is refused in words."""

from __future__ import annotations

import dataclasses
import io
import json
import typing

import pytest

from shapelens import protocol
from shapelens.dependences import CausalClaim, DeepReport, Dependence
from shapelens.profiles import Allocation, MemoryProfile, ModelProfile, ProfiledModule, Step
from shapelens.protocol import (
    HEADER,
    Deepened,
    ExampleRequest,
    ExampleRun,
    FileSpan,
    Finished,
    Hello,
    LayerCall,
    LayerSeen,
    Mismatch,
    Note,
    Observation,
    Origin,
    Output,
    ParameterSeen,
    Run,
    Trace,
    Traced,
    Value,
)

SPAN = FileSpan("/models/größe.py", 3, 4, 3, 17)
TENSOR = Value("tensor", "Tensor", [2, None, 0], ["B", "?", "0"], "float32", "meta", [6, 3, 1], requires_grad=True)
PAIR = Value(
    "sequence", "tuple", items=[TENSOR, Value("mapping", "dict", keys=["h", "c"], items=[TENSOR, Value("scalar", "int", text="3")])]
)

MESSAGES = [
    Run(
        7,
        "/m.py",
        "x = '\U0001f600'\r\n\tpass",
        "/",
        [ExampleRequest("Net", "Net()(f32[B:2])")],
        {"/other.py": ""},
        0.5,
        1 << 40,
        named=False,
    ),
    protocol.Cancel(7),
    protocol.Preload(["einops", "timm"]),
    protocol.Stop(),
    Hello(1, "3.9.18", "/usr/bin/python", 42, fork=True, torch=None, error="ImportError: libtorch.so"),
    protocol.Ready(1.25),
    protocol.Loading(7),
    protocol.Executing(3, 14),
    protocol.Evaluating(3, "Net"),
    protocol.Evaluating(3, "Net", 2),
    protocol.Replace(),
    protocol.Profiled(
        7,
        ModelProfile(
            {"B": 2},
            [ProfiledModule("", "Net", "m.Net", "Net()", SPAN, 6, 6, 24, 0)],
            [Step("module", "", 0, None, 1, SPAN, TENSOR, [], 12, 24, 0)],
            [],
            training=MemoryProfile([Allocation(512, "activation", 0, 1, 2)], 1, 2, [[2, 3]], [24], [24]),
            uncounted=["sizes that depend on data"],
        ),
    ),
    Output(7, "printed \x00 \ud83d"),
    Traced(
        7,
        "named",
        Trace(
            "/m.py",
            [ExampleRun("Net", "Net()(x)", {"B": 2}, "it failed", "exception", SPAN, 62006, 248024, 0.25)],
            [Observation(SPAN, "assign", "x", "Net.forward", 0, [TENSOR, PAIR], 12, SPAN)],
            [
                LayerSeen(
                    0,
                    "Linear",
                    "torch.nn.Linear",
                    "fc1",
                    "Linear(576, 120)",
                    SPAN,
                    0,
                    [ParameterSeen("weight", [120, 576], "float32", 276480, True)],
                    69240,
                    276960,
                    [LayerCall([TENSOR], PAIR, 3)],
                    SPAN,
                )
            ],
            [
                Mismatch(
                    "linear-in-features",
                    "mat1 and mat2",
                    "RuntimeError",
                    SPAN,
                    [SPAN, SPAN],
                    0,
                    0,
                    "in_features",
                    400,
                    576,
                    1,
                    [TENSOR],
                    [Origin("flatten", None, [2, 16, 5, 5], [2, 400])],
                    True,
                )
            ],
            [Note("missing-import", "no module named x", None)],
        ),
    ),
    Deepened(
        7,
        DeepReport(
            [Dependence("future-leak", "GPT", "ids", "logits", 5, 8, [0, 4], True, [SPAN], CausalClaim("mask", "GPT.mask", SPAN), SPAN)],
            "",
            12,
            0.5,
        ),
    ),
    Finished(7, "deadline", "10 s", 10.0),
]


def body(message: object) -> bytes:
    frame = protocol.encode(message)
    (length,) = HEADER.unpack(frame[: HEADER.size])
    assert length == len(frame) - HEADER.size
    return frame[HEADER.size :]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_round_trip(message: object) -> None:
    assert protocol.decode(body(message)) == message


def test_every_message_is_tried() -> None:
    # The processes of a worker add their own.
    public = {name for name, cls in protocol.MESSAGES.items() if not cls.__module__.startswith("shapelens.worker")}
    assert {type(message).__name__ for message in MESSAGES} == public


def test_fields_that_equal_their_default_are_left_out_and_come_back() -> None:
    fields = json.loads(body(Finished(1, "ok")))
    assert fields == {"type": "Finished", "run_id": 1, "outcome": "ok"}
    assert protocol.decode(body(Traced(1, "run", Trace("/m.py")))).trace.mismatches == []


def test_defaults_are_not_shared_between_messages() -> None:
    first, second = (protocol.decode(body(Traced(1, "run", Trace("/m.py")))) for _ in range(2))
    first.trace.notes.append(Note("missing-import", "", None))
    assert second.trace.notes == []


def test_fields_of_a_newer_version_are_ignored() -> None:
    assert protocol.decode(b'{"type": "Ready", "seconds": 1.0, "colour": "red"}') == protocol.Ready(1.0)


def test_frames_follow_one_another() -> None:
    stream = io.BytesIO(b"".join(protocol.encode(message) for message in MESSAGES))
    read = []
    while header := stream.read(HEADER.size):
        read.append(protocol.decode(stream.read(HEADER.unpack(header)[0])))
    assert read == MESSAGES


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"hello from a print",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'"Ready"',
        b"{}",
        b'{"type": "Rocket"}',
        b'{"type": ["Ready"]}',
        b'{"type": "Ready"}',
        b'{"type": "Traced", "run_id": 1, "stage": "run", "trace": null}',
        b'{"type": "Traced", "run_id": 1, "stage": "run", "trace": {"file": "/m.py", "observations": [3]}}',
        b'{"type": "Run", "run_id": 1}',
    ],
)
def test_junk_is_refused_in_words(junk: bytes) -> None:
    with pytest.raises(protocol.ProtocolError, match="not a message"):
        protocol.decode(junk)


def test_annotations_are_of_python_3_9() -> None:
    """`X | None` and the like would be evaluated by get_type_hints in the worker, which may be Python 3.9."""
    for cls in vars(protocol).values():
        if dataclasses.is_dataclass(cls):
            assert not [item.name for item in dataclasses.fields(cls) if "|" in str(item.type)], cls
            assert set(typing.get_type_hints(cls)) == {item.name for item in dataclasses.fields(cls)}
