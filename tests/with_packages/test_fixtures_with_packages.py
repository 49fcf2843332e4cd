"""The fixtures that import what programs around models import: data sets, pictures, tables, environments (tools/user_environment.sh)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

import fixtures
from network_watch import NetworkWatch
from shapelens.batch import Batch
from shapelens.worker.shims.pretrained import known_models

PRETRAINED = [name for name in fixtures.names(with_packages=True) if "pretrained" in Path(name).parts]
# A fixture for each way in which a library comes to the configuration of a model. What is in the cache is what is known of the model, so
# that the others, which come to it in the same ways, would show nothing else.
CACHED = {
    "attentions.py": "AutoTokenizer, AutoModel",
    "diffusers_unconditional.py": "a model and a scheduler of diffusers",
    "diffusers_unet.py": "a folder of the model's repository",
    "llama_probe.py": "AutoModelForCausalLM",
    "roberta_tagger.py": "AutoConfig",
    "sentence_encode.py": "sentence_transformers",
    "vit_classifier.py": "a class of transformers",
}
# Which worker has a fixture: those that load the same libraries share one.
LIBRARIES = {
    "transformers": ("transformers", "sentence_transformers", "peft", "diffusers"),
    "pictures": ("timm", "torchvision", "open_clip", "segmentation_models_pytorch"),
}
CONFIGURATIONS = ("config.json", "unet/config.json", "vae/config.json", "scheduler/scheduler_config.json", "model_index.json")


class Watched(NamedTuple):
    """A worker, and what it asks of a network."""

    batch: Batch
    watch: NetworkWatch


def _configurations(model: str) -> dict[str, Any]:
    """The files that a library asks for before it builds a model, by name, as the model's repository has them; {} if it is not known."""
    known = {file: known_models.file_of(model, file) for file in CONFIGURATIONS}
    files: dict[str, Any] = {file: content for file, content in known.items() if content is not None}
    if files and model.startswith("sentence-transformers/"):
        steps = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
        files["modules.json"] = [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{step}"}
            for number, (path, step) in enumerate(steps.items())
        ]
        files["sentence_bert_config.json"] = {"max_seq_length": 256, "do_lower_case": False}
        width = files["config.json"]["hidden_size"]
        files["1_Pooling/config.json"] = {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}
    return files


def _models_named_by(fixture: str) -> dict[str, dict[str, Any]]:
    """The models of the hub that a fixture names and something is known of, with their files."""
    named = re.findall(r"""["']([\w.-]+(?:/[\w.-]+)?)["']""", (fixtures.FOLDER / fixture).read_text())
    models = [f"sentence-transformers/{name}" if name.startswith("all-") else name for name in named]
    return {model: files for model in models if (files := _configurations(model))}


def _cache_of_the_hub(folder: Path) -> None:
    """What the hub's client leaves behind once the configurations of the models that the fixtures name were downloaded."""
    for model, files in (each for fixture in PRETRAINED for each in _models_named_by(fixture).items()):
        repository = folder / ("models--" + model.replace("/", "--"))
        for file, content in files.items():
            path = repository / "snapshots" / "abc" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
        repository.joinpath("refs").mkdir(exist_ok=True)
        repository.joinpath("refs", "main").write_text("abc")


async def _watched(folder: Path, hub: Path) -> AsyncIterator[Watched]:
    """One worker for all files, as an editor has."""
    assert fixtures.USER_PYTHON.exists(), "run tools/user_environment.sh first"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(hub))
        watch = NetworkWatch(folder, patch)
        async with Batch(str(fixtures.USER_PYTHON), root=fixtures.FOLDER) as batch:
            yield Watched(batch, watch)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def empty_hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    folder = tmp_path_factory.mktemp("empty")
    async for watched in _watched(folder, folder / "hub_home"):
        yield watched


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cached_configurations(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    folder = tmp_path_factory.mktemp("cached")
    _cache_of_the_hub(folder / "hub_home" / "hub")
    async for watched in _watched(folder, folder / "hub_home"):
        yield watched


def _shares(fixture: str) -> str:
    """The group of the fixtures that share a worker with one."""
    text = (fixtures.FOLDER / fixture).read_text()
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    return next((group for group, libraries in LIBRARIES.items() if imported & set(libraries)), "programs")


NAMES = fixtures.names(with_packages=True)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(f"with_packages/{_shares(name)}")) for name in NAMES])
async def test_fixture(empty_hub: Watched, name: str) -> None:
    await fixtures.check(empty_hub.batch, name)
    assert empty_hub.watch.questions() == []


def test_what_is_cached_is_of_models_that_are_known() -> None:
    assert {name for name in PRETRAINED if Path(name).name in CACHED and _models_named_by(name)} == {
        f"with_packages/pretrained/{name}" for name in CACHED
    }


@pytest.mark.xdist_group("with_packages/cached")
@pytest.mark.parametrize("name", [f"with_packages/pretrained/{name}" for name in CACHED])
async def test_pretrained_with_cached_configurations(cached_configurations: Watched, name: str) -> None:
    await fixtures.check(cached_configurations.batch, name)
    assert cached_configurations.watch.questions() == []
