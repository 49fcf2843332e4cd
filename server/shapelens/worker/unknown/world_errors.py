"""Exceptions that tell of the machine rather than of the code: a file, data set, device, network, service or credential is not there.

They are told from mistakes by their type, by the package that raised them and, for the few libraries that raise a plain RuntimeError, by
what they say. An exception that another one led to is judged by that one too.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType, TracebackType
from typing import Iterator, List, Optional, Tuple

from ..sandbox.exceptions import message_of, raised_at, traceback_of

# Packages whose errors are of the world, whatever they are: they open data sets, environments, networks, services and devices.
PACKAGES = (
    "gym", "gymnasium", "ale_py", "atari_py", "dm_control", "mujoco", "mujoco_py", "pettingzoo", "pybullet_envs", "procgen",
    "retro", "torchvision.datasets", "torchaudio.datasets", "torchtext.datasets", "torchtext.vocab", "torchtext.utils", "datasets",
    "torch_geometric.datasets", "torch_geometric.data.download", "ogb", "dgl.data", "sklearn.datasets", "skimage.data", "nltk",
    "spacy", "gensim.downloader", "tensorflow_datasets", "huggingface_hub", "requests", "urllib", "urllib3", "http", "httpx",
    "httpcore", "aiohttp", "socket", "ssl", "ftplib", "fsspec", "gdown", "wget", "kaggle", "kagglehub", "boto3", "botocore",
    "google.cloud", "azure", "openai", "wandb", "mlflow", "comet_ml", "neptune", "clearml", "sqlite3", "psycopg2", "pymysql",
    "pymongo", "redis", "sqlalchemy", "subprocess", "zipfile", "tarfile", "serial", "pynvml", "pyaudio", "sounddevice", "yfinance",
    "tkinter", "google.colab", "IPython", "getpass", "webbrowser", "lmdb",
)  # fmt: skip

# What a plain exception says where the machine lacks something.
SAYS = re.compile(
    r"CUDA|NVIDIA|\bcudnn\b|\bGPUs?\b|No such file|not exist|[Dd]ataset not found|[Dd]ownload|[Cc]onnection|[Nn]etwork is|the network"
    r"|API[_ ]?key|[Cc]redentials?\b|not? (be )?(found or corrupted|accessible)|[Dd]isplay|libGL|not registered|is not installed"
    r"|pip install|conda install|environment variable|files? (was|were|is|are) not|[Uu]nable to (open|load|read|find) file"
)


_NO_PARAMETER = re.compile(r"(\w+)(?:\.__(?:init|new)__)?\(\) got an unexpected keyword argument")


def world_cause(error: BaseException) -> Optional[Tuple[str, str]]:
    """(code, message) where an exception says something of the machine; None where it says something of the code."""
    for each in _chain(error):
        code = _code_of(each)
        if code is not None:
            return code, _message(each, code)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it came of, the first one first."""
    found: List[BaseException] = []
    current: Optional[BaseException] = error
    while current is not None and len(found) < 8:
        found.append(current)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return reversed(found)


def _code_of(error: BaseException) -> Optional[str]:
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError)):
        return "missing-file"
    if isinstance(error, (OSError, EOFError)):  # Whatever the operating system refuses; a question that nobody answers.
        return "unavailable"
    if isinstance(error, ImportError):
        return "missing-import"
    if _is_of_package(type(error).__module__) or _is_of_package(_raised_in(error)):
        return "unavailable"
    if isinstance(error, KeyError) and _asked_environment(error):
        return "unavailable"
    if type(error) in (RuntimeError, ValueError, Exception, AssertionError) and SAYS.search(message_of(error)):
        return "unavailable"
    return "unavailable" if _is_of_another_version(error) else None


def _is_of_another_version(error: BaseException) -> bool:
    """True if an installed package, torch apart, lacks an attribute or a parameter: the code was written for another version of it."""
    if isinstance(error, AttributeError):
        owner = getattr(error, "obj", None)
        return isinstance(owner, (ModuleType, type)) and _is_installed(getattr(owner, "__module__", None) or owner.__name__)
    said = _NO_PARAMETER.search(message_of(error)) if isinstance(error, TypeError) else None
    last = raised_at(error)
    if said is None or last is None:
        return False
    named = _named(said[1], traceback_of(error))
    return _is_installed(named if named is not None else _raised_in(error))


def _named(name: str, traceback: Optional[TracebackType]) -> Optional[str]:
    """The module of the class or function that code calls by this name; None where no frame of a traceback knows it."""
    while traceback is not None:
        for value in list(traceback.tb_frame.f_globals.values()):
            found = value.__dict__.get(name) if type(value) is ModuleType else value if getattr(value, "__name__", None) == name else None
            if isinstance(getattr(found, "__module__", None), str):
                return str(found.__module__)
        traceback = traceback.tb_next
    return None


def _is_installed(module: str) -> bool:
    """True if a module is one of a third-party package other than torch."""
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top != "torch" and any(folder in file for folder in ("site-packages", "dist-packages"))


def _is_of_package(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:count]) in PACKAGES for count in (1, 2, 3))


def _raised_in(error: BaseException) -> str:
    last = raised_at(error)
    return str(last.tb_frame.f_globals.get("__name__", "")) if last is not None else ""


def _asked_environment(error: BaseException) -> bool:
    """`os.environ[name]`"""
    last = raised_at(error)
    return last is not None and last.tb_frame.f_globals.get("__name__") == "os"


def _message(error: BaseException, code: str) -> str:
    if code == "missing-file":
        return "%s is not there, or cannot be read while a model is looked at" % (getattr(error, "filename", None) or "a file")
    text = " ".join(message_of(error).split()) or type(error).__name__
    text = text if len(text) <= 120 else text[:119] + "…"
    if text.startswith("ShapeLens: "):  # Our own guard says it best.
        return text
    if code == "missing-import":
        return "%s: %s" % (type(error).__name__, text)
    return "what this asks for is not at hand while a model is looked at (%s)" % text
