"""Only regular files of a sane size are read, and nothing waits."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from shapelens.regular_files import read_regular

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")


def test_a_file_is_read_through_a_link_to_it(tmp_path: Path) -> None:
    content = os.urandom(3 << 20)
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link") == read_regular(str(tmp_path / "file")) == content


def test_what_has_no_end_or_waits_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        for name in ("zero", "pipe", "s"):
            with pytest.raises(OSError, match="not a regular file"):
                read_regular(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "absent")
    for name in ("nul\0", "\ud800"):
        with pytest.raises(OSError):
            read_regular(name)


def test_a_large_file_is_refused_whatever_the_system_says_of_its_size(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 32 MB"):
        read_regular(tmp_path / "sparse")
    if Path("/proc/self/maps").exists():
        assert Path("/proc/self/maps").stat().st_size == 0 and len(read_regular("/proc/self/maps")) > 100
        with pytest.raises(OSError, match="larger than 0 MB"):
            read_regular("/proc/self/maps", 100)
