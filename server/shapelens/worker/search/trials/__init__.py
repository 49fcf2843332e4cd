"""Tries a candidate: builds and calls it as an example would, ends at the first thing that does not fit, and says what that asks for."""
