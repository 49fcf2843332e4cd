"""Runs a model for real, on the CPU, and says what depends on what."""
