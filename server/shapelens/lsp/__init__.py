"""The language server. `start` begins it, `session` holds its state, and each of the rooms knows only what stands to its right:

start → server (all that speaks LSP) → session → runs (from a text to what is shown) → workspace → documents. `startup` answers in their
place until they are loaded.
"""
