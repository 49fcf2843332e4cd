"""What user code may not do while it runs: exceed its time and memory, use the network, write outside a scratch folder, start programs.

The lowest room: it knows nothing of torch, runs or traces. `process` puts the limits in force before any user code runs; the exceptions
that end a run early are defined here and pass through all rooms above.
"""
