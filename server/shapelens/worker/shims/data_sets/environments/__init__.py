"""Environments of gym and gymnasium, which step nothing: their spaces, one alone, several in one, and wrappers.

Must not know: how programs are followed. `shims.patch_on_import` calls `gym.replacements`.
"""
