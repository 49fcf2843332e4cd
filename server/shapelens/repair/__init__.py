"""Fixes are run before they are offered: see `search`."""
