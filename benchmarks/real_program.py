"""Runs one program on the CPU with small made-up data, and says what shapes the names that it assigns held.

    PYTHON benchmarks/real_program.py

It is started with the interpreter of the program, for `program_truth.py` and `plant_training.py`: each line of its input is a job of JSON
({"file", "text", "folder", "batches", "seconds"}, the folder being where it runs, with the data that it reads), run in a forked process and
answered by one line. Data sets of torchvision are random pictures of their documented sizes; a loader gives its first two batches, or as
many as the job says; Lightning's trainer takes as many steps of each kind; other loops end after a while. A statement that fails (a file
that is not there) ends alone, and is told of, with the statements of the module that read what it would have made ("doubtful").
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import resource
import signal
import sys
import time
import types
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

SECONDS = 45
MEMORY = 14 << 30  # bytes of address space
BATCHES = 2  # of each pass through a loader, where the job says nothing
TURNS = 3  # that a loop takes at least, and at most once it has lasted LOOP_SECONDS
LOOP_SECONDS = 1.5
MOST_ITEMS = 6
# Documented sizes of torchvision's data sets: (height, width, channels), classes, examples for training and for testing.
PICTURES = {
    "MNIST": ((28, 28, 1), 10, 60000, 10000), "FashionMNIST": ((28, 28, 1), 10, 60000, 10000), "KMNIST": ((28, 28, 1), 10, 60000, 10000),
    "CIFAR10": ((32, 32, 3), 10, 50000, 10000), "CIFAR100": ((32, 32, 3), 100, 50000, 10000), "SVHN": ((32, 32, 3), 10, 73257, 26032),
}  # fmt: skip


class _Limits:
    """Of the run under way."""

    batches = BATCHES


limits = _Limits()


class Recorder:
    """What was seen: for each line and name the shapes that it held."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, str, str], list[Any]] = {}
        self.failures: list[tuple[int, str]] = []

    def held(self, line: int, name: str, function: str, value: Any) -> None:
        import torch

        shape = shape_of(value, torch)
        if shape is not None:
            found = self.seen.setdefault((line, name, function), [])
            if shape not in found:
                found.append(shape)


def shape_of(value: Any, torch: Any) -> Any:
    """The shape of a tensor; for a short tuple or list of them a list of their shapes, as ["sequence", ...]; None for anything else."""
    if isinstance(value, torch.Tensor):
        return list(value.shape) if value.layout is torch.strided and not value.is_nested else None
    if type(value) in (tuple, list) and 0 < len(value) <= MOST_ITEMS and all(isinstance(item, torch.Tensor) for item in value):
        return ["sequence", *(list(item.shape) for item in value)]
    return None


