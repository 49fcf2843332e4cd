"""Pretrained models: each is its architecture, built as its name says. Weights are neither read nor downloaded.

One file for each library; special cases are entries of a table in the file. `libraries.py` says which module gets which replacements
when it is imported. What a model's sizes are is said, in this order, by a configuration in the workspace or in the hub's cache
(`hub.py`), by the table of well-known models (`known_models.json`), or by nobody: then the sizes of its outputs are unknown
(`unsure_sizes.py`), never wrong. It must not know of examples.
"""
