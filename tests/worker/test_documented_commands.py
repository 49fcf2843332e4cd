"""The command lines that a project documents for its programs (worker/loading/documented_commands.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapelens.worker.loading.documented_commands import documented_command


def documented(folder: Path, program: str, texts: dict[str, str], wanted: str = "") -> list[str] | None:
    for name, text in {program: "", **texts}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = documented_command(str(folder / program), str(folder), wanted)
    return None if found is None else found.arguments


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("python train.py -c configs/base.json -m base", ["-c", "configs/base.json", "-m", "base"]),
        ("$ CUDA_VISIBLE_DEVICES=0 python3 -u train.py --lr 1e-3 --offset -1", ["--lr", "1e-3", "--offset", "-1"]),
        ("torchrun --nproc_per_node 8 train.py --batch-size 256 > log.txt 2>&1 &", ["--batch-size", "256"]),
        ("python -m train --config 'a b.yaml' && python test.py", ["--config", "a b.yaml"]),
        ("python train.py --data <DATA> --epochs 3 [--amp]", ["--epochs", "3"]),
        ("python train.py --data /path/to/data --name x", ["--name", "x"]),
        ("python train.py --flag --name x # what is kept", ["--flag", "--name", "x"]),
        ("`python train.py --net resnet18`", ["--net", "resnet18"]),
        ("python other.py --net vgg", None),
        ("python tools/train.py --net vgg", None),  # another file
        ("run train.py --net vgg", None),
        ("python train.py --resume last.pt --net vgg", None),  # of a model that was trained before
        ("python train.py --net 'vgg", None),  # no shell reads this
    ],
)
def test_a_line_of_a_readme_says_the_options(line: str, arguments: list[str] | None, tmp_path: Path) -> None:
    assert documented(tmp_path, "train.py", {"README.md": f"# Net\n\n```sh\n{line}\n```\n"}) == arguments


def test_lines_go_on_behind_a_backslash_and_variables_are_put_in(tmp_path: Path) -> None:
    head = "export CUDA_VISIBLE_DEVICES=1\nmodel=patch\nfor length in 96 192; do\n"
    script = head + "python -u run.py \\\n  --model $model \\\n  --length ${length} --seed $1\ndone\n"
    assert documented(tmp_path, "run.py", {"scripts/long/patch.sh": script}) == ["--model", "patch", "--length", "96"]


def test_what_speaks_of_the_open_file_comes_first(tmp_path: Path) -> None:
    texts = {
        "README.md": "python train.py --net vgg16\n\npython train.py --net resnet18\n",
        "scripts/dense.sh": "python train.py --net d\n",
    }
    assert documented(tmp_path, "train.py", texts) == ["--net", "vgg16"]
    assert documented(tmp_path, "train.py", texts, "resnet") == ["--net", "resnet18"]
    assert documented(tmp_path, "train.py", texts, "dense") == ["--net", "d"]
    assert documented(tmp_path, "train.py", texts, "unknown") == ["--net", "vgg16"]


def test_the_nearest_readme_counts_and_nothing_beyond_the_project(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("python project/tools/train.py --of outside\n")
    texts = {"README.md": "python tools/train.py --of root\n", "tools/README.rst": "python train.py --of tools\n"}
    assert documented(tmp_path / "project", "tools/train.py", texts) == ["--of", "tools"]
    (tmp_path / "project" / "tools" / "README.rst").unlink()
    assert documented(tmp_path / "project", "tools/train.py", {}) == ["--of", "root"]
    (tmp_path / "project" / "README.md").unlink()
    assert documented(tmp_path / "project", "tools/train.py", {}) is None


def test_what_is_no_text_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "README.bin").write_bytes(b"\xff\xfe train.py \x00")
    (tmp_path / "README.huge").write_text("python train.py --of huge\n" * 100_000)
    assert documented(tmp_path, "train.py", {"run.sh": "python train.py --of script\n"}) == ["--of", "script"]
