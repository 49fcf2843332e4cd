"""Trackers of training runs: it writes nothing, and answers everything."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Iterator, List

from ..compilers import Replacement


class Record:
    """A writer, a run of a tracker: any method may be called, nothing comes of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes whatever the real one takes."""

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *args: Any) -> None:
        """Nothing to end."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Record()

    def __call__(self, *args: Any, **kwargs: Any) -> "Record":
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forgotten."""

    def __getitem__(self, key: Any) -> "Record":
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def tensorboard(module: ModuleType) -> List[Replacement]:
    """The replacements in `torch.utils.tensorboard` and `tensorboardX`."""
    return [(module, name, Record) for name in ("SummaryWriter", "FileWriter") if name in module.__dict__]


def tracker(module: ModuleType) -> List[Replacement]:
    """The replacements in trackers whose functions talk to a server: `wandb`, `mlflow`."""
    names = (
        "init log watch finish login save alert define_metric set_experiment set_tracking_uri start_run end_run log_metric log_metrics "
        "log_param log_params log_artifact log_artifacts autolog"
    )
    return [(module, name, lambda *args, **kwargs: Record()) for name in names.split() if name in module.__dict__]


def bars_of_notebooks(module: ModuleType) -> List[Replacement]:
    """The replacements in `tqdm.notebook`: bars are those of a terminal, which need nothing else."""
    plain = sys.modules["tqdm.std"].__dict__
    names = {"tqdm": "tqdm", "trange": "trange", "tqdm_notebook": "tqdm", "tnrange": "trange"}
    return [(module, name, plain[bar]) for name, bar in names.items() if name in module.__dict__]
