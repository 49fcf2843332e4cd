"""Display beside code in which nothing is wrong: inlay hints, hovers, code lenses, FLOPs.

Knows nothing of findings. Called by the language server and the reports.
"""
