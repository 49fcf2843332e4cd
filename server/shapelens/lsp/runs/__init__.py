"""Takes a document from its text to what the editor shows, in four steps: choose, plan, run, show. Decides whose turn it is.

Knows the editor by the few methods of `client.Client`, and nothing of LSP. Called by `lsp.session`.
"""
