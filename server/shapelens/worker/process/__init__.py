"""The worker's processes: which there are, what they are given to do, and what becomes of a run when one of them ends.

`main_process` holds the server's pipes and runs no user code, libraries included. It has `library_process` import libraries, a zygote
(`zygote`, `zygote_slot`) load the project, and children (`child`, `child_pool`) do one run each. `event_loop`, `forks`, `framing` and
`messages` are what these are made of; `failed_loads` knows which documents no zygote can load. `in_process` is for platforms without fork.

The room knows nothing of shapes: it forks, relays, limits and ends, and calls `run.py` for all else. Called by `__main__.py` alone.
"""
