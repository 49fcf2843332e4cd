"""Rewrites the `ast` of a module so that the values of its expressions report themselves while its code runs.

Pure: text and trees in, trees and sites out; no torch, nothing is executed. `loading` rewrites what it loads.
"""
