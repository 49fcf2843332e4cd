"""Traces to hints, hovers, findings, fixes and lenses, as plain data: no LSP types, no torch, no processes."""
