"""Finds out how to build and call a model that no directive speaks of: evidence from the text, then trying.

The pipeline is the layout: `text`, `code` and `usages` hold evidence, `candidates` make ways to build, `trials` run them, `inputs` find
what to call them with, `adjusting` changes what failed, `finder` goes through the classes. It yields `events` and must not send anything:
`search_stage.py` runs what it finds and tells of it.
"""
