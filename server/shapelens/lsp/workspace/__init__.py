"""Holds what surrounds a document: the settings that hold for it, files that import it, other files' texts, the workers that can run it.

Knows nothing of what is shown or when something runs. Called by `lsp.session` and `lsp.runs`; `lsp.start` starts a worker by it.
"""
