"""Words for a mismatch: its message, the part of the expression that is to blame, and the other places that have to do with it.

Knows nothing of severities and fixes. Called by `findings` and `repairs`.
"""
