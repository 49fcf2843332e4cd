"""A model as a whole, as a client asks for it: from the newest analysis, after an edit, and where there is nothing to show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor
from shapelens.report.model_document import schema

NET = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 32)
        self.second = nn.Linear(32, width)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(x)))


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(8) for _ in range(3)])
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.blocks(x))


class Alone(nn.Module):
    def __init__(self, mystery):
        raise ValueError("no")
"""


@pytest.mark.core
async def test_a_model_is_shown_and_follows_edits(editor: Editor) -> None:
    """The tree, the class that is a part of another one, the message where something fails, sizes that the user has chosen."""
    uri = editor.open("net.py", NET)
    await editor.hints_when(uri)

    async def model(name: str, line: int = 1, **options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, name, line, options)

    shown = (await model("Net"))["model"]
    jsonschema.validate(shown, schema())
    (net,) = shown["tree"]
    assert [row["path"] for row in net["rows"]] == ["blocks", "head"]
    assert net["outputs"] == ["[B, 4]"]
    assert (await model("", line=10))["model"]["path"] == "blocks.0"
    assert (await model("Net", sizes={"B": 7}))["model"]["tree"][0]["sizes"] == ["[7, 4]"]
    page = (await model("Net", format="html"))["text"]
    assert '<script id="model" type="application/json">' in page
    assert str(editor.root) not in page
    editor.replace(uri, "nn.Linear(8, 4)", "nn.Linear(9, 4)")
    assert await editor.diagnostics(uri)
    (net,) = (await model("Net"))["model"]["tree"]
    head = net["rows"][1]
    assert head["failure"]["code"] == "linear-in-features"
    assert head["outputs"] == ["[B, 4]"]
    assert not net["rows"][0]["failure"]
    assert "no example" in (await model("Alone"))["message"]
    empty = editor.open("empty.py", "x = 1")
    await editor.diagnostics(empty)
    assert "ShapeLens has not seen" in (await editor.execute("shapelens.model", empty, "", 1, {}))["message"]


def outline(rows: Any) -> Any:
    """What is known of rows without a run of their own."""
    known = ("path", "class", "outputs", "sizes", "calls", "parameters", "trainable", "parameter_bytes", "constructor", "call", "failure")
    return [[*(row[each] for each in known), outline(row["rows"])] for row in rows]


async def test_what_hints_say_is_shown_without_a_run(editor: Editor) -> None:
    """At once all shapes, parameters and places, and what fails, as the run that follows says them; its names of dims, too."""
    uri = editor.open("outline.py", NET)
    await editor.hints_when(uri)

    async def model(name: str, **options: Any) -> Any:
        return (await editor.execute("shapelens.model", uri, name, 1, options))["model"]

    def is_seen(model: Any, failing: bool = False) -> bool:
        """Whether it is what is known of the newest text, names of dims included."""
        return "[B, 8]" in str(model["tree"]) and ("'code'" in str(model["tree"])) == failing and not model["complete"]

    async def compared(name: str) -> Any:
        first, whole = [await model(name, until=until) for until in ("shapes", "")]
        jsonschema.validate(first, schema())
        assert not first["complete"] and not first["graph"]["nodes"] and first["memory"]["training"] is None
        assert whole["complete"] and whole["graph"]["nodes"]
        assert outline(first["tree"]) == outline(whole["tree"])
        assert [first[each] for each in ("path", "example", "others")] == [whole[each] for each in ("path", "example", "others")]
        assert await model(name, until="shapes") == whole
        return whole["tree"][0]

    await editor.when(lambda: model("Net", until="shapes"), is_seen)
    assert (await compared("Net"))["outputs"] == ["[B, 4]"]
    assert (await model("Net", until="shapes", sizes={"B": 5}))["tree"][0]["sizes"] == ["[5, 4]"]
    editor.replace(
        uri, "self.head = nn.Linear(8, 4)", "self.head = nn.Linear(8, 4)\n        nn.ReLU()\n        nn.ReLU()"
    )  # Parts of nothing.
    await editor.when(lambda: model("Net", until="shapes"), is_seen)
    await compared("Net")
    broken = {
        "nn.Linear(8, 4)": "nn.Linear(9, 4)",
        "self.blocks(x)": "self.blocks(x).view(3, 7)",
        "nn.Linear(32, width)": "nn.Linear(31, width)",
    }
    for name, (right, wrong) in zip(("Net", "Net", "Block"), broken.items(), strict=True):
        editor.replace(uri, right, wrong)
        await editor.when(lambda: model("Net", until="shapes"), lambda seen: is_seen(seen, failing=True))
        for finding in await editor.diagnostics(uri):
            await editor.actions(uri, finding)  # Its fix is said in the view, too.
        await compared(name)
        editor.replace(uri, wrong, right)
        assert not await editor.diagnostics(uri)


