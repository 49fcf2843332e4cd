"""Reads what is written down: shapes, in comments, annotations and docstrings; code, as a syntax tree. Server and worker read both."""
