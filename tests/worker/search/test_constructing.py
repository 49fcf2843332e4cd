"""Ways to build a class: what is required gets a value that its annotation, its uses and its name ask for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shapelens.worker.search.candidates.abstract_classes import is_abstract
from shapelens.worker.search.candidates.build_plans import build_plans
from worker.search.documents import Document

CASES = {
    "nothing required": ("class Net(nn.Module):\n    def __init__(self, dim=8): super().__init__()\n", "Net()"),
    "sizes by name": (
        """
class Net(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, numLayers, dropout, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(nn.MultiheadAttention(d_model, nhead, dropout) for _ in range(numLayers))
        self.pos = nn.Parameter(torch.zeros(max_len, d_model))
""",
        "Net(vocab_size=1000, d_model=64, nhead=4, numLayers=2, dropout=0.1, max_len=128)",
    ),
    "ratios that are shares, and those that are factors": (
        """
class Net(nn.Module):
    def __init__(self, mask_ratio, mlp_ratio, pooling_ratio):
        super().__init__()
        self.ratios = mask_ratio, mlp_ratio, pooling_ratio
""",
        "Net(mask_ratio=0.5, mlp_ratio=4, pooling_ratio=0.5)",
    ),
    "lists by what is done with them": (
        """
class Net(nn.Module):
    def __init__(self, channels, depths):
        super().__init__()
        self.stages = nn.ModuleList()
        previous = 3
        for width, depth in zip(channels, depths):
            self.stages.append(nn.Sequential(*[nn.Conv2d(previous if i == 0 else width, width, 3) for i in range(depth)]))
            previous = width
        self.head = nn.Linear(channels[3], 10)
""",
        "Net(channels=[32, 64, 128, 256], depths=[2, 2, 2, 2])",
    ),
    "a class of the file for what is called like one": (
        """
class BasicBlock(nn.Module):
    expansion = 1
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inplanes, planes, 3, stride)
    def forward(self, x): return self.conv(x)
class Net(nn.Module):
    def __init__(self, block, layers, norm_layer):
        super().__init__()
        self.norm = norm_layer(16)
        self.layer1 = self._make(block, 16, layers[0])
        self.layer2 = self._make(block, 32, layers[1])
        self.fc = nn.Linear(32 * block.expansion, 10)
    def _make(self, block, planes, count):
        return nn.Sequential(*[block(planes, planes) for _ in range(count)])
""",
        "Net(block=BasicBlock, layers=[2, 2], norm_layer=nn.BatchNorm2d)",
    ),
    "one of the strings that it is compared with": (
        """
class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        if kind == "small": self.fc = nn.Linear(4, 4)
        elif kind in ("large", "huge"): self.fc = nn.Linear(8, 8)
        else: raise ValueError(kind)
""",
        "Net(kind='small')",
    ),
    "a module of the file": (
        """
class Encoder(nn.Module):
    def __init__(self, latent_dim: int):
        super().__init__()
        self.fc = nn.Linear(784, latent_dim)
    def forward(self, x): return self.fc(x)
class Net(nn.Module):
    def __init__(self, encoder: nn.Module, latent_dim: int):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(latent_dim, 10)
    def forward(self, x): return self.head(self.encoder(x))
""",
        "Net(encoder=Encoder(latent_dim=20), latent_dim=20)",
    ),
    "a config class": (
        """
from dataclasses import dataclass
@dataclass
class GPTConfig:
    vocab_size: int
    n_embd: int = 32
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.n_embd)
""",
        "Net(config=GPTConfig(vocab_size=1000))",
    ),
    "an object with the attributes that are read, also by a part and in forward": (
        """
class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.hidden_size, config.hidden_size)
        self.act = getattr(config, "act", "relu")
class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.blocks = nn.ModuleList([Block(cfg.model) for _ in range(cfg.model.num_layers)])
    def forward(self, x):
        return x * self.cfg.scale
""",
        "Net(cfg=SimpleNamespace(model=SimpleNamespace(hidden_size=128, num_layers=2), scale=2))",
    ),
    "a dict": (
        """
