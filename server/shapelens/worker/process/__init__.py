"""The worker's processes: which there are, what they are given to do, and what becomes of a run when one of them ends.

`main_process` holds the server's pipes and runs no user code, libraries included. It has `library_process` import libraries, a zygote
(`zygote`, `zygote_slot`) load the project, and children (`child`, `child_pool`) do one run each. `event_loop`, `forks`, `framing` and
`messages` are what these are made of; `failed_loads` knows which documents no zygote can load. `in_process` is for platforms without fork.

The room knows nothing of shapes: it forks, relays, limits and ends, and calls `run.py` for all else. Called by `__main__.py` alone.

The main process imports the libraries, a zygote loads the project and stays, and each run is a fork of the zygote. One child waits for
the next run and rehearses the last one meanwhile. A run that nobody waits for (`Run.background`) has a child of its own beside it.

What ends, hangs or spoils a process while it loads costs the next text nothing. A load ends when the newest text lacks its statement. A
rehearsal that died is not repeated. A process does not stay where user code has left threads that compute. A library that changes others
waits for the runs that import it.
"""
