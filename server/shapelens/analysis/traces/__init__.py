"""Traces put together: what runs of several files saw of one, and what some examples saw after an edit with what the others saw before.

Says nothing about what it means. Called by the language server, the command line and `repair`.
"""
