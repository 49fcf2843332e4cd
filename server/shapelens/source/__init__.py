"""Reads what the text of a Python file says: module classes, constructor calls and their arguments, directives, positions, edits.

The only package that imports libcst. Nothing here runs user code.
"""
