"""How scripts build and call their models, read from their text alone: text in, candidates out."""

import ast
from textwrap import dedent

import pytest

from shapelens.worker.search.usages.project_usages import usages

MODEL = """
import numpy as np
import torch
import torch.nn as nn

class Config:
    def __init__(self, dim=64, depth=2):
        self.dim, self.depth = dim, depth

class Net(nn.Module):
    def __init__(self, dim=64, depth=2): ...
"""


def found(text: str, target: str = "Net") -> list[tuple[str, str | None, str]]:
    """What the text after the model's definition says: constructor, arguments and place."""
    tree = ast.parse(MODEL + dedent(text))
    return [(one.constructor, one.arguments, one.where) for one in usages(tree, ["Net"]) if one.target == target]


def first(text: str) -> str:
    """The strongest, as an expression."""
    constructor, arguments, _ = found(text)[0]
    return f"{constructor}({arguments})" if arguments is not None else constructor


def test_names_of_a_function_are_put_in():
    text = """
    def test_forward():
        cfg = Config()
        net = Net(cfg.dim).to("cuda").eval()
        x = torch.randn(4, 3, 224, 224)
        with torch.no_grad():
            y = net(x.cuda(), mask=torch.ones(4, 10).bool())
    """
    assert found(text) == [("Net(Config().dim)", "f32[B:4, 3, 224, 224], mask=bool[B, 10]", "test_forward()")]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("if __name__ == '__main__':\n    print(Net()(torch.rand(2, 3)))", "__main__"),
        ("def main():\n    print(Net()(torch.rand(2, 3)))\nif __name__ == '__main__':\n    main()", "main()"),
        ("y = Net()(torch.rand(2, 3))", "line 13"),
    ],
)
def test_where_it_was_said(text: str, where: str):
    assert found("\n" + text) == [("Net()", "f32[B:2, 3]", where)]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("torch.randn(1, 3, 224, 224)", "f32[B:1, 3, 224, 224]"),
        ("torch.rand((2, 3), device=device)", "f32[B:2, 3]"),
        ("torch.zeros(2, 3, dtype=torch.long)", "i64[B:2, 3]"),
        ("torch.randint(0, 100, (2, 16))", "i64[B:2, 16]"),
        ("torch.randint(100, size=(2, 16), device=device)", "i64[B:2, 16]"),
        ("torch.full((2, 8), 1.0)", "f32[B:2, 8]"),
        ("torch.LongTensor(2, 3).random_(0, 10)", "i64[B:2, 3]"),
        ("torch.autograd.Variable(torch.FloatTensor(2, 3)).cuda()", "f32[B:2, 3]"),
        ("torch.randn(2, 3).half().to(device)", "f16[B:2, 3]"),
        ("torch.randn(3, 32, 32).unsqueeze(0)", "f32[B:1, 3, 32, 32]"),
        ("torch.from_numpy(np.random.randn(2, 3)).float()", "f32[B:2, 3]"),
        ("torch.tensor(np.random.rand(2, 3), dtype=torch.float32)", "f32[B:2, 3]"),
        ("torch.rand(2, 3) * 2 - 1", "f32[B:2, 3]"),
        ("torch.rand(2, 3) > 0.5", "bool[B:2, 3]"),
        ("torch.ones_like(torch.rand(2, 3))", "f32[B:2, 3]"),
        ("[torch.rand(3, 8, 9), torch.rand(3, 7, 9)]", "[f32[3, 8, 9], f32[3, 7, 9]]"),
        ("torch.tensor([[1, 2, 3]])", "torch.tensor([[1, 2, 3]])"),
        ("torch.arange(8)", "torch.arange(8)"),
        ("{'a': torch.randn(2, 3), 'b': [torch.ones(2)]}", "{'a': f32[B:2, 3], 'b': [f32[B]]}"),
        ("[torch.rand(1, s) for s in (2, 3)]", "[torch.rand(1, s) for s in (2, 3)]"),
    ],
)
def test_tensors_are_written_as_shorthands(made: str, written: str):
    assert first(f"net = Net()\ny = net({made})") == f"Net()({written})"


