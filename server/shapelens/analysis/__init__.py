"""Traces turned into what the user sees, as plain data: hints, hovers, findings, fixes, lenses.

No LSP types, no torch, no libcst: positions are `source.positions.Span`, texts are Markdown or plain strings.
"""
