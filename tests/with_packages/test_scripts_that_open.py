"""A hundred scripts that open at module level what is not here (data sets, environments, files): none has an error, and a batch is shaped
as its documentation says."""

from __future__ import annotations

import re
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import fixtures
from shapelens.analysis.display.hints import Hint
from shapelens.batch import Batch

DATA_SET = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

plain = transforms.ToTensor()
cut = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
data = datasets.{opened}
loader = DataLoader(data, batch_size=8, shuffle=True)
x, y = next(iter(loader))
scaled = x * 0.5
"""
# The data set, and what a batch of eight holds: pictures and targets.
DATA_SETS = [
    *(
        (f'{name}("data", train=True, download=True, transform=plain)', "[8, 1, 28, 28]", "[8]")
        for name in ("MNIST", "FashionMNIST", "KMNIST")
    ),
    ('QMNIST("data", what="test", transform=plain)', "[8, 1, 28, 28]", "[8]"),
    ('EMNIST("data", split="balanced", download=True, transform=plain)', "[8, 1, 28, 28]", "[8]"),
    ('CIFAR10("data", train=True, download=True, transform=plain)', "[8, 3, 32, 32]", "[8]"),
    ('CIFAR100("data", train=False, download=True, transform=plain)', "[8, 3, 32, 32]", "[8]"),
    ('SVHN("data", split="train", download=True, transform=plain)', "[8, 3, 32, 32]", "[8]"),
    ('STL10("data", split="test", transform=plain)', "[8, 3, 96, 96]", "[8]"),
    ('USPS("data", transform=plain)', "[8, 1, 16, 16]", "[8]"),
    ('SEMEION("data", transform=plain)', "[8, 1, 16, 16]", "[8]"),
    ('Omniglot("data", background=False, transform=plain)', "[8, 1, 105, 105]", "[8]"),
    ('FER2013("data", transform=plain)', "[8, 1, 48, 48]", "[8]"),
    ('EuroSAT("data", transform=plain)', "[8, 3, 64, 64]", "[8]"),
    ('PCAM("data", transform=plain)', "[8, 3, 96, 96]", "[8]"),
    ('RenderedSST2("data", transform=plain)', "[8, 3, 448, 448]", "[8]"),
    ('CLEVRClassification("data", transform=plain)', "[8, 3, 320, 480]", "[8]"),
    ('CelebA("data", split="train", transform=plain)', "[8, 3, 218, 178]", "[8, 40]"),
    ('LFWPeople("data", transform=plain)', "[8, 3, 250, 250]", "[8]"),
    ('FakeData(64, (3, 20, 30), 7, transform=plain)', "[8, 3, 20, 30]", "[8]"),
    *(
        (f'{name}("data", transform=cut)', "[8, 3, 224, 224]", "[8]")
        for name in (
            "Caltech101", "Caltech256", "Country211", "DTD", "FGVCAircraft", "Flowers102", "Food101", "GTSRB", "ImageNet", "Imagenette",
            "INaturalist", "OxfordIIITPet", "Places365", "StanfordCars", "SUN397", "ImageFolder",
        )
    ),
    ('ImageFolder(root="data/train", transform=transforms.Compose([transforms.RandomResizedCrop(96), plain]))', "[8, 3, 96, 96]", "[8]"),
    ('CIFAR10("data", transform=cut)', "[8, 3, 224, 224]", "[8]"),
    ('MNIST("data", transform=transforms.Compose([transforms.Pad(2), plain]))', "[8, 1, 32, 32]", "[8]"),
]  # fmt: skip
ENVIRONMENT = """
import gymnasium as gym
import torch
from torch import nn

env = gym.make("{opened}")
state, info = env.reset()
x = torch.as_tensor(state).unsqueeze(0)
y = x.float() / 255
"""
# The environment, and what a state is, with one dim before it. For two of them nothing documents it.
ENVIRONMENTS = [
    *((name, "[1, 4]") for name in ("CartPole-v0", "CartPole-v1", "InvertedPendulum-v4")),
    *((name, "[1, 2]") for name in ("MountainCar-v0", "MountainCarContinuous-v0")),
    *((name, "[1, 3]") for name in ("Pendulum-v0", "Pendulum-v1")),
    ("Acrobot-v1", "[1, 6]"),
    *((name, "[1, 8]") for name in ("LunarLander-v2", "LunarLanderContinuous-v2", "Swimmer-v4")),
    *((name, "[1, 24]") for name in ("BipedalWalker-v3", "BipedalWalkerHardcore-v3")),
    *((name, "[1, 17]") for name in ("HalfCheetah-v2", "HalfCheetah-v4", "Walker2d-v4")),
    ("Hopper-v4", "[1, 11]"),
    ("Ant-v4", "[1, 27]"),
    ("Humanoid-v4", "[1, 376]"),
    *((name, "[1, 210, 160, 3]") for name in ("PongNoFrameskip-v4", "BreakoutNoFrameskip-v4", "ALE/Seaquest-v5", "SpaceInvaders-v0")),
    ("Pong-ram-v0", "[1, 128]"),
    ("OurFactory-v7", "?"),
    ("SuperMarioBros-1-1-v0", "?"),
]
FILE = """
import glob
import json
import os
import pickle
import sys

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn

