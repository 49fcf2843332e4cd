"""Runs user code under the user's interpreter and reports what every expression held.

Stdlib, torch and `protocol` only; Python 3.9 or newer, torch 2.1 or newer.
"""
