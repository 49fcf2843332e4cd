"""What people write down of shapes: as words in comments and annotations, and as entries of docstrings. Server and worker read both."""
