"""Shows the editor something while the server is still being loaded: what was shown of unchanged files, as the very JSON.

Imports the standard library and the cache only, as everything else takes time to load. Called by `lsp.start` and `lsp.server`.
"""
