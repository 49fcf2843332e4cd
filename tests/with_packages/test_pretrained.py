"""Pretrained models: without a network nobody waits for one, and what is known of a model decides what is shown of it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

import fixtures
from network_watch import NetworkWatch
from shapelens.batch import Analysed, Batch
from shapelens.worker.shims.pretrained import known_models

pytestmark = pytest.mark.xdist_group("with_packages/programs_of_pretrained")  # They share a worker.

HEAD = """
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = {model}
        self.head = nn.Linear(768, 2)

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        return self.head(hidden)
"""


class Programs:
    """A worker for all of the programs, whose hub's cache holds one configuration; each program has a folder of its own."""

    def __init__(self, batch: Batch, watch: NetworkWatch, folder: Path) -> None:
        self._batch = batch
        self._folder = folder
        self._count = 0
        self.watch = watch

    async def said(self, text: str, files: Mapping[str, object] | None = None) -> Analysed:
        """What is said of a text, beside which these files are, as JSON."""
        self._count += 1
        folder = self._folder / f"project{self._count}"
        folder.mkdir()
        folder.joinpath("pyproject.toml").write_text("[tool.shapelens]\ndeadline = 60\n")
        for name, content in (files or {}).items():
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).write_text(json.dumps(content))
        path = folder / "model.py"
        path.write_text(text)
        return await self._batch.analyse(path, text)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def programs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Programs]:
    folder = tmp_path_factory.mktemp("programs")
    snapshot = folder / "hub_home" / "hub" / "models--bert-base-cased" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}
    snapshot.joinpath("config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 30522, **sizes}))
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    refs.joinpath("main").write_text("abc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder / "hub_home"))
        watch = NetworkWatch(folder, patch)
        async with Batch(str(fixtures.USER_PYTHON), root=folder) as batch:
            yield Programs(batch, watch, folder)
    assert watch.questions() == []


def _hints(said: Analysed) -> list[str]:
    return [hint.label for hint in said.hints]


async def test_no_question_goes_to_a_network(programs: Programs) -> None:
    text = textwrap.dedent("""
        import open_clip
        import segmentation_models_pytorch as smp
        import timm
        import torch
        import torchvision
        from torch import nn
        from transformers import AutoModel, AutoTokenizer


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.known = AutoModel.from_pretrained("prajjwal1/bert-tiny")
                self.unknown = AutoModel.from_pretrained("nobody/knows-this")
                self.tokenizer = AutoTokenizer.from_pretrained("nobody/knows-this")
                self.timm = timm.create_model("resnet18", pretrained=True, num_classes=0)
                self.unet = smp.Unet("resnet18", encoder_weights="imagenet")
                self.clip = open_clip.create_model("ViT-B-32", pretrained="openai")
                self.resnet = torchvision.models.resnet18(weights="DEFAULT")
                self.hub = torch.hub.load("nobody/knows", "this")

            def forward(self, images):
                features = self.timm(images)
                return features
    """)
    said = await programs.said(text)
    assert programs.watch.questions() == []
    assert "→ [B, 512]" in _hints(said)
    assert not [finding for finding in said.findings if finding.severity == "error"]


async def test_a_configuration_in_the_cache_comes_before_what_is_known(programs: Programs) -> None:
    known = known_models.config_of("bert-base-cased")
    assert known is not None and known.get("hidden_size") != 128
    said = await programs.said(HEAD.format(model='AutoModel.from_pretrained("bert-base-cased")'))
    assert "→ [B, T, 128]" in _hints(said)
    assert [finding.fix.title for finding in said.findings if finding.fix] == ["Change in_features to 128"]


async def test_a_configuration_in_the_workspace_is_used(programs: Programs) -> None:
    sizes = {"hidden_size": 192, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 256}
    config = {"model_type": "bert", "vocab_size": 1000, **sizes}
    said = await programs.said(HEAD.format(model='AutoModel.from_pretrained("./tuned")'), {"tuned/config.json": config})
    assert "→ [B, T, 192]" in _hints(said)


@pytest.mark.parametrize("model", ['AutoModel.from_pretrained("nobody/knows-this")', 'BertModel.from_pretrained("nobody/knows-this")'])
async def test_a_size_that_nobody_knows_is_no_error(programs: Programs, model: str) -> None:
    said = await programs.said(HEAD.format(model=model))
    assert "→ [B, T, ?]" in _hints(said)
    assert "→ [B, T, 2]" in _hints(said)
    assert not said.findings


async def test_a_tokenizer_gives_its_number_where_texts_are_padded_to_it(programs: Programs) -> None:
    text = textwrap.dedent("""
        import torch
        from torch import nn
        from transformers import AutoImageProcessor, AutoTokenizer


        class Inputs(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
                self.processor = AutoImageProcessor.from_pretrained("google/vit-base-patch16-384")
                self.scale = nn.Linear(4, 4)

            def forward(self, x):
                padded = self.tokenizer(["a", "b", "c"], padding="max_length", max_length=128, return_tensors="pt")["input_ids"]
                longest = self.tokenizer(["a", "b", "c"], padding=True, return_tensors="pt")["attention_mask"]
                pixels = self.processor(["picture"], return_tensors="pt")["pixel_values"]
                return self.scale(x)
    """)
    hints = _hints(await programs.said(text))
    assert "→ i64[3, 128]" in hints or "→ [3, 128]" in hints
    assert "→ [3, ?]" in hints or "→ i64[3, ?]" in hints
    assert "→ [1, 3, 384, 384]" in hints


MASKED = """
import torch
from torch import nn
from transformers import BeitForMaskedImageModeling


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.beit = BeitForMaskedImageModeling.from_pretrained("nobody/knows-this")

    def forward(self, pictures):
        mask = torch.ones((len(pictures), 64), dtype=torch.bool)
        return self.beit(pictures, mask).logits


if __name__ == "__main__":
    Masked()(torch.randn(2, 3, 224, 224))
"""
DETECTED = """
import torch
from transformers import AutoImageProcessor, DeformableDetrForObjectDetection

processor = AutoImageProcessor.from_pretrained("SenseTime/deformable-detr")
model = DeformableDetrForObjectDetection.from_pretrained("SenseTime/deformable-detr")
inputs = processor(images=["picture"], return_tensors="pt")
outputs = model(**inputs)
"""


@pytest.mark.parametrize("text", [MASKED, DETECTED], ids=["own sizes", "sizes of the input"])
async def test_what_a_library_makes_of_unknown_sizes_is_no_error(programs: Programs, text: str) -> None:
    said = await programs.said(text)
    assert said.trace.examples, "nothing ran"
    assert not [finding for finding in said.findings if finding.severity == "error"]
