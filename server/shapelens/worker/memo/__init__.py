"""What an edit left alone: modules and calls of the evaluation before are taken over, so that what is wrong after an edit is said at once.

It must not know of processes. What it says is always followed by a run that takes over nothing.
"""
