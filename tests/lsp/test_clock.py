"""The clock of the machine is set back, and forward, while the server runs: nothing waits for a time that has been or ends early."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpreters import TORCH_PYTHON
from lsp.editor import Editor

COMPILER = shutil.which("cc")
DAY = 86400
HANGING = """\
import time
from torch import nn


# shapelens: Net()(f32[B:2, 8])
class Net(nn.Module):
    def forward(self, x):
        y = x.relu()
        while time.time() > 0:
            pass
        return y
"""
# Stands between a program and the C library: the time of day is that of the machine and as many seconds as are written in a file.
SHIFTED_CLOCK = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void) {
    char text[32] = {0};
    int number = syscall(SYS_openat, AT_FDCWD, getenv("SHIFT_OF_CLOCK"), O_RDONLY);
    if (number < 0) return 0;
    syscall(SYS_read, number, text, sizeof text - 1);
    syscall(SYS_close, number);
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *found) {
    int result = syscall(SYS_clock_gettime, id, found);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) found->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found) *found = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.mark.skipif(sys.platform != "linux" or COMPILER is None, reason="there is no C compiler")
async def test_the_clock_is_set_while_the_server_runs(tmp_path: Path, recipe: str, broken: str) -> None:
    library, shift, workspace = tmp_path / "clock.so", tmp_path / "shift", tmp_path / "workspace"
    (tmp_path / "clock.c").write_text(SHIFTED_CLOCK)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"], check=True)
    environment = {"LD_PRELOAD": str(library), "SHIFT_OF_CLOCK": str(shift), "SHAPELENS_CACHE_DIR": str(tmp_path / "cache")}
    workspace.mkdir()

    def set_clock(seconds: int) -> None:
        shift.write_text(str(seconds))
        said = subprocess.check_output([TORCH_PYTHON, "-c", "import time; print(time.time())"], env={**os.environ, **environment})
        assert abs(float(said) - time.time() - seconds) < 60, "the clock is really another one"

    editor = Editor(workspace)
    editor.settings = {"deadline": 2}
    set_clock(0)
    await editor.start("--interpreter", TORCH_PYTHON, initialization_options={"settings": editor.settings}, env=environment)
    (workspace / "net.py").write_text(recipe)
    uri = editor.open("net.py", recipe)
    await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values())
    for seconds in (-DAY, 365 * DAY, -400 * DAY):
        set_clock(seconds)
        editor.set_text(uri, broken)
        (workspace / "net.py").write_text(broken)
        assert [each.code for each in await editor.diagnostics(uri)] == ["linear-in-features"]
        editor.set_text(uri, recipe)
        await editor.hints_when(uri, lambda hints: "→ [B, 10]" in hints.values())
        assert await editor.diagnostics(uri) == []
    hanging = editor.open("hanging.py", HANGING)
    await editor.until_running("hanging.py")
    set_clock(-800 * DAY)  # Amid the run, whose deadline is in two seconds nevertheless.
    assert [(each.code, each.range.start.line) for each in await editor.diagnostics(hanging)] == [("deadline", 8)]
    assert await editor.stop() == 0
