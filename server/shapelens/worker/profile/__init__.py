"""Profiles a model: which modules and operations its forward goes through, and what an inference and a training step take of memory."""
