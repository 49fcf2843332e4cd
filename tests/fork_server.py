"""Run as `PYTHON -X utf8 -c TEXT WORKER SOCKET`: loads what a worker loads, and forks one for each order.

It is no file there, as the stack of a worker has none below its own.

An order is a line of JSON, and with it the three files that are to be standard input, output and error of the new process. The answer is a
line with the id of the process, whose parent ends at once, so that it comes to whoever adopts orphans there.
"""

import sys

MAIN, NUMBER = sys.argv[1], int(sys.argv[2])

# The worker's own beginning, before anything else is imported: it notes what Python has loaded by itself.
sys.path[0] = MAIN.rpartition("/")[0]
__file__, __name__ = MAIN, "worker"
with open(MAIN, encoding="utf-8") as _text:  # noqa: PTH123
    exec(compile(_text.read(), MAIN, "exec"))
__name__ = "__main__"


def load() -> None:
    """What takes a worker long to load."""
    import gc

    gc.disable()
    make_package()  # type: ignore[name-defined]  # noqa: F821
    from _shapelens.worker.process import startup  # type: ignore[import-not-found]

    startup.load_torch()
    from _shapelens.worker import run  # type: ignore[import-not-found]  # noqa: F401
    from _shapelens.worker.process import main_process, warm  # type: ignore[import-not-found]  # noqa: F401
    from _shapelens.worker.sandbox import kernel_boundary, monkeypatches, system_calls  # type: ignore[import-not-found]  # noqa: F401

    warm.leave_out_the_compiler()
    warm.load_kernels()
    gc.freeze()


def serve() -> None:
    """Fork at each order, until whoever gives them has gone."""
    import json
    import os
    import socket

    connection = socket.socket(fileno=NUMBER)
    connection.sendall(b"loaded\n")
    while True:
        text, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        if not text:
            os._exit(0)
        told, tells = os.pipe()
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            connection.sendall(os.read(told, 20))  # Not before its parent has gone.
            for number in (told, tells, *files):
                os.close(number)
            continue
        forked = os.fork()
        if forked:
            os.write(tells, b"%d\n" % forked)
            os._exit(0)
        os.close(told)
        os.close(tells)
        connection.close()
        order = json.loads(text)
        os.setsid()
        for place, number in enumerate(files):
            os.dup2(number, place)
            os.close(number)
        os.environ.clear()
        os.environ.update(order["environment"])
        if order["folder"] is not None:
            os.chdir(order["folder"])
        sys.argv[:] = [MAIN, *order["arguments"]]
        return


load()
serve()
begin()  # type: ignore[name-defined]  # noqa: F821
