"""torchvision's data sets as its documentation describes them: what a sample is, how many there are, and in how many classes."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple


class Documented(NamedTuple):
    """A data set as documented.

    mode: that of its pictures, as PIL calls it. size: height and width of them; None where each has its own.
    target: "class" | "classes from 1" is not told apart; "attributes" (a tensor of numbers), "mask" (a picture of the same size), "text",
    "texts", "none" (the sample is the picture alone), "objects" (of unknown number), "video" (the sample is video, audio and class),
    "pictures" (two pictures and what lies between them).
    lengths: the number of samples by the value of the argument `split`, which says which part of it is meant.
    data: how its attribute `data` is laid out, if it has one: "NHW" a tensor, "NHWC" or "NCHW" an array.
    """

    mode: str
    size: Optional[Tuple[int, int]]
    classes: Optional[int] = None
    target: str = "class"
    split: str = ""
    lengths: Dict[str, int] = {}  # noqa: RUF012  A tuple's default is shared, and never changed.
    data: str = ""


_MNIST = {"True": 60_000, "False": 10_000}
_CIFAR = {"True": 50_000, "False": 10_000}
_EMNIST = {
    "byclass True": 697_932, "byclass False": 116_323, "bymerge True": 697_932, "bymerge False": 116_323, "balanced True": 112_800,
    "balanced False": 18_800, "letters True": 124_800, "letters False": 20_800, "digits True": 240_000, "digits False": 40_000,
    "mnist True": 60_000, "mnist False": 10_000,
}  # fmt: skip
EMNIST_CLASSES = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10}

DATA_SETS: Dict[str, Documented] = {
    "MNIST": Documented("L", (28, 28), 10, "class", "train", _MNIST, "NHW"),
    "FashionMNIST": Documented("L", (28, 28), 10, "class", "train", _MNIST, "NHW"),
    "KMNIST": Documented("L", (28, 28), 10, "class", "train", _MNIST, "NHW"),
    "QMNIST": Documented("L", (28, 28), 10, "class", "train", {"True": 60_000, "False": 60_000}, "NHW"),
    "EMNIST": Documented("L", (28, 28), None, "class", "split train", _EMNIST, "NHW"),
    "MovingMNIST": Documented("L", (64, 64), None, "frames", "", {"": 10_000}),
    "CIFAR10": Documented("RGB", (32, 32), 10, "class", "train", _CIFAR, "NHWC"),
    "CIFAR100": Documented("RGB", (32, 32), 100, "class", "train", _CIFAR, "NHWC"),
    "SVHN": Documented("RGB", (32, 32), 10, "class", "split", {"train": 73_257, "test": 26_032, "extra": 531_131}, "NCHW"),
    "STL10": Documented(
        "RGB", (96, 96), 10, "class", "split",
        {"train": 5000, "test": 8000, "unlabeled": 100_000, "train+unlabeled": 105_000}, "NCHW",
    ),
    "USPS": Documented("L", (16, 16), 10, "class", "train", {"True": 7291, "False": 2007}),
    "SEMEION": Documented("L", (16, 16), 10, "class", "", {"": 1593}),
    "Omniglot": Documented("L", (105, 105), None, "class", "background", {"True": 19_280, "False": 13_180}),
    "FER2013": Documented("L", (48, 48), 7, "class", "split", {"train": 28_709, "test": 7178}),
    "EuroSAT": Documented("RGB", (64, 64), 10, "class", "", {"": 27_000}),
    "PCAM": Documented("RGB", (96, 96), 2, "class", "split", {"train": 262_144, "val": 32_768, "test": 32_768}),
    "RenderedSST2": Documented("RGB", (448, 448), 2, "class", "split", {"train": 6920, "val": 872, "test": 1821}),
    "CLEVRClassification": Documented("RGB", (320, 480), None, "class", "split", {"train": 70_000, "val": 15_000, "test": 15_000}),
    "CelebA": Documented(
        "RGB", (218, 178), None, "attributes", "split", {"train": 162_770, "valid": 19_867, "test": 19_962, "all": 202_599}
    ),
    "LFWPeople": Documented("RGB", (250, 250), 5749, "class", "split", {"10fold": 13_233, "train": 9525, "test": 3708}),
    "LFWPairs": Documented("RGB", (250, 250), 2, "pair"),
    "Cityscapes": Documented("RGB", (1024, 2048), None, "mask", "split", {"train": 2975, "val": 500, "test": 1525}),
    "Caltech101": Documented("RGB", None, 101, "class", "", {"": 8677}),
    "Caltech256": Documented("RGB", None, 257, "class", "", {"": 30_607}),
    "Country211": Documented("RGB", None, 211, "class", "split", {"train": 31_650, "valid": 10_550, "test": 21_100}),
    "DTD": Documented("RGB", None, 47, "class", "split", {"train": 1880, "val": 1880, "test": 1880}),
    "FGVCAircraft": Documented("RGB", None, 100, "class", "split", {"train": 3334, "val": 3333, "trainval": 6667, "test": 3333}),
    "Flowers102": Documented("RGB", None, 102, "class", "split", {"train": 1020, "val": 1020, "test": 6149}),
    "Food101": Documented("RGB", None, 101, "class", "split", {"train": 75_750, "test": 25_250}),
    "GTSRB": Documented("RGB", None, 43, "class", "split", {"train": 26_640, "test": 12_630}),
    "ImageNet": Documented("RGB", None, 1000, "class", "split", {"train": 1_281_167, "val": 50_000}),
    "Imagenette": Documented("RGB", None, 10, "class", "split", {"train": 9469, "val": 3925}),
    "INaturalist": Documented("RGB", None, None, "class"),
    "OxfordIIITPet": Documented("RGB", None, 37, "class", "split", {"trainval": 3680, "test": 3669}),
    "Places365": Documented("RGB", None, 365, "class", "split", {"train-standard": 1_803_460, "val": 36_500}),
    "StanfordCars": Documented("RGB", None, 196, "class", "split", {"train": 8144, "test": 8041}),
    "SUN397": Documented("RGB", None, 397, "class", "", {"": 108_754}),
    "LSUN": Documented("RGB", None, None, "class"),
    "LSUNClass": Documented("RGB", None, None, "class"),
    "ImageFolder": Documented("RGB", None, None, "class"),
    "DatasetFolder": Documented("RGB", None, None, "class"),
    "FakeData": Documented("RGB", None, None, "class"),
    "VOCSegmentation": Documented("RGB", None, 21, "mask"),
    "VOCDetection": Documented("RGB", None, 20, "objects"),
    "SBDataset": Documented("RGB", None, 20, "mask", "image_set", {"train": 8498, "val": 2857, "train_noval": 5623}),
    "CocoDetection": Documented("RGB", None, None, "objects"),
    "CocoCaptions": Documented("RGB", None, None, "texts"),
    "Kitti": Documented("RGB", None, None, "objects", "train", {"True": 7481, "False": 7518}),
    "WIDERFace": Documented("RGB", None, None, "objects", "split", {"train": 12_880, "val": 3226, "test": 16_097}),
    "Flickr8k": Documented("RGB", None, None, "texts"),
    "Flickr30k": Documented("RGB", None, None, "texts"),
    "SBU": Documented("RGB", None, None, "text"),
    "UCF101": Documented("RGB", (240, 320), 101, "video"),
    "HMDB51": Documented("RGB", None, 51, "video"),
    "Kinetics": Documented("RGB", None, None, "video"),
}  # fmt: skip
