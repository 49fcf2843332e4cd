"""Candidates for fixes: edits that a mismatch speaks for, and guesses. Nothing here knows that one is right: `shapelens.repair` runs them.

Called by `findings`.
"""
