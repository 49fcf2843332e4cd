"""From the text of a document to what the editor shows of it, in four steps: choose, plan, run, show; and when each document has its turn.

Knows the editor by the few methods of `client.Client`, and nothing of LSP. Called by `lsp.session`.
"""
