"""What a model can be called with: forms of its arguments, and which to try after an attempt failed."""
