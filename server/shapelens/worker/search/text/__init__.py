"""What the text of a `forward` says of its inputs: annotations, comments, docstrings, and what its body does with them. Nothing is
executed.
"""
