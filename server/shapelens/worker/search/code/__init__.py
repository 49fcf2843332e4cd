"""The use that code makes of a value: which functions and classes it reaches, what it takes from a container, which branches need it.
Nothing is executed."""
