"""Which examples are remembered from one run to the next, and what an edit makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapelens.examples.choose import choose, without_example
from shapelens.examples.found_examples import FoundExamples
from shapelens.examples.settings import Settings
from shapelens.protocol import Alternative, ExampleRun, Known, Mismatch, Trace
from shapelens.source.module import parse

TEXT = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


class Other(nn.Module):
    def forward(self, x):
        return x


SEED = 1
x = torch.randn(2, 8)
net = Net()
net(x)


def test():
    return Other()(torch.zeros(3))
"""
FILE = "/net.py"
INFERRED = ExampleRun("Net", "Net()(f32[B:2, 8])", evidence="inferred", seconds=0.1)
USED = ExampleRun("Net", "Net()(f32[B:2, 8])", evidence="usage", where="line 18", seconds=0.1)


STATES = {"/blocks.py": 1}


def known(found: FoundExamples, text: str, surroundings: object = None) -> list[Known]:
    return found.known(FILE, parse(text), ["Net", "Other"], surroundings)


def kept(run: ExampleRun, text: str = TEXT, *, whole: bool = True) -> FoundExamples:
    found = FoundExamples(STATES.get)
    found.keep(FILE, parse(text), Trace(FILE, examples=[run]), whole=whole)
    return found


@pytest.mark.parametrize("run", [INFERRED, USED, replace(INFERRED, evidence="annotation")])
@pytest.mark.parametrize(
    ("old", "new"),
    [("SEED = 1", "SEED = 2"), ("torch.zeros(3)", "torch.zeros(4)"), ("Other(nn.Module):\n", "Other(nn.Module):\n    a = 1\n")],
)
def test_an_unrelated_edit_changes_nothing(run: ExampleRun, old: str, new: str) -> None:
    (same,) = known(kept(run), TEXT.replace(old, new))
    assert (same.expression, same.evidence, same.chosen) == (run.expression, run.evidence, False)


ANNOTATED = replace(INFERRED, evidence="annotation")


@pytest.mark.parametrize("run", [INFERRED, ANNOTATED])
def test_what_was_found_stays_while_the_code_of_its_class_is_edited(run: ExampleRun) -> None:
    assert known(kept(run), TEXT.replace("        return x\n", "        return x + 1\n", 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("forward(self, x)", 'forward(self, x: Float[Tensor, "b 8"])'),
        ("forward(self, x):", "forward(self, x):  # (B, 8)"),
        ("        return x\n", '        """x: (B, 8)\n\n        and more"""\n        return x\n'),
    ],
)
def test_an_edit_of_an_annotation_asks_for_a_new_search(old: str, new: str) -> None:
    assert not known(kept(ANNOTATED), TEXT.replace(old, new, 1))


@pytest.mark.parametrize(("old", "new"), [("net = Net()", "net = Net().eval()"), ("net(x)", "net(x + 1)"), ("randn(2, 8)", "randn(4, 8)")])
def test_an_edit_of_how_the_class_is_used_asks_for_a_new_search(old: str, new: str) -> None:
    assert not known(kept(USED), TEXT.replace(old, new))


def test_new_evidence_asks_for_a_new_search() -> None:
    assert not known(kept(INFERRED), TEXT + "\n\ndef get_inputs():\n    return [torch.randn(7, 8)]\n")
    found = FoundExamples(STATES.get)
    found.keep(FILE, parse(TEXT), Trace(FILE, examples=[INFERRED]), "train.py at 10:00")
    assert known(found, TEXT, "train.py at 10:00") and not known(found, TEXT, "train.py at 10:01")


def test_a_line_that_is_named_is_followed_when_it_moves() -> None:
    (moved,) = known(kept(USED), TEXT.replace("SEED = 1\n", "SEED = 1\n\n\n"))
    assert moved.where == "line 20"


FUNCTIONS = '''"""A net, small and Wide."""

from torch import nn

__all__ = ["make", "double"]


def double(batch):
    """Wide."""
    return batch * 2


class Net(nn.Module):
    def forward(self, x):
        return double(x)


def make():
    return Net()


def test():
    batch = 4
    return make()(torch.zeros(batch, 3))
'''


def test_a_function_that_only_shares_words_with_the_example_is_no_evidence() -> None:
    found = kept(ExampleRun("Net", "make()(f32[B:4, 3])", evidence="usage", where="test()", seconds=0.1), FUNCTIONS)
    assert known(found, FUNCTIONS.replace("batch * 2", "batch * 3").replace("A net", "The net"))
    assert not known(found, FUNCTIONS.replace("return Net()", "return Net().eval()"))


