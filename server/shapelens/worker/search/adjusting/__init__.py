"""Ways to go on after a construction failed: the exception and the statement that raised it say which argument was wrong, and how."""
