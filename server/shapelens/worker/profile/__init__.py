"""Profiles a model: which modules and operations its forward goes through, and what an inference and a training step take of memory.

A profile is a run of its own (`Run.profile`), so that hints never pay for it. No number is estimated here: the worker says what was
allocated when, and which module holds which storage. The server's `analysis/structure` adds that up. Where a kernel of the meta device
would keep something else than a real device does, `fused_kernels` and `mixed_precision` do as the real one.
"""
