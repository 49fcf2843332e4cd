"""The commands of the command line, one file each. Each is a coroutine that prints and returns its exit code."""


class RefusedRequest(Exception):
    """Says that what was asked for cannot be done. The message is one line for the user."""
