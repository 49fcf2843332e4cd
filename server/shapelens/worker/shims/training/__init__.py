"""Libraries around a training loop, replaced: Lightning's trainer, metrics, what writes down how a training goes.

Each gives tables or functions for `patch_on_import`, which alone uses them.
"""
