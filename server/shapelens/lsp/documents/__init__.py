"""Open files: their text, what is known of it and what the editor shows; results of an older text, moved to a newer one.

Starts nothing and decides nothing. A `Document` changes by its methods only. Called by everything else in `lsp`.
"""