async def test_a_lens_shows_each_class_of_which_something_was_seen(tmp_path: Path) -> None:
    """In our extension, which has a view for that; also the class that is a part of another one, and none for what no example comes to."""
    alone = Editor(tmp_path)
    await alone.start(initialization_options={"interpreter": TORCH_PYTHON, "settings": {}})
    uri = alone.open("net.py", NET)

    async def offered() -> list[Any]:
        commands = [lens.command for lens in await alone.lenses(uri) if lens.command is not None]
        return [list((each.arguments or ())[:2]) for each in commands if each.command == "shapelens.showModel"]

    assert await alone.when(offered, lambda found: len(found) == 2) == [[uri, "Block"], [uri, "Net"]]
    await alone.hints_when(uri)
    assert await offered() == [[uri, "Block"], [uri, "Net"]]
    assert await alone.stop() == 0


async def test_another_editor_has_no_lens_that_would_do_nothing(editor: Editor) -> None:
    uri = editor.open("other.py", NET)
    await editor.hints_when(uri)
    lenses = await editor.lenses(uri)
    assert "part of Net" in str(lenses) and "showModel" not in str(lenses)


async def test_the_model_comes_before_its_memory_and_memory_follows_a_size(editor: Editor) -> None:
    """What comes first has names and no memory; the memory with another size is what a run with it says, at once from the second on."""
    uri = editor.open("net.py", NET)
    await editor.hints_when(uri)

    async def ask(**options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, "Net", 1, options)

    first = (await ask(until="steps"))["model"]
    jsonschema.validate(first, schema())
    assert not first["complete"]
    assert first["tree"][0]["outputs"] == ["[B, 4]"]
    assert first["memory"]["training"] is None
    whole = (await ask())["model"]
    assert whole["complete"]
    assert whole["tree"][0]["flops"] == 2 * 2 * (3 * 2 * 8 * 32 + 8 * 4)
    for size in (3, 1000):
        run = (await ask(sizes={"B": size}))["model"]["memory"]
        said = await ask(sizes={"B": size}, memory="B", limit=1 << 30)
        assert said["memory"]["training"] == run["training"]
        assert said["memory"]["inference"] is None
    assert (await ask(memory="B", limit=24 << 30))["largest"] > said["largest"]  # More than 31 bits.
    fits = (await ask(sizes={"B": said["largest"]}))["model"]["memory"]["training"]["peak"]
    over = (await ask(sizes={"B": said["largest"] + 1}))["model"]["memory"]["training"]["peak"]
    assert fits <= 1 << 30 < over


BRANCHING = """
import torch
from torch import nn


# shapelens: Branching()(f32[B:2, 8])
class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 1024)
        self.second = nn.Linear(1024, 4)

    def forward(self, x):
        x = self.first(x)
        if x.shape[0] >= 64:
            x = torch.sin(torch.cos(torch.tanh(x)))
        return self.second(x)
"""


async def test_a_model_that_goes_another_way_with_large_sizes_has_no_formula(editor: Editor) -> None:
    """The largest size that fits is that of the way that large sizes go."""
    uri = editor.open("branching.py", BRANCHING)
    await editor.hints_when(uri)

    async def ask(size: int, **options: Any) -> Any:
        return await editor.execute("shapelens.model", uri, "Branching", 1, {"sizes": {"B": size}, **options})

    limit = 8 << 20
    largest = (await ask(2, memory="B", limit=limit))["largest"]
    assert largest > 64
    peaks = [(await ask(size))["model"]["memory"]["training"]["peak"] for size in (largest, largest + 1)]
    assert peaks[0] <= limit < peaks[1]
    assert (await ask(80, memory="B"))["memory"]["training"] == (await ask(80))["model"]["memory"]["training"]


TRAINING = """
import torch
from torch import nn

batch_size = 4096
model = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    optimizer.zero_grad()
    model(torch.zeros(batch_size, 1024)).square().mean().backward()
    optimizer.step()
"""


