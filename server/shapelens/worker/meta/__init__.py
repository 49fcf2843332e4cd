"""torch on the meta device: the mode that keeps everything on it but small constants, the cache of computed shapes, rules for single
functions, and what eager would say.

It must not know of modules, examples or searches. `evaluation` puts the mode in force.
"""
