"""All that speaks LSP: the pygls server, its handlers and commands, the editor behind them, and our data as LSP types.

Knows nothing of runs and workers: a handler translates, asks the session, and translates back. Called by `lsp.start`.
"""