async def test_a_class_says_what_fits_the_device(editor: Editor) -> None:
    """The lens where the settings name the memory of a device, also after an edit; without it, the hover alone says the memory."""
    uri = editor.open("fits.py", NET)
    await editor.hints_when(uri)
    hovered = await editor.when(lambda: editor.hover(uri, "s Net("), lambda text: "training step" in str(text))
    assert "AdamW" in str(hovered) and "fits" not in str(hovered)
    assert "training step" not in str(await editor.lenses(uri))
    try:
        editor.configure({"deviceMemory": 0.001})
        before = await editor.when(lambda: editor.lenses(uri), lambda lenses: "fits 1.02 MB" in str(lenses))
        editor.replace(uri, "nn.Linear(width, 32)", "nn.Linear(width, 16)")
        editor.replace(uri, "nn.Linear(32, width)", "nn.Linear(16, width)")
        after = await editor.when(lambda: editor.lenses(uri), lambda lenses: "fits 1.02 MB" in str(lenses) and lenses != before)
        (small,), (large,) = (re.findall(r"B ≤ (\d+) fits", str(found)) for found in (before, after))
        assert 100 < int(small) < int(large)
    finally:
        editor.configure({})


async def test_a_step_that_does_not_fit_the_device_is_a_warning(editor: Editor) -> None:
    """At the batch size of a program, and again after an edit; gone with the memory."""
    uri = editor.open("training.py", TRAINING)

    async def warnings() -> list[tuple[int, str]]:
        await editor.idle()
        found = editor.published[uri].diagnostics if uri in editor.published else []
        return [(each.range.start.line, each.message) for each in found if each.code == "out-of-memory"]

    assert await warnings() == []
    try:
        editor.configure({"deviceMemory": "256 MB"})
        ((line, message),) = await editor.when(warnings, bool)
        assert line == 4 and "batch_size = 4096" in message and "0.25 GB of the device: up to 1637 fit" in message
        editor.replace(uri, "batch_size = 4096", "batch_size = 1637")
        await editor.when(warnings, lambda found: not found)
        editor.replace(uri, "batch_size = 1637", "batch_size = 1638")
        ((_, message),) = await editor.when(warnings, bool)
        assert "batch_size = 1638" in message
    finally:
        editor.configure({})
    await editor.when(warnings, lambda found: not found)


LARGE = """
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.second(self.first(x))


# shapelens: Large()(f32[B:2, 8])
class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(*[nn.Sequential(*[Block() for _ in range(20)]) for _ in range(17)])

    def forward(self, x):
        return self.stages(x)
"""


async def test_a_model_of_a_thousand_modules_is_a_few_rows(editor: Editor) -> None:
    """All of them are in the document; in the table each that repeats is there once."""
    uri = editor.open("large.py", LARGE)
    await editor.hints_when(uri)
    shown = (await editor.execute("shapelens.model", uri, "Large", 1, {}))["model"]
    jsonschema.validate(shown, schema())

    def modules(rows: Any) -> int:
        return sum(1 + modules(row["rows"]) for row in rows)

    assert modules(shown["tree"]) == 2 + 17 + 340 * 3
    assert shown["complete"] and shown["memory"]["training"]["error"] is None
    table = (await editor.execute("shapelens.model", uri, "Large", 1, {"format": "markdown"}))["text"]
    assert "×17" in table and "×20" in table
    assert len([line for line in table.splitlines() if line.startswith("|")]) < 12


ODD = """
import torch
from torch import nn


# shapelens: Tree(3)(f32[B:2, 8])
class Tree(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.mix = nn.Linear(8, 8)
        self.branches = nn.ModuleList([Tree(depth - 1) for _ in range(2)] if depth else [])

    def forward(self, x):
        return self.mix(x) + sum(branch(x) for branch in self.branches)


class Part(nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = owner
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)


# shapelens: Cyclic()(f32[B:2, 8])
class Cyclic(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(self)
        self.again = self.part

    def forward(self, x):
        return self.again(self.part(x))


# shapelens: Failing()(f32[B:2, 8])
class Failing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        x = x + self.missing
        return self.layer(x)


# shapelens: Unbuilt()(f32[B:2, 8])
class Unbuilt(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, undefined)


# shapelens: Two()(f32[B:2, T:16, 8])
# shapelens: Two()(f32[B:3, 8, 8])
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return self.layer(x)
"""


