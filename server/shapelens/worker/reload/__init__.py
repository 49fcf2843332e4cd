"""Which modules of a process that stays loaded have to be loaded anew for the next run, and doing so.

It must not know of examples or processes. `run` loads through it.
"""
