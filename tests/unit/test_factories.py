"""Functions that return a model and need nothing but sizes."""

import ast
from textwrap import dedent

from shapelens.worker.search.usages.factories import factories

CLASSES = ["Block", "ResNet"]
MODEL = """
import torch.nn as nn
class Block(nn.Module): ...
class ResNet(nn.Module):
    def __init__(self, block, layers, num_classes=10): ...
    @classmethod
    def small(cls, depth=2): return cls(Block, [depth])
    @classmethod
    def named(cls, name): return cls(Block, [2])
"""


SIZES = {"src_vocab": 1000, "num_classes": 10}


def found(text: str) -> list[tuple[str, str]]:
    return [(one.target, one.constructor) for one in factories(ast.parse(MODEL + dedent(text)), CLASSES, SIZES.get)]


def test_the_smaller_ones_come_first():
    text = """
    def resnet152(pretrained=False, **kwargs):
        model = ResNet(Block, [3, 8, 36, 3], **kwargs)
        if pretrained:
            model.load_state_dict(load())
        return model
    def resnet50(): return ResNet(Block, [3, 4, 6, 3])
    def resnet34(): return ResNet(Block, [3, 4, 6, 3])
    def resnet18(): return ResNet(Block, [2, 2, 2, 2])
    """
    assert found(text) == [("ResNet", "ResNet.small()"), ("ResNet", "resnet18()"), ("ResNet", "resnet34()")]


def test_weights_are_not_asked_for():
    text = """
    def net(weights="IMAGENET1K_V1", pretrained_backbone=True, progress=True):
        return ResNet(Block, [2])
    """
    assert ("ResNet", "net(weights=None, pretrained_backbone=False)") in found(text)


def test_a_class_that_is_handed_to_a_builder():
    text = """
    def _create(variant, **kwargs):
        return build_model_with_cfg(ResNet, variant, **kwargs)
    def tiny(pretrained=False, **kwargs):
        args = dict(layers=[1])
        return _create("tiny", **dict(args, **kwargs))
    """
    assert ("ResNet", "tiny()") in found(text)


def test_a_module_of_which_no_more_is_said():
    assert ("", "make()") in found("def make() -> nn.Module:\n    return REGISTRY['net']()")


def test_sizes_are_given_by_their_names_after_those_that_need_none():
    text = """
    def make(src_vocab, num_classes, width=8): return ResNet(Block, [2], num_classes)
    def needs(num_classes, settings): return ResNet(Block, [2], num_classes)
    def net(): return ResNet(Block, [2])
    """
    made = "make(num_classes=⟨num_classes⟩, src_vocab=⟨src_vocab⟩)"
    assert found(text) == [("ResNet", "ResNet.small()"), ("ResNet", "net()"), ("ResNet", made)]


def test_no_factories():
    text = """
    def needs(depth): return ResNet(Block, [depth])
    def test_net(): return ResNet(Block, [2])
    def number(): return 3
    def nothing(): ResNet(Block, [2])
    """
    assert found(text) == [("ResNet", "ResNet.small()")]
