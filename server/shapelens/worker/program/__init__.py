"""Follows a document as the program that it is: its statements in order, on the meta device, each of them on its own.

It must not know of classes' examples or of what the user is told. `run` follows the program after the examples; what it saw is one more
example of the trace.
"""
