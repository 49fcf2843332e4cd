"""The hub of Hugging Face, as its clients see it here: files of the local cache, and the configurations of well-known models.

Many libraries ask for their configurations by `hf_hub_download`. A file that is not in the cache but can be written from what is known
of a model is written into the scratch folder, so that each library reads it in its own way. Weights are asked for in the same way: whoever
asks gets the path of a file without any, even where the cache has them. Any other question gets the client's own error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from ...sandbox.audit_hook import opened
from ..compilers import Replacement, nothing
from ..imported_names import wherever_imported
from . import known_models

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npz", ".h5", ".msgpack", ".onnx")

_written: Dict[str, str] = {}  # by folder, repository and name of a file: where it was written


def known_file(repository: Any, name: str) -> Optional[str]:
    """The path of a file of a repository whose content is known; None where it is not."""
    content = known_models.file_of(str(repository), name.replace("\\", "/"))
    if content is None:
        return None
    folder = os.path.join(tempfile.gettempdir(), "hub", str(repository).replace("/", "--"), os.path.dirname(name))
    path = os.path.join(folder, os.path.basename(name))
    if path not in _written or not os.path.isfile(path):
        os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
        _written[path] = path
    return path


def _file_without_weights(name: str) -> str:
    folder = os.path.join(tempfile.gettempdir(), "hub")
    path = os.path.join(folder, os.path.basename(name))
    if not os.path.isfile(path):
        os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"\x02\0\0\0\0\0\0\0{}")  # A safetensors file of no tensors; as any other kind it cannot be read.
    return path


def has_file(repository: Any, *names: str) -> bool:
    """True if a folder, or the local cache of the hub, has one of these files of a repository."""
    if os.path.isdir(str(repository)):
        return any(os.path.isfile(os.path.join(str(repository), name)) for name in names)
    client = sys.modules.get("huggingface_hub.file_download")
    look = getattr(client, "try_to_load_from_cache", None)
    try:
        return look is not None and any(isinstance(look(str(repository), name), str) for name in names)
    except ValueError:  # No name that a repository may have.
        return False


def config_of(repository: Any) -> Dict[str, Any]:
    """The configuration of a model, from a folder, the cache or what is known; {} where there is none."""
    path: Any = os.path.join(str(repository), "config.json")
    if not os.path.isfile(path):
        look = getattr(sys.modules.get("huggingface_hub.file_download"), "try_to_load_from_cache", None)
        try:
            path = look(str(repository), "config.json") if look is not None else None
        except ValueError:
            path = None
    if not isinstance(path, str):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _asked_for(module: ModuleType, repository: Any, cache_dir: Any) -> None:
    """A run that did not find a repository in the cache depends on its absence, as it does on files that were not there."""
    cache = cache_dir or getattr(getattr(module, "constants", None), "HF_HUB_CACHE", None)
    if cache is not None:
        folder = "models--" + str(repository).replace("/", "--")
        opened.add(os.path.join(os.fspath(cache), folder, "refs", "main"))


def file_download(module: ModuleType) -> List[Replacement]:
    """The replacements in `huggingface_hub.file_download`."""
    download: Callable[..., Any] = module.hf_hub_download
    look: Callable[..., Any] = module.try_to_load_from_cache

    def hf_hub_download(repo_id: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        if str(filename).endswith(WEIGHTS):
            return _file_without_weights(str(filename))
        try:
            return download(repo_id, filename, *args, **{**kwargs, "local_files_only": True, "force_download": False})
        except Exception:
            subfolder = kwargs.get("subfolder") or ""
            _asked_for(module, repo_id, kwargs.get("cache_dir"))
            path = known_file(repo_id, os.path.join(subfolder, str(filename)))
            if path is None:
                raise
            return path

    def try_to_load_from_cache(repo_id: Any, filename: Any, cache_dir: Any = None, *args: Any, **kwargs: Any) -> Any:
        found = look(repo_id, filename, cache_dir, *args, **kwargs)
        if isinstance(found, str):
            return found
        _asked_for(module, repo_id, cache_dir)
        return known_file(repo_id, str(filename)) or found

    return wherever_imported(module, "hf_hub_download", hf_hub_download) + wherever_imported(
        module, "try_to_load_from_cache", try_to_load_from_cache
    )


def _repository_exists(*args: Any, **kwargs: Any) -> bool:
    """HfApi.repo_exists and its like: nobody can tell, and what follows finds out."""
    return True


def api(module: ModuleType) -> List[Replacement]:
    """The replacements in `huggingface_hub.hf_api`: what is sent to the hub is not."""
    client = module.HfApi
    sends = ("upload_file", "upload_folder", "create_repo", "create_commit", "delete_repo", "create_branch", "create_tag", "whoami")
    out: List[Replacement] = [(client, "repo_exists", _repository_exists)] if "repo_exists" in client.__dict__ else []
    return out + [(client, name, nothing) for name in sends if name in client.__dict__]


def login(module: ModuleType) -> List[Replacement]:
    """The replacements in `huggingface_hub._login`, which asks for a password."""
    names = ("login", "notebook_login", "interpreter_login", "logout")
    return [each for name in names if name in module.__dict__ for each in wherever_imported(module, name, nothing)]
