"""The values that only real data or the real world can tell: sizes and numbers that depend on data, conditions on them, stand-ins for
packages.

It must not know how values are recorded or operations computed. `meta`, `trace` and `calls` ask it whether a size is known.
"""