def test_what_failed_is_not_searched_for_again_until_something_changes() -> None:
    failed = replace(INFERRED, error="RuntimeError: no", error_kind="exception", doubtful=True, tried=12)
    found = kept(failed)
    (same,) = known(found, TEXT + "# a comment\n")
    assert same.chosen
    # The run with it says nothing of what was tried before.
    run = replace(failed, doubtful=False, tried=1)
    (told,) = found.keep(FILE, parse(TEXT), Trace(FILE, examples=[run])).examples
    assert (told.doubtful, told.tried) == (True, 12)
    (edited,) = known(found, TEXT.replace("return x\n", "return x * 2\n", 1))
    assert not edited.chosen


def test_what_failed_is_not_searched_for_again_for_an_edit_that_it_does_not_come_by() -> None:
    text = TEXT.replace("class Other(nn.Module)", "class Base(nn.Module):\n    width = 3\n\n\nclass Other(Base)")
    found = kept(replace(INFERRED, target="Other", expression="Other()(f32[3])", error="RuntimeError: no", doubtful=True), text)
    assert known(found, text.replace("return x\n", "return x * 2\n", 1).replace("SEED = 1", "SEED = 2"))[0].chosen
    assert not known(found, text.replace("width = 3", "width = 4"))[0].chosen
    assert not known(found, text.replace("from torch import nn", "from torch import nn, jit"))[0].chosen


def test_what_failed_is_searched_for_again_when_a_file_that_it_imports_changes() -> None:
    states = dict(STATES)
    found = FoundExamples(states.get)
    failed = replace(INFERRED, error="RuntimeError: no", error_kind="exception", doubtful=True)
    found.keep(FILE, parse(TEXT), Trace(FILE, examples=[failed], files=["/blocks.py"]))
    assert known(found, TEXT)[0].chosen
    states["/blocks.py"] = 2
    assert not known(found, TEXT)[0].chosen


def test_of_a_search_under_way_only_what_has_run_to_its_end_counts() -> None:
    assert known(kept(INFERRED, whole=False), TEXT)
    assert known(kept(replace(INFERRED, error="TypeError: no", doubtful=True), whole=False), TEXT)[0].chosen
    assert not known(kept(replace(INFERRED, seconds=0.0), whole=False), TEXT)


def test_a_choice_lasts_and_the_others_can_be_chosen_again() -> None:
    other = Alternative("Net()(f32[B:2, 3, 8])", "inferred")
    found = kept(replace(USED, others=[other]))
    assert not found.choose(FILE, "Net", "Net()(f32[1])") and not found.choose(FILE, "Nett", other.expression)
    assert found.choose(FILE, "Net", other.expression)
    # Even an edit of the evidence, and a run that fails, are no reason to take another.
    edited = parse(TEXT.replace("randn(2, 8)", "randn(4, 8)"))
    assert found.known(FILE, edited, ["Net"]) == [Known("Net", other.expression, "inferred", chosen=True, proven=True)]
    run = ExampleRun("Net", other.expression, evidence="inferred", error="RuntimeError: no", seconds=0.1)
    (told,) = found.keep(FILE, edited, Trace(FILE, examples=[run])).examples
    assert told.others == [Alternative(USED.expression, "usage", "line 18")]
    assert found.known(FILE, edited, ["Net"])[0].chosen
    assert found.choose(FILE, "Net", USED.expression) and found.known(FILE, edited, ["Net"])[0].expression == USED.expression


def test_the_classes_that_lack_an_example() -> None:
    module = parse(
        "# shapelens: Net()(f32[2])\n"
        + TEXT
        + "from base import Base\nclass Maybe(Base):\n    def forward(self, x): ...\nclass No(Base): ...\n"
    )
    choice = choose(module, FILE, Settings())
    assert without_example(module, choice) == ["Other", "Maybe"]
    typing = parse(TEXT.replace("class Net", "# shapelens: Net()(f32[B:\nclass Net"))
    assert without_example(typing, choose(typing, FILE, Settings())) == ["Other"]


