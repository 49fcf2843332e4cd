"""Evaluates an example: its expression in the file's namespace, again with other sizes for the names of dims, and along the ways not taken.

It must not know where an example came from, nor who waits for the trace. `run`, `memo` and `search` evaluate through it.
"""
