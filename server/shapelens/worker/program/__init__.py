"""Follows a document as the program that it is: its statements in order, on the meta device, each of them on its own.

It must not know of classes' examples or of what the user is told. `run` follows the program after the examples; what it saw is one more
example of the trace.

The program is followed once the document's own run is over (`Run.program`), in a background child: hints of classes never wait for it.
Loops that train take their first turns (`meta/training_loops.py`). What meets no tensor in its first turns goes on as it is written
(`loading/unobserved.py`). The tests of a test file are called at its end. `backward` costs nothing (`meta/gradients.py`), and no graph is
kept: `trace/tape.py` says what eager's graph would refuse. `trace/devices.py` labels tensors in a program that names a device. A label is
never guessed, and changes no branch.

A mismatch of a program is an error only where the code is at fault (`with_program` in the server's `analysis/traces/programs.py`).
"""
