"""What is said of each code of a finding is so: its wrong example has this finding and no other, its right one has none."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from shapelens.analysis.findings.codes import CODES, is_deep
from shapelens.batch import Batch
from shapelens.report.rules import IMPORTS, rules


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Batch]:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "pyproject.toml").write_text('[tool.shapelens]\ndeadline = 3\ndevice-memory = "16 GB"\n')
    async with Batch(sys.executable, root=folder) as batch:
        yield batch


async def findings_of(batch: Batch, example: str, *, deep: bool) -> list[tuple[str, str]]:
    """The codes of what is found in an example, with their severities."""
    text = f"{IMPORTS}\n{example}"
    file = Path(batch.root, "example.py")
    file.write_text(text, encoding="utf-8")
    return [(finding.code, finding.severity) for finding in (await batch.analyse(file, text, fixes=False, deep=deep, memory=True)).findings]


def test_each_code_has_a_rule() -> None:
    assert list(rules()) == list(CODES)


@pytest.mark.parametrize("code", CODES)
async def test_the_examples_of_a_rule_are_as_it_says(code: str, batch: Batch) -> None:
    rule = rules()[code]
    assert await findings_of(batch, rule.wrong, deep=is_deep(code)) == [(code, CODES[code].severity)]
    assert await findings_of(batch, rule.right, deep=is_deep(code)) == []