async def test_odd_models_show_what_there_is(editor: Editor) -> None:
    """Recursion, a module that holds its owner, a forward that fails at its first line, a constructor that fails, two examples."""
    uri = editor.open("odd.py", ODD)
    await editor.diagnostics(uri)

    async def model(name: str, **options: Any) -> Any:
        shown = (await editor.execute("shapelens.model", uri, name, 1, options))["model"]
        jsonschema.validate(shown, schema())
        return shown

    assert (await model("Tree"))["example"]["fits"]
    (tree,) = (await model("Tree"))["tree"]
    assert [row["path"] for row in tree["rows"]] == ["mix", "branches"]
    assert tree["parameters"] == 15 * 72
    assert tree["rows"][1]["rows"][0]["rows"][1]["rows"][0]["path"] == "branches.0.branches.0"
    (cyclic,) = (await model("Cyclic"))["tree"]
    assert (cyclic["parameters"], [row["path"] for row in cyclic["rows"]]) == (72, ["part"])
    assert cyclic["rows"][0]["calls"] == 2
    failing = await model("Failing")
    assert "missing" in failing["example"]["error"] and failing["example"]["fits"]
    assert [(row["path"], row["calls"], row["parameters"]) for row in failing["tree"][0]["rows"]] == [("layer", 0, 36)]
    assert failing["memory"]["training"]["error"]
    unbuilt = await model("Unbuilt")
    assert "undefined" in unbuilt["example"]["error"]
    assert [(row["class"], row["calls"], row["rows"]) for row in unbuilt["tree"]] == [("Unbuilt", 0, [])]
    for example, shape in ((0, "[B, T, 8]"), (1, "[B, 8, 8]")):
        shown = await model("Two", example=example)
        assert [node["shape"] for node in shown["graph"]["nodes"] if node["kind"] == "input"] == [shape]
        assert len(shown["others"]) == 1


UNASKED = """
from torch import nn
from library import Stack


class Unasked(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 4)


class Settings:
    width = 8


# shapelens: Derived()(f32[B:2, 8])
class Derived(Stack):
    def __init__(self):
        super().__init__(3)


class Guessed(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.layer = nn.Linear(settings["in"].width, 4)

    def forward(self, batch):
        return self.layer(batch.features["x"].rows)
"""


LIBRARY = """
from torch import nn


class Stack(nn.Sequential):
    def __init__(self, count):
        super().__init__(*[nn.Linear(8, 8) for _ in range(count)])
"""


async def test_classes_that_are_not_shown_say_why(editor: Editor) -> None:
    """A class that nothing calls lacks an example; one that is no module does not. What derives from a class of another file is shown."""
    editor.open("library.py", LIBRARY)
    uri = editor.open("unasked.py", UNASKED)
    await editor.diagnostics(uri)
    answer = await editor.execute("shapelens.model", uri, "Unasked", 1, {})
    assert (answer.get("without_example"), answer.get("message")) == ("Unasked", "Unasked has no example, and is not called by one")
    other = await editor.execute("shapelens.model", uri, "Settings", 1, {})
    assert (other["without_example"], other["message"]) == ("", "Settings is not known to be an nn.Module class")
    line = UNASKED.splitlines().index("class Derived(Stack):") + 1
    assert (await editor.execute("shapelens.model", uri, "", line, {}))["model"]["class"] == "Derived"
    guessed = (await editor.execute("shapelens.model", uri, "Guessed", 1, {}))["model"]
    jsonschema.validate(guessed, schema())
    assert guessed["example"]["error"] and not guessed["example"]["fits"]


LANGUAGE = """
import torch
from torch import nn
import torch.nn.functional as F


# shapelens: Language()(i64[B:8, T:512])
class Language(nn.Module):
    def __init__(self, vocabulary=32000):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16)
        self.head = nn.Linear(16, vocabulary, bias=False)

    def forward(self, tokens):
        logits = self.head(self.embedding(tokens))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
"""


async def test_logits_that_dominate_the_peak_are_spoken_of_where_memory_is(editor: Editor) -> None:
    """In the view, which is asked for, and never as a finding; a small vocabulary and short texts are not spoken of."""
    uri = editor.open("language.py", LANGUAGE)
    await editor.hints_when(uri)

    async def advice(**options: Any) -> Any:
        return (await editor.execute("shapelens.model", uri, "Language", 1, options))["model"]["memory"]["advice"]

    said = await advice()
    assert "[B, T, 32000]" in said["message"] and "chunks" in said["message"]
    assert LANGUAGE.splitlines()[said["place"]["line"] - 1].strip().startswith("logits =")
    assert "32000" in (await advice(autocast="bfloat16"))["message"]
    assert await advice(sizes={"T": 16}) is None
    assert not await editor.diagnostics(uri)
    editor.replace(uri, "vocabulary=32000", "vocabulary=1000")
    await editor.hints_when(uri)
    assert await advice() is None
