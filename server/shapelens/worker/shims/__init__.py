"""Replacements for the time of a run: compilers, accelerators, other processes, data loaders, training, checkpoints, files, command lines.

One file for each kind; a library's special cases are entries in the table of its kind. It must not know of examples. `evaluation` puts
them in force.
"""
