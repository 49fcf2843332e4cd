"""ShapeLens: the shape of every tensor in a PyTorch model, in the editor, while it is being written."""

__version__ = "0.1.0"
