"""The project's own ways to build and call its models: scripts, tests, `__main__` blocks, other files, factory functions,
configurations."""
