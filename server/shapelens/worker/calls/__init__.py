"""Calls of modules: which layer was given what and gave what; how a run goes on past an operation, layer or constructor that fails.

It must not know which example runs. `evaluation` makes a watch for each evaluation.
"""
