"""Runs a model for real, on the CPU, and says what depends on what.

Only `check --deep` and `pytest --deep` ask for it (`Run.deep`): one example a run, in the sandbox of all runs. `stage` makes sizes small
and unlike each other. `drawing` draws constant parameters anew, so that a branch that begins as zero hides nothing. Data stays, as it may
be a mask.

Nothing is reported where two equal calls differ, where a number is missing, or where the code does not claim to be causal: by a mask, by
`is_causal`, by a name, by targets a step ahead. One causal input is enough where several may be the sequence. Samples may meet, unless a
convolution says which dim is the batch.
"""
