"""Loads the document and the user's modules that it imports, with only their definitions run; a hot patch gives loaded functions new code.

It must not know of examples. `evaluation` loads through it, `reload` decides what of what is loaded can stay.
"""
