"""Traces to hints, hovers, findings, fixes and lenses, as plain data: no LSP types, no torch, no processes, no clock.

`display` is what is shown beside the code. `findings` says what is wrong, with the candidates of `repairs` and the words of
`explanations`. `traces` puts traces together. The modules beside these folders serve them all: how a shape is written, where things
stand, what torch's layers call their arguments, how far a found example is to be trusted.
"""
