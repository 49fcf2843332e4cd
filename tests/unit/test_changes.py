"""What an edit changed of the code."""

from __future__ import annotations

import pytest

from shapelens.source.changes import changed_functions
from shapelens.source.module import parse

TEXT = '''\
import torch
from torch import nn

SIZES = [1, 2]


class Net(nn.Module):
    """A network."""

    depth = 3

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)

    @torch.no_grad()
    def forward(self, x):
        def inner(y):
            return y + 1

        return inner(self.fc(x))


def build():
    return Net()


async def later(): return 1
'''


def changed(old: str, new: str) -> frozenset[str] | None:
    assert TEXT.count(old) == 1
    before = parse(TEXT)
    return changed_functions(before, parse(TEXT.replace(old, new), before))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SIZES = [1, 2]", "SIZES = [1, 2]  # of it"),
        ("SIZES = [1, 2]", "SIZES = [\n    1,\n    2\n]"),
        ("SIZES = [1, 2]", "# above\n\nSIZES=[1,2]"),
        ('    """A network."""', '    """Another one."""'),
        ('    """A network."""\n', ""),
        ("    return Net()", '    "Makes one."\n    return Net()'),
        ("        super().__init__()\n", "        super().__init__()\n\n        # the layers\n"),
    ],
)
def test_layout_and_docstrings_are_no_code(old: str, new: str) -> None:
    assert changed(old, new) == frozenset()


@pytest.mark.parametrize(
    ("old", "new", "function"),
    [
        ("nn.Linear(4, 8)", "nn.Linear(4, 9)", "Net.__init__"),
        ("return y + 1", "return y + 2", "Net.forward"),
        ("    return Net()", "    net = Net()\n    return net", "build"),
        ("        super().__init__()\n", "", "Net.__init__"),
        ("            return y + 1\n", "            if y:\n                return y + 1\n            return 3\n", "Net.forward"),
    ],
)
def test_changes_inside_of_a_function(old: str, new: str, function: str) -> None:
    assert changed(old, new) == {function}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SIZES = [1, 2]", "SIZES = [1, 3]"),
        ("depth = 3", "depth = 4"),
        ("def forward(self, x)", "def forward(self, x, y=2)"),
        ("    @torch.no_grad()\n", ""),
        ("class Net(nn.Module)", "class Net(Base)"),
        ("def build():", "def build_it():"),
        ("return 1", "return 2"),  # on the line of its `def`
        ("    return Net()", "    global SIZES\n    SIZES = 3\n    return Net()"),
        ("    return Net()", "    return Net.__doc__"),
        ("    def forward(self, x):", "    def other(self): pass\n    def forward(self, x):"),
        ("    return Net()\n", "    return Net()\n\ndef more():\n    return 3\n"),
        ("SIZES = [1, 2]", "SIZES = [1, 2"),
        ('    """A network."""', '    f"""{SIZES.pop()}"""'),
        ("            return y + 1\n\n        return inner(self.fc(x))", "            return y + 1\n\n    return inner(self.fc(x))"),
    ],
)
def test_everything_else_counts_as_more(old: str, new: str) -> None:
    assert changed(old, new) is None


def test_two_functions_at_once() -> None:
    before = parse(TEXT)
    after = parse(TEXT.replace("nn.Linear(4, 8)", "nn.Linear(4, 9)").replace("y + 1", "y + 2").replace("    return Net()", "    return 1"))
    assert changed_functions(before, after) is None  # The header of `forward` lies between them: that may be more.
