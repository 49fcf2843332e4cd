"""What to try after a construction failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shapelens.protocol import Mismatch
from shapelens.worker.calls.refused_constructors import recovering_constructors
from shapelens.worker.meta.mode import MetaMode
from shapelens.worker.sandbox.limits import TooLong
from shapelens.worker.search.adjusting.adjustments import adjusted
from shapelens.worker.search.candidates.build_plans import build_plans
from shapelens.worker.search.evidence import BuildPlan
from shapelens.worker.search.trials.trial import RefusedInput
from worker.search.documents import Document

MOST = 12


def built(made: Document, name: str = "Net") -> tuple[str, int]:
    """The first construction that builds, and how many were tried."""
    waiting: list[BuildPlan] = list(build_plans(made.names[name], made.names, made.tree))[:1]
    for tried in range(1, MOST + 1):
        if not waiting:
            break
        way = waiting.pop(0)
        try:
            made.build(way.text())
        except Exception as error:
            waiting = adjusted(way, error, made.names[name], made.names, made.tree) + waiting
        else:
            return way.text(), tried
    raise AssertionError("not built")


CASES = {
    "sizes of a config that stand at -1": (
        """
from dataclasses import dataclass
@dataclass
class NetConfig:
    embedding_dim: int = -1
    vocab_size: int = -1
    bias: bool = True
class Net(nn.Module):
    def __init__(self, config: NetConfig):
        super().__init__()
        self.head = torch.empty(config.embedding_dim, config.vocab_size)
""",
        "Net(config=NetConfig(embedding_dim=64, vocab_size=1000))",
    ),
    "a branch that is broken": (
        """
PRESETS = {"small": 2, "large": 4}
class Net(nn.Module):
    def __init__(self, preset=None):
        super().__init__()
        if preset is None:
            assert not resize
        else:
            self.depth = PRESETS[preset]
""",
        "Net(preset='small')",
    ),
    "widths that have to be the same": (
        """
class Net(nn.Module):
    def __init__(self, hidden_channels, widths=None, gated=True):
        super().__init__()
        assert widths is not None
        for width in widths:
            self.skip(hidden_channels, width, gated)
    def skip(self, before, after, gated):
        if before != after and gated:
            raise ValueError("they must be the same")
""",
        "Net(hidden_channels=32, widths=[32, 32, 32])",
    ),
    "a part whose class is abstract is left out": (
        """
class Encoder(nn.Module):
    def forward(self, x):
        raise NotImplementedError
class Net(nn.Module):
    def __init__(self, size=None, encoder: Encoder = None):
        super().__init__()
        if encoder is None:
            if size is None:
                raise ValueError("size has to be given")
""",
        "Net(size=32)",
    ),
    "a condition on two sizes": (
        """
class Net(nn.Module):
    def __init__(self, width, parts):
        super().__init__()
        self.parts = parts
        self.check(width)
    def check(self, total):
        assert total % 3 == 0 and total > self.parts
""",
        "Net(width=30, parts=24)",
    ),
    "one that raises": (
        """
KINDS = ("conv", "pool")
class Net(nn.Module):
    def __init__(self, variety="best"):
        super().__init__()
        if variety not in KINDS:
            raise ValueError(f"unknown variety {variety}")
""",
        "Net(variety='conv')",
    ),
    "the key of a table": (
        """
class Net(nn.Module):
    def __init__(self, variety="best"):
        super().__init__()
        table = dict(conv=nn.Conv2d, pool=nn.MaxPool2d)
        self.layer = table[variety]
""",
        "Net(variety='conv')",
    ),
    "what the message says is possible": (
        """
def check(name):
    raise_if(name not in ["small", "large"], f"variety has to be one of 'small' and 'large', not {name!r}")
def raise_if(wrong, message):
    if wrong: raise ValueError(message)
class Net(nn.Module):
    def __init__(self, variety="best"):
        super().__init__()
        check(variety)
""",
        "Net(variety='small')",
    ),
    "None that needs a value": (
        """
class Net(nn.Module):
    def __init__(self, hidden_dim=None, depth=2):
        super().__init__()
        self.fc = nn.Linear(4, hidden_dim * 2)
""",
        "Net(hidden_dim=128)",
    ),
    "a list instead of a number": (
        """
class Net(nn.Module):
    def __init__(self, amount):
        super().__init__()
        self.total = self.add(amount)
    def add(self, amount):
        return __builtins__["sum"](amount) if isinstance(__builtins__, dict) else __builtins__.sum(amount)
""",
        "Net(amount=[24, 24, 24])",
    ),
    "as many as are unpacked": (
        """
def halves(pair):
    first, second = reversed(list(reversed(pair)))
    return first + second
class Net(nn.Module):
    def __init__(self, sizes=(1, 2, 3)):
        super().__init__()
        self.total = halves(sizes)
""",
        "Net(sizes=(1, 2))",
    ),
    "an instance of what the code wants": (
        """
class Core(nn.Module):
    def __init__(self, dim): super().__init__()
    def forward(self, x): return x
class Net(nn.Module):
    def __init__(self, net):
        super().__init__()
        assert isinstance(net, Core), "only that will do"
""",
        "Net(net=Core(dim=64))",
    ),
    "an attribute that the config class does not have": (
        """
class NetConfig:
    def __init__(self, width=12): self.width = width
class Net(nn.Module):
    def __init__(self, config: NetConfig):
        super().__init__()
        self.fc = nn.Linear(config.width, config.num_classes)
