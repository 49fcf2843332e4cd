"""Where documents lie, by their URIs, as the systems write them (lsp/documents/paths.py)."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from shapelens.lsp.documents.paths import path_of, same_path

WINDOWS, POSIX = PureWindowsPath, PurePosixPath


@pytest.mark.parametrize(
    ("uri", "flavour", "path"),
    [
        ("file:///home/me/my%20net.py", POSIX, "/home/me/my net.py"),
        ("file:///home/me/%C3%BCbung.py", POSIX, "/home/me/übung.py"),
        ("file:///home/me/a%5Cb.py", POSIX, "/home/me/a\\b.py"),
        ("file:///c%3A/Users/me/net.py", WINDOWS, "c:\\Users\\me\\net.py"),
        ("file:///C:/Users/me/net.py", WINDOWS, "c:\\Users\\me\\net.py"),
        ("file://server/share/models/net.py", WINDOWS, "\\\\server\\share\\models\\net.py"),
        ("file://wsl.localhost/Ubuntu/home/me/net.py", WINDOWS, "\\\\wsl.localhost\\Ubuntu\\home\\me\\net.py"),
    ],
)
def test_a_uri_is_a_path_of_its_system(uri: str, flavour: type[PurePath], path: str) -> None:
    assert path_of(uri, flavour) == path


@pytest.mark.parametrize(
    ("uri", "flavour"),
    [
        ("untitled:Untitled-1", POSIX),
        ("vscode-vfs://github/owner/name/net.py", POSIX),
        ("file:///home/me/net.py", WINDOWS),  # a file of another system
        ("file:///c%3A/Users/me/net.py", POSIX),
    ],
)
def test_what_has_no_path_here_gets_one_that_no_file_has(uri: str, flavour: type[PurePath]) -> None:
    assert "shapelens-unsaved" in path_of(uri, flavour)


def test_two_documents_without_a_path_do_not_share_one() -> None:
    assert path_of("untitled:Untitled-1") != path_of("untitled:Untitled-2")


@pytest.mark.parametrize(
    ("path", "other", "flavour", "same"),
    [
        ("c:\\Users\\me\\net.py", "C:\\Users\\Me\\Net.py", WINDOWS, True),
        ("c:\\Users\\me\\net.py", "c:/Users/me/net.py", WINDOWS, True),
        ("\\\\Server\\Share\\net.py", "\\\\server\\share\\net.py", WINDOWS, True),
        ("c:\\net.py", "d:\\net.py", WINDOWS, False),
        ("/home/me/net.py", "/home/me/Net.py", POSIX, False),
        ("/home/me/net.py", "/home/me/net.py", POSIX, True),
    ],
)
def test_paths_that_name_one_file(path: str, other: str, flavour: type[PurePath], same: bool) -> None:
    assert same_path(path, other, flavour) == same