class Net(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.conv = nn.Conv2d(params["in_channels"], params["filters"], params.get("kernel", 3))
""",
        "Net(params={'in_channels': 3, 'filters': 32})",
    ),
    "an object of the file itself": (
        """
class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.fc = nn.Linear(args["width"], 4)
def get_args(seed=0):
    return {"width": 12}
""",
        "Net(args=get_args())",
    ),
    "what the command line has by default": (
        """
import argparse
class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.fc = nn.Linear(args.n_widgets, args.hidden)
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-widgets", "-n", type=int, default=44)
    run(parser.parse_args())
""",
        "Net(args=SimpleNamespace(n_widgets=44, hidden=128))",
    ),
    "a dict that is unpacked": (
        """
class Part(nn.Module):
    def __init__(self, dim, *, depth: int, mode="x", heads): super().__init__()
class Net(nn.Module):
    def __init__(self, part, dim):
        super().__init__()
        self.part = Part(dim, **part)
""",
        "Net(part={'depth': 2, 'heads': 4}, dim=64)",
    ),
    "a tuple where the code asks for one": (
        """
def spread(value, count):
    value = value if isinstance(value, tuple) else (value,)
    return (*value, *((value[-1],) * max(count - len(value), 0)))
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depths = spread(depth, 3)
        assert sum(self.depths)
""",
        "Net(depth=(2, 2, 2))",
    ),
    "the channels of a picture, a mask, and what makes a network": (
        """
class AffineTransform(nn.Module):
    def __init__(self, mask, context): super().__init__()
class Net(nn.Module):
    def __init__(self, n_channels, mask, transform_net_fn):
        super().__init__()
        mask = torch.as_tensor(mask)
        self.width = len(mask)
        self.net = transform_net_fn(self.width, 2 * self.width)
        self.conv = nn.Conv2d(n_channels, 64, 3)
""",
        "Net(n_channels=3, mask=[0, 1, 0, 1], transform_net_fn=nn.Linear)",
    ),
    "what a base gets by *args": (
        """
class Conv(nn.Conv1d):
    def __init__(self, *args, **kwargs): super().__init__(*args, **kwargs)
class Net(nn.Module):
    def __init__(self, residual, gate, *args, **kwargs):
        super().__init__()
        self.conv = Conv(residual, gate, 3, *args, **kwargs)
""",
        "Net(residual=3, gate=32)",
    ),
    "a norm of features in a file without pictures": (
        """
class Block(nn.Module):
    def __init__(self, norm_layer):
        super().__init__()
        self.norm = norm_layer(64)
class Net(nn.Module):
    def __init__(self, block_norm):
        super().__init__()
        self.head, self.block = nn.Linear(64, 10), Block(block_norm)
""",
        "Net(block_norm=nn.LayerNorm)",
    ),
    "objects that a part tells apart by their type": (
        """
class Sparse:
    def __init__(self, name, vocab_size, dim=4): self.name, self.vocab_size, self.dim = name, vocab_size, dim
class Dense:
    def __init__(self, name): self.name = name
class Joined:
    def __init__(self, column, parts): self.column = column
class Embeddings(nn.Module):
    def forward(self, x, columns):
        for column in columns:
            if isinstance(column, (Sparse, Joined)): return column.name
class Net(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.columns = columns
        self.sparse = list(filter(lambda column: isinstance(column, Sparse), columns))
        self.dense = [column.name for column in columns if isinstance(column, Dense)]
        self.embeddings = Embeddings()
    def forward(self, x): return self.embeddings(x, self.columns)
""",
        "Net(columns=[Sparse(name='name', vocab_size=1000), Dense(name='name_1'), Sparse(name='name_2', vocab_size=1000)])",
    ),
    "no weights to be fetched": (
        """
class Net(nn.Module):
    def __init__(self, dim=4, pretrained=True):
        super().__init__()
        assert not pretrained
""",
        "Net(pretrained=False)",
    ),
    "a rank": (
        """
class Net(nn.Module):
    def __init__(self, dimensions, kind):
        super().__init__()
        self.conv = getattr(nn, "Conv{}d".format(dimensions))(3, 4, 3)
        self.norm = getattr(nn, f"BatchNorm{dimensions}d")(4)
        self.kind = {"first": 1, "second": 2}[kind]
""",
        "Net(dimensions=2, kind='first')",
    ),
    "what a base requires of **kwargs": (
        """
class Base(nn.Module):
    def __init__(self, hidden_dim, num_classes):
        super().__init__()
        self.fc = nn.Linear(hidden_dim, num_classes)
class Net(Base):
    def __init__(self, extra=1, **kwargs):
        super().__init__(num_classes=5, **kwargs)
""",
        "Net(hidden_dim=128)",
    ),
    "annotations": (
        """
import enum
from typing import Callable, List, Literal, Optional, Tuple, Type, Union
class Mode(enum.Enum):
    FAST = 1
    SLOW = 2
class Net(nn.Module):
    def __init__(self, a: Mode, b: Literal["x", "y"], c: Optional[List[int]], d: Tuple[int, int], e: Type[nn.Module], f: "bool",
                 g: Union[int, Tuple[int, int]], h: Optional[float]):
        super().__init__()
""",
        "Net(a=Mode.FAST, b='x', c=[32, 64, 128], d=(32, 64), e=nn.Identity, f=False, g=1, h=4.0)",
    ),
    "the numbers that the file gives elsewhere": (
        """
class Net(nn.Module):
    def __init__(self, in_channels, out_channels, mode):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding_mode=mode)
class Outer(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = Net(n, 24, "reflect")
""",
        "Net(in_channels=32, out_channels=24, mode='reflect')",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_way_builds(document: Callable[[str], Document], name: str) -> None:
    text, expected = CASES[name]
    made = document(text)
    first = made.ways()[0]
    assert first == expected
    made.build(first)


def test_guessed_numbers_can_be_changed(document: Callable[[str], Document]) -> None:
    made = document("class Net(nn.Module):\n    def __init__(self, dim, heads): super().__init__()\n")
    way = next(iter(build_plans(made.names["Net"], made.names, made.tree)))
    assert way.template == "Net(dim=⟨dim⟩, heads=⟨heads⟩)"
    assert way.sizes == {"dim": 64, "heads": 4}


def test_bases_and_mixins_are_abstract(document: Callable[[str], Document]) -> None:
    made = document("""
import abc
class NoForward(nn.Module):
    def helper(self): return 1
class Left(nn.Module):
    def forward(self, x):
        "To be defined."
        raise NotImplementedError
class Template(nn.Module):
    def forward(self, x): return self.encode(x)
    def encode(self, x): raise NotImplementedError("by others")
class Marked(nn.Module, abc.ABC):
    @abc.abstractmethod
    def encode(self, x): ...
    def forward(self, x): return x
class Whole(Template):
    def encode(self, x): return x
class Stack(nn.Sequential):
    pass
""")
    judged = {name: is_abstract(made.names[name], made.tree) for name in ("NoForward", "Left", "Template", "Marked", "Whole", "Stack")}
    assert judged == {"NoForward": True, "Left": True, "Template": True, "Marked": True, "Whole": False, "Stack": False}
