"""Inputs as the text of a `forward` says them: annotations, comments, docstrings, and what its body does with them. Nothing is executed."""
