"""The findings of a file, by what its run saw: mismatches, failed examples, notes, lints, unused layers; the registry of their codes.

Judges what the worker reports; runs nothing. Called by the language server, the command line and `repair`.
"""