def test_the_batch_is_the_dim_that_the_script_calls_so():
    text = """
    def main():
        seq_len, batch_size = 16, 4
        Net()(torch.randn(seq_len, batch_size, 8), torch.randn(batch_size, 8))
    """
    assert first(text) == "Net()(f32[16, B:4, 8], f32[B, 8])"


def test_a_sequence_in_front_is_no_batch():
    assert first("seq_len = 5\ny = Net()(torch.randn(seq_len, 8))") == "Net()(f32[5, 8])"


def test_a_batch_of_one_needs_evaluation_where_the_script_says_so():
    assert first("net = Net()\nnet.eval()\ny = net(torch.randn(1, 3))") == "Net().eval()(f32[B:1, 3])"


def test_wrappers_are_taken_off():
    assert first("net = torch.compile(nn.DataParallel(Net(8)).cuda())\ny = net(torch.randn(2, 3))") == "Net(8)(f32[B:2, 3])"


def test_constants_of_the_document_stay_names_in_constructors():
    assert first("WIDTH = 8\nnet = Net(dim=WIDTH)\ny = net(torch.randn(2, WIDTH))") == "Net(dim=WIDTH)(f32[B:2, 8])"


def test_a_command_line_gives_its_defaults():
    text = """
    import argparse
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--embed-dim", type=int, default="32")
        args = parser.parse_args()
        model = Net(args.embed_dim)
        model(torch.randn(args.batch_size, args.embed_dim))
    """
    assert found(text) == [("Net(32)", None, "main()")]


def test_what_a_function_is_given_tells_what_it_calls():
    text = """
    from torchvision import datasets, transforms
    def train(model, loader, device):
        for number, (data, target) in enumerate(loader):
            output = model(data.to(device))
    def main():
        loader = torch.utils.data.DataLoader(datasets.MNIST("data", download=True), batch_size=64)
        train(Net().to(device), loader, device)
    """
    assert found(text) == [("Net()", "f32[B:64, 1, 28, 28]", "train()")]


def test_pictures_that_are_resized():
    text = """
    from torchvision import datasets, transforms
    t = transforms.Compose([transforms.Resize((64, 48)), transforms.ToTensor()])
    for x, y in torch.utils.data.DataLoader(datasets.ImageFolder("data", transform=t), batch_size=8):
        Net()(x)
    """
    assert first(text) == "Net()(f32[B:8, 3, 64, 48])"


def test_a_loader_of_tensors():
    text = """
    data = torch.utils.data.TensorDataset(torch.randn(100, 3), torch.randn(100))
    train_data, test_data = torch.utils.data.random_split(data, [80, 20])
    loader = torch.utils.data.DataLoader(train_data, batch_size=10, shuffle=True, num_workers=4)
    for x, y in loader:
        Net()(x, y)
    """
    assert first(text) == "Net()(f32[B:10, 3], f32[B])"


ITEMS = """
class Pictures(torch.utils.data.Dataset):
    def __init__(self, size=32):
        self.size = size
    def __getitem__(self, index):
        return torch.randn(3, self.size, self.size), torch.tensor(index % 10)
"""


def test_a_data_set_that_says_what_its_items_are():
    text = ITEMS.replace("torch.tensor(index % 10)", "torch.zeros(5)") + dedent("""
    for step, (x, y) in enumerate(torch.utils.data.DataLoader(Pictures(64), batch_size=4)):
        Net()(x)
    """)
    assert first(text) == "Net()(f32[B:4, 3, 64, 64])"


def test_a_loader_that_the_document_can_make_is_asked():
    text = ITEMS + dedent("""
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=4, shuffle=True, num_workers=4)
    for step, (x, y) in enumerate(loader):
        Net()(x)
    """)
    assert first(text) == "Net()(next(iter(loader))[0])"


