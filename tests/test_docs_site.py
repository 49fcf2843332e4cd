"""The site of the documentation builds without a warning, and no link of a page is dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import docs_site


def test_the_site_builds_without_a_warning() -> None:
    done = subprocess.run([sys.executable, docs_site.__file__], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    first = (docs_site.ROOT / "site" / "index.html").read_text()
    assert "ShapeLens" in first and (docs_site.ROOT / "site" / "findings" / "index.html").exists()


def test_a_link_to_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY", "server/ARCHITECTURE", "vscode-extension/CHANGELOG"):
        (tmp_path / f"{name}.md").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.md").write_text("[a page](docs/inputs.md)\n" if name == "README" else "text\n")
    monkeypatch.setattr(docs_site, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"README\.md links to docs/inputs\.md"):
        docs_site.gather(tmp_path / "gathered")
    (tmp_path / "docs" / "inputs.md").write_text("text\n")
    docs_site.gather(tmp_path / "gathered")
    assert (tmp_path / "gathered" / "index.md").read_text() == "[a page](inputs.md)\n"
