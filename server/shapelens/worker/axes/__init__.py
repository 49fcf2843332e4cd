"""Named axes: of which axes of its inputs each dim of a tensor is made, and in which order."""
