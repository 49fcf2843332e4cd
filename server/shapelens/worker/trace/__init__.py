"""The parts of a trace: values reduced to summaries, where user code stood, where sizes came from, names of dims.

It keeps no tensor, and runs no code of the user's. All rooms above report to it; it must not know how a value came about.
"""
