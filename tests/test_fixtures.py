"""Every file of `fixtures/`, against what is expected in its comments (see fixtures.py); and what the settings change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

import fixtures
from interpreters import TORCH_PYTHON
from shapelens.analysis.display.hints import hints
from shapelens.analysis.display.lenses import lenses
from shapelens.analysis.findings.findings import findings
from shapelens.batch import Analysed, Batch
from shapelens.examples.settings import Settings
from shapelens.source.position_map import apply


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch() -> AsyncIterator[Batch]:
    """One worker for all files, as an editor has."""
    async with Batch(TORCH_PYTHON, root=fixtures.FOLDER) as batch:
        yield batch


SLOW = {
    "certain/branches.py": "a search goes past its mistakes, and proves each of them",
    "certain/beside_branches_of_settings.py": "a search goes past its mistakes, and proves each of them",
    "certain/attention.py": "a search goes past its mistakes, and proves each of them",
    "certain/one_against_others.py": "a search goes past its mistakes, and proves each of them",
    "certain/operations.py": "a search goes past its mistakes, and proves each of them",
    "certain/sizes_in_messages.py": "a search goes past its mistakes, and proves each of them",
    "certain/norms.py": "a search goes past its mistakes, and proves each of them",
    "pitfalls/loops_over_pictures.py": "a search lasts until its deadline",
    "unknown/numbers_of_data.py": "an example is searched for each of its functions",
    "certain/after_a_mistake.py": "a search goes past three mistakes, and proves each of them",
    "operations/words.py": "a fix of each of forty findings is run",
    "repairs/heads.py": "many fixes are tried",
    "repairs/inputs_and_widths.py": "many fixes are tried",
    "repairs/masks.py": "many fixes are tried",
    "programs/slow_in_its_middle.py": "a statement lasts until its deadline",
    "scripts/slow_statements.py": "statements last until their deadline",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow(SLOW[name]) if name in SLOW else ()) for name in fixtures.names()]
)
async def test_fixture(batch: Batch, name: str, request: pytest.FixtureRequest) -> None:
    await fixtures.check(batch, name, fixes=not request.config.getoption("--core"))


RECIPE = fixtures.FOLDER / "recipe"


async def analysed(batch: Batch, name: str) -> Analysed:
    return await batch.analyse(RECIPE / name, (RECIPE / name).read_text(encoding="utf-8"))


async def test_hints_follow_the_settings(batch: Batch) -> None:
    said = await analysed(batch, "recipe.py")

    def shown(settings: Settings) -> dict[str, list[str]]:
        labels: dict[str, list[str]] = {"layer": [], "value": [], "parameter": []}
        for hint in hints(said.module, said.trace, settings):
            labels[hint.kind].append(hint.label)
        return labels

    assert shown(Settings(dims="numbers"))["layer"][0] == "→ [1024, 6, 28, 28]"
    assert shown(Settings(hints_layers=False))["layer"] == []
    assert shown(Settings(hints_values=False))["value"] == []
    assert shown(Settings(hints_parameters=False))["parameter"] == []
    every = Settings(hints_unchanged=True)
    assert len(shown(replace(every, hints_layers=False))["value"]) == len(shown(every)["value"]) == 7
    assert len(shown(Settings())["value"]) == 6  # `return x` says nothing new.


async def test_lines_that_change_nothing_have_no_hint_unless_they_are_asked_for(batch: Batch) -> None:
    path = fixtures.FOLDER / "values" / "unchanged.py"
    text = fixtures.read(path)[0]
    said = await batch.analyse(path, text)
    every = {hint.position.line: hint for hint in hints(said.module, said.trace, Settings(hints_unchanged=True))}
    marked = {number for number, line in enumerate(text.splitlines(), start=1) if line.endswith("# same")}
    left = {hint.position.line: hint for hint in said.hints}
    assert left == {line: hint for line, hint in every.items() if line not in marked}
    assert {hint.kind for hint in left.values()} == {"layer", "value", "parameter"}
    assert len(marked & set(every)) == len(marked) == 19


async def test_a_long_hint_is_cut_between_two_shapes_and_whole_in_its_tooltip(batch: Batch) -> None:
    text = (
        "import torch\n\nfeatures = torch.zeros(2, 64, 56, 56)\nmaps = [features, features[:, :, :28, :28], features[:, :32]]\n"
        "large, medium, small = maps\n"
    )
    said = await batch.analyse(fixtures.FOLDER / "values" / "made_up.py", text)
    labels = {hint.position.line: (hint.label, hint.short_label, hint.tooltip) for hint in said.hints}
    label, short, tooltip = labels[5]
    assert label == "large: [2, 64, 56, 56], medium: [2, 64, 28, 28], small: [2, 32, 56, 56]"
    assert short == "large: [2, 64, 56, 56], …" and all(shape in tooltip for shape in ("64, 56, 56]", "64, 28, 28]", "32, 56, 56]"))
    assert all(len(short) <= 43 for _, short, _ in labels.values())


async def test_hints_stand_behind_the_name_or_the_line(batch: Batch) -> None:
    said = await analysed(batch, "recipe.py")
    last = [hint for hint in hints(said.module, said.trace, Settings(hints_placement="afterName")) if hint.label == ": [B, 400]"]
    assert [said.module.lines.line(hint.position.line)[: hint.position.column].strip() for hint in last] == ["x"]
    at_end = [hint for hint in hints(said.module, said.trace, Settings()) if hint.label == "→ [B, 400]"]
    assert [said.module.lines.line(hint.position.line)[hint.position.column :] for hint in at_end] == [""]


async def test_findings_follow_the_settings(batch: Batch) -> None:
    said = await analysed(batch, "wrong_in_features.py")

    def shown(settings: Settings) -> list[tuple[str, str]]:
        return [(found.code, found.severity) for found in findings(said.module, said.trace, settings, lambda file: None)]

    assert shown(Settings()) == [("linear-in-features", "error")]
    assert shown(Settings(findings_severity={"linear-in-features": "warning"})) == [("linear-in-features", "warning")]
    assert shown(Settings(ignore=["linear-in-features"])) == []


async def test_a_finding_leads_to_the_call_and_to_where_the_size_came_from(batch: Batch) -> None:
    said = await analysed(batch, "wrong_in_features.py")
    (finding,) = said.findings
    places = [(fixtures.text_of(said.module, related.span), related.message) for related in finding.related]
    assert places == [
        ("self.fc1(x)", "gets [B, 400] here"),
        ("torch.flatten(x, 1)", "400 is 16·5·5 here"),
        ("16", "a factor of it comes from out_channels of conv2"),
    ]


async def test_a_finding_leads_to_the_call_in_the_project_that_gives_the_size(batch: Batch) -> None:
    file = fixtures.FOLDER / "usages" / "test_function.py"
    said = await batch.analyse(file, file.read_text(encoding="utf-8"))
    (finding,) = said.findings
    places = [(fixtures.text_of(said.module, related.span), related.message) for related in finding.related]
    assert ("net(x)", "test() gives 3 channels") in places


async def test_lenses_tell_the_example_its_source_and_the_size(batch: Batch) -> None:
    said = await analysed(batch, "recipe.py")
    lens, show = lenses(said.module, said.choice.examples, said.trace)
    assert lens.title == "Net · x f32[B, 3, 32, 32] · given · 62\u202f006 parameters"
    assert (show.action, show.title, show.target) == ("show", "Show model", "Net")
    assert (lens.target, lens.expression) == ("Net", "Net()(f32[B:1024, 3, 32, 32])")


async def test_a_class_without_an_example_offers_to_set_one(batch: Batch) -> None:
    path = fixtures.FOLDER / "structure" / "two_classes.py"
    said = await batch.analyse(path, fixtures.read(path)[0])
    titles = {lens.target: lens.title for lens in lenses(said.module, said.choice.examples, said.trace) if lens.action == "set"}
    assert titles["Block"] == "Block · x f32[B, T, 16] · part of Net"


async def test_three_fixes_mend_three_mistakes(batch: Batch) -> None:
    path = fixtures.FOLDER / "past_errors" / "three_mistakes.py"
    text = fixtures.read(path)[0]
    said = await batch.analyse(path, text)
    assert [finding.code for finding in said.findings] == ["conv-in-channels", "norm-num-features", "linear-in-features"]
    fixes = [finding.fix for finding in said.findings if finding.fix is not None]
    mended = apply(text, [edit for fix in fixes for edit in fix.edits])
    assert (await batch.analyse(path, mended)).findings == []
