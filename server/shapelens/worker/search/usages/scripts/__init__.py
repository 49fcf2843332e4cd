"""Reads what a script does with models, without running it."""
