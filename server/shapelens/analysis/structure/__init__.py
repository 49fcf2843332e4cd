"""A model as a whole: the tree of its modules, the tensors that flow between its steps, and the memory of a training step."""
