"""What user code may not do while it runs: exceed its time and memory (`limits`), use the network, start programs, write outside a scratch
folder (`audit_hook`, `scratch_folder`).

The lowest room: it knows nothing of torch, runs or traces. `process` puts the limits in force before any user code runs; the exceptions
that end a run early are defined here and pass through all rooms above. `originals` holds what has to work after user code has run.
"""
