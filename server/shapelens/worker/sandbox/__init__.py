"""Keeps user code from what it may not do while it runs: exceed its time and memory (`limits`), use the network, start programs, write
outside a scratch folder (`audit_hook`, `scratch_folder`).

And what user code has changed all the same: torch, or another module that is not its own (`monkeypatches`).

The lowest room: it knows nothing of runs or traces. `process` puts the limits in force before any user code runs; the exceptions
that end a run early are defined here and pass through all rooms above. `originals` holds what has to work after user code has run.
"""
