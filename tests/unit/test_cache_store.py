"""The store: values in files of a folder, bounded, whatever happens to the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shapelens.cache.inputs import digest
from shapelens.cache.store import Store

KEY, OTHER = digest("one"), digest("two")
WRITER = """
import sys
from pathlib import Path
from shapelens.cache.store import Store
store = Store(Path(sys.argv[1]))
for number in range(150):
    store.put(sys.argv[2], {"writer": sys.argv[3], "text": sys.argv[3] * 20_000})
"""


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*/*") if path.is_file()]


def test_a_value_comes_back_also_in_another_process(tmp_path: Path) -> None:
    Store(tmp_path / "cache").put(KEY, {"shape": [None, 3], "text": "é→"})
    assert Store(tmp_path / "cache").get(KEY) == {"shape": [None, 3], "text": "é→"}
    assert Store(tmp_path / "cache").get(OTHER) is None


def test_a_damaged_entry_is_ignored_and_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for damage in (b"", b"\0" * 40, "cut"):
        store.put(KEY, list(range(1000)))
        [path] = entries(tmp_path)
        path.write_bytes(path.read_bytes()[:-7] if damage == "cut" else damage)  # type: ignore[arg-type]
        assert store.get(KEY) is None
        assert not path.exists()


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=400_000)
    blocks = [os.urandom(15_000).hex() for _ in range(40)]  # about 17 kB each, once compressed
    store.put(KEY, blocks[0])
    for number, block in enumerate(blocks):
        store.put(digest(number), block)
        os.utime(store._path(digest(number)), (number + 1, number + 1))
        assert store.get(KEY) == blocks[0], "it is used all the time"
    assert store.get(digest(0)) is None and store.get(digest(39)) == blocks[39]
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= 500_000


def test_several_processes_write_the_same_entry_and_each_reader_finds_a_whole_one(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), KEY, letter]) for letter in "ab"]
    seen = []
    while any(writer.poll() is None for writer in writers):
        seen.append(Store(tmp_path).get(KEY))
    found = [value for value in seen if value is not None]
    assert found and all(value["text"] == value["writer"] * 20_000 for value in found)
    first = seen.index(found[0])
    assert None not in seen[first:], "once there is a value it never vanishes"
    assert len(entries(tmp_path)) == 1, "nothing unfinished is left behind"


def test_a_folder_that_cannot_be_written_keeps_nothing_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "cache")
    store.put(KEY, 1)
    assert store.get(KEY) is None and store.clear() == 0


def test_clear_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    store.put(KEY, "x" * 1000)
    assert store.clear() > 0
    assert not (tmp_path / "cache").exists() and store.get(KEY) is None
