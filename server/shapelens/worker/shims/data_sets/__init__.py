"""Data that is not here: data sets, pictures, tables, arrays and environments, stood in for with what is known of them.

Must not know: examples, searches, what is shown. `shims.patch_on_import` asks each module here for its replacements.
"""
