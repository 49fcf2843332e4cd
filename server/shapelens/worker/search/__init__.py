"""Finds out how to build and call a model that no directive speaks of: evidence from the text, then trying."""
