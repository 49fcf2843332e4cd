"""Keeps on disk what runs saw: an unchanged file is shown, and checked, without running again. It starts nothing itself.

`location`, `store`, `inputs` and `environments` are imported by a server that has loaded nothing else yet, so this file imports nothing.
"""