""",
        "Net(config=SimpleNamespace(width=12, num_classes=10))",
    ),
    "a number by which torch divides": (
        """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width // 4, 6, 1, groups=3)
""",
        "Net(width=96)",
    ),
    "a default that stands for a size to be given": (
        """
class Net(nn.Module):
    def __init__(self, size=0, head_count=0):
        super().__init__()
        assert size % head_count == 0
        self.fc = nn.Linear(size, 4)
""",
        "Net(size=32, head_count=4)",
    ),
    "all that a part requires": (
        """
class Part(nn.Module):
    def __init__(self, *, depth, heads): super().__init__()
class Net(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.part = Part(**settings)
""",
        "Net(depth=2, heads=4)",
    ),
    "all that two parts require, each under its prefix": (
        """
def of(prefix, settings): return {key[len(prefix):]: value for key, value in settings.items() if key.startswith(prefix)}
class Part(nn.Module):
    def __init__(self, *, depth, heads): super().__init__()
class Net(nn.Module):
    def __init__(self, dim, **settings):
        super().__init__()
        self.encoder, self.decoder = Part(**of("enc_", settings)), Part(**of("dec_", settings))
""",
        "Net(dim=64, enc_depth=2, enc_heads=4, dec_depth=2, dec_heads=4)",
    ),
    "a mode that the message names": (
        """
def joined(width, mode):
    if mode.lower() == "soft-gate":
        return Gate(width, 2 * width)
    elif mode.lower() == "linear":
        return nn.Linear(width, 2 * width)
class Gate(nn.Module):
    def __init__(self, ins, outs):
        super().__init__()
        if ins != outs:
            raise ValueError(f"{ins} and {outs} must be the same for soft-gate")
class Block(nn.Module):
    def __init__(self, width, mode="soft-gate"):
        super().__init__()
        self.skip = joined(width, mode=mode)
class Net(nn.Module):
    def __init__(self, width, mode="soft-gate", block=Block):
        super().__init__()
        self.block = block(width, mode=mode)
""",
        "Net(width=32, mode='linear')",
    ),
    "the one of several lists that are walked side by side": (
        """
class Part(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        for _ in range(depth): pass
class Net(nn.Module):
    def __init__(self, dims=(8, 16), depths=([2], [2])):
        super().__init__()
        for dim, depth in zip(dims, depths):
            self.part = Part(dim, depth)
""",
        "Net(depths=[2, 2, 2])",
    ),
    "a bound on what a part gets in a list": (
        """
class Filters(nn.Module):
    def __init__(self, cutoffs):
        super().__init__()
        if max(cutoffs) > 0.5:
            raise ValueError("A cutoff above 0.5 does not make sense.")
class Net(nn.Module):
    def __init__(self, sharpness: float):
        super().__init__()
        self.filters = Filters([sharpness])
""",
        "Net(sharpness=0.1)",
    ),
    "a list of objects with the attributes that are read": (
        """
class Net(nn.Module):
    def __init__(self, columns):
        super().__init__()
        for column in columns:
            self.names = [getattr(column, attribute) for attribute in ("name", "group_name")]
""",
        "Net(columns=[SimpleNamespace(name='name', group_name='name'), SimpleNamespace(name='name', group_name='name'), "
        "SimpleNamespace(name='name', group_name='name')])",
    ),
    "an attribute that only running it shows": (
        """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        for name in ("hidden_size", "num_layers"):
            setattr(self, name, getattr(config, name))
""",
        "Net(config=SimpleNamespace(hidden_size=128, num_layers=2))",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_leads_to_what_builds(document: Callable[[str], Document], name: str) -> None:
    text, expected = CASES[name]
    assert built(document(text))[0] == expected


def test_a_layer_that_ends_an_attempt_says_by_what_it_divides(document: Callable[[str], Document]) -> None:
    made = document(CASES["a number by which torch divides"][0])
    way = next(iter(build_plans(made.names["Net"], made.names, made.tree)))

    def refused(module: Any, error: Exception) -> None:
        raise RefusedInput(Mismatch("layer-arguments", str(error), type(error).__name__, None, [], 0))

    with recovering_constructors(MetaMode(), refused, lambda given: None), pytest.raises(RefusedInput) as ended:
        made.build(way.text())
    others = adjusted(way, ended.value, made.names["Net"], made.names, made.tree)
    assert others[0].text() == "Net(width=96)"


def test_what_takes_too_long_gets_fewer_layers(document: Callable[[str], Document]) -> None:
    made = document("""
class Config:
    def __init__(self, hidden_size=64, num_hidden_layers=32, num_decoder_layers=16, layer_norm_eps=1):
        self.size = hidden_size
class Net(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
""")
    way = BuildPlan("Net(config=Config(hidden_size=⟨size⟩))", {"size": 32})
    [other] = adjusted(way, TooLong(), made.names["Net"], made.names, made.tree)
    assert other.text() == "Net(config=Config(hidden_size=32, num_hidden_layers=2, num_decoder_layers=2))"
    assert adjusted(other, TooLong(), made.names["Net"], made.names, made.tree) == []


def test_what_takes_too_long_is_built_for_smaller_pictures(document: Callable[[str], Document]) -> None:
    made = document("""
class Net(nn.Module):
    def __init__(self, width, img_size=224):
        super().__init__()
""")
    others = adjusted(BuildPlan("Net(width=8)"), TooLong(), made.names["Net"], made.names, made.tree)
    assert [other.text() for other in others] == ["Net(width=8, img_size=64)", "Net(width=8, img_size=56)"]
    assert adjusted(others[0], TooLong(), made.names["Net"], made.names, made.tree) == []