class _Watch(ast.NodeTransformer):
    """Reports each assigned name after its statement, and lets loops end."""

    def __init__(self) -> None:
        self.functions: list[str] = []

    @property
    def function(self) -> str:
        return ".".join(self.functions)

    def _report(self, target: ast.expr) -> list[ast.stmt]:
        if isinstance(target, (ast.Tuple, ast.List)):
            return [statement for part in target.elts for statement in self._report(part)]
        if isinstance(target, ast.Name):
            name = target.id
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            name = target.attr
        else:
            return []
        read: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
        arguments: list[ast.expr] = [ast.Constant(target.lineno), ast.Constant(name), ast.Constant(self.function), read]
        call = ast.Call(ast.Name("__held__", ast.Load()), arguments, [])
        return [ast.fix_missing_locations(ast.copy_location(ast.Expr(call), target))]

    def visit_Assign(self, node: ast.Assign) -> Any:
        return [node, *(statement for target in node.targets for statement in self._report(target))]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return [node, *self._report(node.target)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return [node, *(self._report(node.target) if node.value is not None else [])]

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.body = [*self._report(node.target), *node.body]
        node.iter = ast.copy_location(ast.Call(ast.Name("__turns__", ast.Load()), [node.iter], []), node.iter)
        return ast.fix_missing_locations(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()
        return node

    def visit_FunctionDef(self, node: Any) -> Any:
        self.functions.append(node.name)
        self.generic_visit(node)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        reports = [self._report(ast.copy_location(ast.Name(each.arg, ast.Load()), each)) for each in arguments]
        node.body = [*node.body[:start], *(statement for report in reports for statement in report), *node.body[start:]]
        self.functions.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


def turns(iterable: Any) -> Iterator[Any]:
    """The items of a loop, as long as it does not take long."""
    start = time.perf_counter()
    for count, item in enumerate(iterable):
        if count >= TURNS and time.perf_counter() - start > LOOP_SECONDS:
            return
        yield item


# --- the world around a program ---


def _small_world() -> None:
    """Small data in the place of what would be loaded, and a trainer that takes two steps."""
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    initialise, iterate = DataLoader.__init__, DataLoader.__iter__

    def initialised(loader: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
            kwargs.pop(name, None)
        initialise(loader, *args[:5], **kwargs)

    def first_batches(loader: Any) -> Iterator[Any]:
        for count, batch in enumerate(iterate(loader)):
            if count >= limits.batches:
                return
            yield batch

    DataLoader.__init__, DataLoader.__iter__ = initialised, first_batches  # type: ignore[method-assign, assignment]
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign, assignment]
    with contextlib.suppress(ImportError):
        _small_pictures()
    for name in ("lightning.pytorch", "pytorch_lightning"):
        with contextlib.suppress(ImportError):
            _short_training(__import__(name, fromlist=["Trainer"]))
    with contextlib.suppress(ImportError):
        _old_metrics()


def _small_pictures() -> None:
    import numpy
    import torch
    from PIL import Image
    from torchvision import datasets

    def stand_in(name: str, size: tuple[int, int, int], classes: int, training: int, testing: int) -> type:
        class Pictures(torch.utils.data.Dataset):  # type: ignore[type-arg]
            def __init__(
                self, root: Any = "", train: bool = True, transform: Any = None, target_transform: Any = None, **more: Any
            ) -> None:
                self.transform, self.target_transform = transform, target_transform
                self.train = train if "split" not in more else more["split"] == "train"
                count = training if self.train else testing
                self.targets = torch.arange(count) % classes if size[2] == 1 else [number % classes for number in range(count)]
                shape = (count, *size[:2]) if size[2] == 1 else (count, *size)
                self.data = torch.zeros(shape, dtype=torch.uint8) if size[2] == 1 else numpy.zeros(shape, numpy.uint8)
                self.classes = [str(number) for number in range(classes)]

            def __len__(self) -> int:
                return len(self.targets)

            def __getitem__(self, index: int) -> Any:
                picture = Image.fromarray(numpy.random.randint(0, 255, size[:2] if size[2] == 1 else size, dtype=numpy.uint8))
                target = int(self.targets[index])
                given = self.transform(picture) if self.transform is not None else picture
                return given, self.target_transform(target) if self.target_transform is not None else target

        Pictures.__name__ = Pictures.__qualname__ = name
        return Pictures

    for name, facts in PICTURES.items():
        made = stand_in(name, *facts)
        for owner in (datasets, getattr(datasets, name.lower().replace("fashion", "").replace("kmnist", "mnist"), None)):
            if owner is not None:
                setattr(owner, name, made)


def _short_training(lightning: Any) -> None:
    import inspect

    initialise = lightning.Trainer.__init__
    known = set(inspect.signature(initialise).parameters)

    def initialised(trainer: Any, *args: Any, **kwargs: Any) -> None:
        kwargs = {name: value for name, value in kwargs.items() if name in known}
        short = {f"limit_{kind}_batches": limits.batches for kind in ("train", "val", "test", "predict")}
        quiet = {
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "callbacks": None,
        }
        place = {"accelerator": "cpu", "devices": 1, "strategy": "auto", "precision": 32, "max_epochs": 1}
        initialise(trainer, **{**kwargs, **short, **quiet, **place})

    lightning.Trainer.__init__ = initialised


def _old_metrics() -> None:
    """`torchmetrics.Accuracy()`, as it was written before it wanted a task."""
    import torchmetrics

    made = torchmetrics.Accuracy

    class Accuracy(torchmetrics.Metric):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return made(*args, **kwargs) if "task" in kwargs or args else made(task="multiclass", num_classes=kwargs.get("num_classes", 10))

    torchmetrics.Accuracy = Accuracy


# --- one run ---


def run(file: Path, text: str) -> dict[str, Any]:
    """What the names of a program held, which of its statements failed with which exception, and what was warned of."""
    recorder = Recorder()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = module.__dict__
    helpers: dict[str, Callable[..., Any]] = {"__held__": recorder.held, "__turns__": turns}
    names.update({"__file__": str(file), **helpers})
    tree = _Watch().visit(ast.parse(text, str(file)))
    flags = sum(
        getattr(__import__("__future__"), part.name).compiler_flag
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for part in node.names
    )
    silent: Any = io.StringIO()
    finished = True
    failed: list[int] = []
    start = time.perf_counter()
    warned = warnings.catch_warnings(record=True)
    heard = warned.__enter__()
    warnings.simplefilter("always")
    for node in tree.body:
        try:
            with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
                exec(compile(ast.fix_missing_locations(ast.Module([node], [])), str(file), "exec", flags, True), names)
        except TimeoutError:  # noqa: PERF203
            finished = False
            break
        except BaseException as error:
            recorder.failures.append((_line(error, file, node.lineno), f"{type(error).__name__}: {str(error)[:200]}"))
            failed.append(node.lineno)
    doubtful = _doubtful(ast.parse(text), failed)
    seen = [[*place, shapes] for place, shapes in recorder.seen.items()]
    said = sorted({str(each.message)[:200] for each in heard})
    seconds = round(time.perf_counter() - start, 1)
    told = {"failures": recorder.failures, "doubtful": doubtful, "warnings": said}
    return {"seen": seen, **told, "finished": finished, "seconds": seconds}


def _doubtful(tree: ast.Module, failed: Collection[int]) -> list[int]:
    """The lines of a module's own statements that read names which a statement that failed would have filled, directly or not."""
    names: set[str] = set()
    lines: list[int] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        parts = list(ast.walk(node))
        read = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        filled = {part.value.id for part in parts if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.value, ast.Name)}
        if node.lineno in failed:
            names |= stored | filled
        elif read & names:
            names |= stored
            lines += range(node.lineno, (node.end_lineno or node.lineno) + 1)
        else:
            names -= stored
    return lines


def _line(error: BaseException, file: Path, line: int) -> int:
    """The innermost line of the program that an exception came through."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(file):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _stop(*_: Any) -> None:
    raise TimeoutError


def _answer(job: dict[str, Any], out: Any) -> None:
    """Run one program in this process, which ends then."""
    file = Path(job["file"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.chdir(job["folder"])
    sys.path.insert(0, job["folder"])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(job.get("seconds", SECONDS))
    sys.argv = [str(file)]
    limits.batches = job.get("batches", BATCHES)
    result = run(file, job["text"])
    signal.alarm(0)
    out.write(json.dumps(result) + "\n")
    out.flush()
    os._exit(0)


def main() -> None:
    """Answer each job of the input."""
    out = os.fdopen(os.dup(1), "w")
    _small_world()
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            _answer(job, out)
        deadline = time.monotonic() + job.get("seconds", SECONDS) + 15
        done, status = 0, 0
        while not done and time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0 if done else 0.02)
        if not done:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if status:
            out.write(json.dumps({"seen": [], "failures": [], "warnings": [], "finished": False, "seconds": SECONDS}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
