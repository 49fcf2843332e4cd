"""The record of a run: values reduced to summaries, the places of user code, the origins of sizes, names of dims.

It keeps no tensor, and runs no code of the user's. All rooms above report to it; it must not know how a value came about.
"""
