"""ShapeLens: the shape of every tensor in a PyTorch model, in the editor, while it is being written."""

__version__ = "0.1.0"

_INTERFACE = ("Example", "Finding", "Place", "Seen", "Trace", "TracingError", "trace")
__all__ = ["__version__", *_INTERFACE]


def __getattr__(name: str) -> object:
    """The interface for programs, loaded when it is first asked for: the language server does without it."""
    if name not in _INTERFACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("shapelens.tracing"), name)