def test_batches_of_their_own_class():
    text = ITEMS + dedent("""
    class Batch:
        def __init__(self, items): self.x = torch.stack([x for x, _ in items])
    def train(model, train_loader):
        for batch in train_loader:
            model(batch)
            model(**batch.__dict__)
    def main():
        train(Net(), torch.utils.data.DataLoader(Pictures(16), batch_size=4, collate_fn=Batch))
    """)
    loader = "torch.utils.data.DataLoader(Pictures(16), batch_size=4, collate_fn=Batch)"
    assert [arguments for _, arguments, _ in found(text)] == [f"next(iter({loader}))", f"**next(iter({loader})).__dict__"]


def test_a_training_function_that_nothing_calls_gets_the_loader_of_the_file():
    text = """
    class Wrapper(nn.Module):
        def __init__(self): self.net = Net()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(100, 3)), batch_size=10)
    def evaluate(model, test_loader, device):
        for (x,) in test_loader:
            model(x.to(device))
    """
    candidates = usages(ast.parse(MODEL + dedent(text)), ["Net", "Wrapper"])
    assert [(one.target, one.constructor, one.arguments) for one in candidates] == [("Wrapper", "", "f32[B:10, 3]")]


def test_a_test_case_sets_its_model_up():
    text = """
    import unittest
    class NetTest(unittest.TestCase):
        def setUp(self):
            self.batch = 2
            self.model = Net(dim=16)
        def test_shape(self):
            out = self.model(torch.randn(self.batch, 16))
            self.assertEqual(out.shape, (2, 4))
    """
    assert found(text)[0] == ("Net(dim=16)", "f32[B:2, 16]", "test_shape()")


def test_a_formatted_text_whose_parts_are_known_is_one_text():
    text = """
    def test_names():
        kind = "large"
        print(Net(f"{kind}-{3}")(torch.rand(2, 3)))
    """
    assert first(text) == "Net('large-3')(f32[B:2, 3])"


def test_the_first_case_of_a_parametrized_test():
    text = """
    import pytest
    @pytest.fixture
    def net():
        return Net(4)
    @pytest.mark.parametrize("size,channels", [(32, 3), (64, 1)])
    def test_sizes(net, size, channels):
        assert net(torch.randn(2, channels, size, size)).shape
    """
    assert first(text) == "Net(4)(f32[B:2, 3, 32, 32])"


def test_the_first_of_several_configurations():
    text = """
    for kwargs, shape in [(dict(dim=8), (2, 8)), (dict(dim=16), (2, 16))]:
        net = Net(**kwargs)
        net(torch.randn(*shape))
    """
    assert first(text) == "Net(dim=8)(f32[B:2, 8])"


def test_branches_that_build_different_models():
    text = """
    def main(deep=False):
        if deep:
            model = Net(depth=9)
        else:
            model = Net()
        model(torch.randn(2, 3))
    """
    assert found(text) == [("Net(depth=9)", "f32[B:2, 3]", "main()"), ("Net()", "f32[B:2, 3]", "main()")]


def test_a_factory_that_the_script_calls_stays_a_call():
    text = """
    def make(depth):
        return Net(depth=depth)
    y = make(3)(torch.randn(2, 3))
    """
    assert first(text) == "make(3)(f32[B:2, 3])"


def test_what_cannot_be_said_in_the_document_is_left_out():
    text = """
    def run(path):
        data = open(path).read()
        net = Net(len(set(data)))
        net(torch.randn(2, 3))
    """
    assert found(text) == [("", "f32[B:2, 3]", "run()")]


def test_benchmarks_say_it_by_functions():
    text = """
    batch_size = 16
    dim = 32
    class Model(nn.Module): ...
    def get_inputs():
        return [torch.rand(batch_size, dim)]
    def get_init_inputs():
        return [dim, 4]
    """
    tree = ast.parse(MODEL + dedent(text))
    candidates = [(one.constructor, one.arguments, one.where) for one in usages(tree, ["Net", "Model"])]
    assert candidates == [("Model(dim, 4)", "f32[B:16, 32]", "get_inputs()"), ("Model(dim, 4)", "*get_inputs()", "get_inputs()")]