{opened}
"""
# What the script does, and what it makes of that in its last line; "" where that is no tensor.
FILES = [
    ('table = pd.read_csv("prices.csv")\ny = torch.tensor(table["price"].values, dtype=torch.float32)', "?"),
    ('table = pd.read_csv("prices.csv", header=None)\nx = torch.tensor(table.values)', "?"),
    ('table = pd.read_excel("prices.xlsx")\nx = torch.tensor(table[["a", "b"]].values)', "?"),
    ('table = pd.read_parquet("prices.parquet")\nnames = list(table.columns)', ""),
    ('table = pd.read_json("lines.json", lines=True)\nlabels = table["label"].unique()', ""),
    ('array = np.load("x.npy")\nx = torch.from_numpy(array)', "?"),
    ('arrays = np.load("x.npz")\nx = torch.from_numpy(arrays["x"])', "?"),
    ('array = np.loadtxt("x.txt", delimiter=",")\nx = torch.tensor(array[:, :3])', "?"),
    ('array = np.genfromtxt("x.csv")\nx = torch.tensor(array)', "?"),
    ('picture = Image.open("cat.jpg").convert("RGB").resize((64, 48))\nx = torch.from_numpy(np.array(picture))', "[48, 64, 3]"),
    ('picture = Image.open("cat.jpg").convert("L")\nx = torch.from_numpy(np.array(picture))', "[?, ?]"),
    ('from torchvision.io import read_image\nx = read_image("cat.jpg")', "[?, ?, ?]"),
    ('from torchvision.io import ImageReadMode, read_image\nx = read_image("cat.jpg", mode=ImageReadMode.RGB) / 255', "[3, ?, ?]"),
    ('with open("text.txt") as file:\n    text = file.read()\nchars = sorted(set(text))\n'
     'x = torch.tensor([chars.index(c) for c in text])', "[?]"),
    ('lines = open("names.txt", encoding="utf-8").read().splitlines()\nx = torch.zeros(len(lines), 5)', "[?, 5]"),
    ('with open("config.json") as file:\n    config = json.load(file)\nlayer = nn.Linear(config["width"], 3)\nx = layer.bias', "[3]"),
    ('with open("vocabulary.pkl", "rb") as file:\n    words = pickle.load(file)\nx = nn.Embedding(len(words), 32).weight', "[?, 32]"),
    ('import yaml\n\nwith open("config.yaml") as file:\n    config = yaml.safe_load(file)\nx = torch.zeros(2, config["width"])', "[2, ?]"),
    ('net = nn.Linear(4, 3)\nnet.load_state_dict(torch.load("net.pt"))\nx = net.weight', "[3, 4]"),
    ('checkpoint = torch.load("net.pt", map_location="cpu")\nepoch = checkpoint["epoch"] + 1', ""),
    ('net = torch.load("whole.pt")\nnet.eval()', ""),
    ('files = sorted(os.listdir("pictures"))\nx = torch.zeros(len(files), 3)', "[?, 3]"),
    ('files = glob.glob("pictures/*.png")\nfirst = Image.open(files[0])', ""),
    ('import csv\n\nwith open("rows.csv") as file:\n    rows = list(csv.reader(file))\nx = torch.zeros(len(rows), 2)', "[?, 2]"),
    ('key = os.environ["API_KEY"]\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('path = sys.argv[1]\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('import argparse\n\nparser = argparse.ArgumentParser()\nparser.add_argument("data")\n'
     'parser.add_argument("--batch", type=int, default=16)\nargs = parser.parse_args()\nx = torch.zeros(args.batch, 3)', "[16, 3]"),
    ('import requests\n\nanswer = requests.get("https://example.org/data.json")\nx = torch.tensor(answer.json()["values"])', "?"),
    ('from urllib.request import urlretrieve\n\nurlretrieve("https://example.org/x.npy", "x.npy")\n'
     'x = torch.from_numpy(np.load("x.npy"))', "?"),
    ('import sqlite3\n\nrows = sqlite3.connect("data.db").execute("select a from t").fetchall()\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('import zipfile\n\nwith zipfile.ZipFile("data.zip") as archive:\n    archive.extractall("data")\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('from datasets import load_dataset\n\nreviews = load_dataset("imdb", split="train")\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('device = torch.device("cuda:1")\nx = torch.zeros(2, 3).to(device)', "[2, 3]"),
    ('import torch.distributed as dist\n\ndist.init_process_group("nccl")\nx = torch.zeros(2, 3).cuda()', "[2, 3]"),
    ('import wandb\n\nwandb.init(project="mine")\nx = torch.zeros(2, 3)', "[2, 3]"),
    ('os.makedirs("runs/1")\ntorch.save(torch.zeros(2), "runs/1/x.pt")\nx = torch.load("runs/1/x.pt")', "[2]"),
]  # fmt: skip
SCRIPTS = {
    **{opened: (DATA_SET.format(opened=opened), {f"x: {x}", f"y: {y}"}) for opened, x, y in DATA_SETS},
    **{opened: (ENVIRONMENT.format(opened=opened), {f"→ {x}"}) for opened, x in ENVIRONMENTS},
    **{opened: (FILE.format(opened=opened), {f"→ {x}"} if x else set()) for opened, x in FILES},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def batch(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Batch]:
    """One worker for all scripts, in a folder where nothing is."""
    async with Batch(str(fixtures.USER_PYTHON), root=tmp_path_factory.mktemp("scripts")) as batch:
        yield batch


def test_there_are_a_hundred() -> None:
    assert len(SCRIPTS) >= 100


@pytest.mark.parametrize("opened", SCRIPTS)
async def test_what_is_not_here_is_no_error(batch: Batch, opened: str) -> None:
    text, expected = SCRIPTS[opened]
    said = await batch.analyse(Path(batch.root, "script.py"), textwrap.dedent(text))
    assert not [finding for finding in said.findings if finding.severity == "error"]
    assert expected <= {part for hint in said.hints for part in _parts(hint)}


def _parts(hint: Hint) -> list[str]:
    """`x: [8, 3]` and `y: [8]` of a line's hint, the dtypes left out."""
    whole = hint.label.replace("f64[", "[").replace("u8[", "[").replace("i64[", "[")
    return [whole, *re.split(r", (?=\w+: )", whole)]