def test_an_example_that_ran_to_its_end_once_stays_proven() -> None:
    found = kept(INFERRED)
    assert known(found, TEXT)[0].proven
    edited = parse(TEXT.replace("return x", "return x @ x"))
    failed = replace(INFERRED, error="RuntimeError: no")
    found.keep(FILE, edited, Trace(FILE, examples=[failed]))
    assert found.known(FILE, edited, ["Net"])[0].proven
    assert not known(kept(replace(INFERRED, doubtful=True)), TEXT)[0].proven
    other = replace(failed, expression="Net()(f32[B:2, 9])")
    found.keep(FILE, edited, Trace(FILE, examples=[other]))
    assert not found.known(FILE, edited, ["Net"])[0].proven


def test_a_text_that_is_wrong_is_not_searched_again_until_something_changes() -> None:
    found = kept(INFERRED)
    broken = TEXT.replace("return x\n", "return x @ x\n", 1)
    wrong = Mismatch("matmul", "shapes differ", "RuntimeError", None, [], 0)
    for text in (broken, broken.replace("x @ x", "x @ x @ x")):
        (before,) = known(found, text)
        assert (before.expression, before.chosen, before.proven) == (INFERRED.expression, False, True)
        found.keep(FILE, parse(text), Trace(FILE, examples=[replace(INFERRED, tried=9)], mismatches=[wrong]))
        assert known(found, text)[0].chosen


def test_another_environment_may_run_what_this_one_did_not() -> None:
    found = kept(INFERRED)
    found.forget()
    assert not known(found, TEXT)
    found = kept(INFERRED)
    assert found.choose(FILE, "Net", INFERRED.expression)
    found.forget()
    assert known(found, TEXT)


def test_classes_inherit_the_forward_of_one_that_may_be_a_module() -> None:
    text = (
        "from .base import Transform\nclass Coupling(Transform):\n    def forward(self, x):\n        return x\n"
        "class Affine(Coupling):\n    pass\nclass Additive(Affine):\n    pass\nclass Config(Settings):\n    pass\n"
    )
    module = parse(text)
    assert without_example(module, choose(module, FILE, Settings())) == ["Coupling", "Affine", "Additive"]


def test_what_fails_or_was_chosen_is_known_where_all_else_is_searched_for_anew() -> None:
    module, other = parse(TEXT), parse(TEXT.replace("return x", "return x + 1", 1))
    assert kept(INFERRED).begun_anew({FILE: module}.get).files() == set()
    fails = Trace(FILE, examples=[replace(INFERRED, error="no")])
    failing = kept(INFERRED)
    failing.keep(FILE, module, fails)
    assert failing.begun_anew({FILE: module}.get).files() == set()  # It was found for a text between.
    failing = kept(INFERRED)
    failing.establish({FILE})
    failing.keep(FILE, module, fails)
    assert known(failing.begun_anew({FILE: module}.get), TEXT)
    assert failing.begun_anew({FILE: other}.get).files() == set()  # The text is another one, and may not be to blame.
    assert failing.begun_anew({}.get).files() == set()
    chosen = kept(INFERRED)
    chosen.choose(FILE, "Net", INFERRED.expression)
    assert known(chosen.begun_anew({FILE: other}.get), TEXT)


@pytest.mark.parametrize(("edit", "stays"), [("# a comment\n", True), ("limit = 4\n", False)])
def test_what_fails_is_known_until_the_code_that_it_ran_is_another_one(edit: str, stays: bool) -> None:
    part = "/work/part.py"
    texts = {FILE: TEXT, part: "def part(x):\n    return x\n"}
    found = FoundExamples(texts.get)
    found.keep(FILE, parse(TEXT), Trace(FILE, examples=[INFERRED]))
    found.establish({FILE})
    found.keep(FILE, parse(TEXT), Trace(FILE, examples=[replace(INFERRED, error="no")], files=[part]))
    texts[part] = edit + texts[part]
    anew = found.begun_anew(lambda path: parse(texts[path]))
    assert (anew.files() == {FILE}) is stays


def test_what_was_searched_for_anew_takes_the_place_of_what_was_known() -> None:
    mine, other = kept(INFERRED), replace(INFERRED, expression="Net()(f32[2, 5])")
    mine.take_over(kept(other), {"elsewhere.py"})
    assert [each.expression for each in known(mine, TEXT)] == [INFERRED.expression]
    mine.take_over(kept(other), {FILE})
    assert [each.expression for each in known(mine, TEXT)] == [other.expression]
    mine.take_over(FoundExamples(STATES.get), {FILE})
    assert known(mine, TEXT) == []