def test_tools_that_call_a_model():
    assert first("from torchsummary import summary\nsummary(Net().cuda(), (3, 32, 32))") == "Net()(f32[B:2, 3, 32, 32])"
    assert first("from torchinfo import summary\nsummary(Net(), input_size=(4, 3, 32, 32))") == "Net()(f32[B:4, 3, 32, 32])"
    assert first("torch.jit.trace(Net(), (torch.randn(2, 3),))") == "Net()(f32[B:2, 3])"
    assert first("writer = open_writer()\nwriter.add_graph(Net(), torch.randn(2, 3))") == "Net()(f32[B:2, 3])"
    assert first("tools.export(Net(), torch.randn(2, 3))") == "Net()"


def test_another_file_is_read_in_the_documents_words():
    text = """
    import torch as t
    from torch import randn
    from models.net import Net as Model, Config as C
    SIZE = 32
    def build(cfg): return Model(cfg.dim)
    if __name__ == "__main__":
        model = build(C(dim=SIZE))
        model(randn(2, SIZE), t.arange(4), helper())
        model(randn(2, SIZE), t.arange(4))
    """
    known = {"Model": "Net", "C": "Config"}
    candidates = usages(ast.parse(dedent(text)), ["Net"], "/work/train.py", known, ast.parse(MODEL))
    assert [(one.constructor, one.arguments, one.where) for one in candidates] == [
        ("Net(Config(dim=32).dim)", "f32[B:2, 32], torch.arange(4)", "train.py:10")
    ]


def test_what_a_parameter_is_by_default_is_no_input():
    assert found("def run(x=None, mask=None):\n    return Net(3)(x, mask=mask)") == [("Net(3)", None, "run()")]


def test_a_required_argument_that_is_not_known_cannot_be_left_out():
    text = """
    class Head(nn.Module):
        def __init__(self, width, depth=2): ...
        def forward(self, x, mask=None): ...
    def main(sizes):
        Head(width=sizes[0])(torch.randn(2, 3))
        Head(8, depth=sizes[1])(torch.randn(2, 3), mask=sizes[2])
    """
    candidates = usages(ast.parse(MODEL + dedent(text)), ["Head"])
    assert [(one.constructor, one.arguments) for one in candidates] == [("Head(8)", "f32[B:2, 3]"), ("", "f32[B:2, 3]")]


def test_methods_of_models_are_no_scripts():
    assert found("class Outer(nn.Module):\n    def forward(self, x):\n        return Net(3)(torch.zeros(2, 3))") == []


def test_factories_in_a_list():
    text = """
    def net_a(pretrained=False, **kwargs):
        return Net(8, **kwargs)
    def net_b(**kwargs):
        return Net(16, **kwargs)
    def _test():
        pretrained = False
        for model in [net_a, net_b]:
            net = model(pretrained=pretrained)
            net.eval()
            x = torch.randn(1, 3, 32, 32)
            assert net(x).shape == (1, 10)
    """
    assert first(text) == "net_a(pretrained=False).eval()(f32[B:1, 3, 32, 32])"


@pytest.mark.parametrize(
    ("made", "written"),
    [
        ("torch.randn(2, 3, *[8] * dims)", "f32[B:2, 3, 8, 8]"),
        ("torch.randn(2, *(6, 7, 8)[:dims])", "f32[B:2, 6, 7]"),
        ("torch.randn((2, 3) + (4,))", "f32[B:2, 3, 4]"),
        ("torch.zeros(2, 3, dtype=torch.float64 if deep else torch.float32)", "f32[B:2, 3]"),
        ("torch.IntTensor([4] * dims)", "torch.IntTensor([4, 4])"),
    ],
)
def test_lists_that_are_computed(made: str, written: str):
    assert first(f"def main(deep=False):\n    dims = 2\n    Net()({made})") == f"Net()({written})"


def test_an_expression_that_is_nested_deeper_than_can_be_followed():
    text = f"total = {' + '.join(['1'] * 900)}\ny = Net()(torch.randn(2, 3))\nz = Net(depth=total)"
    assert first(text) == "Net()(f32[B:2, 3])"
