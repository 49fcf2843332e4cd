"""How the project itself builds and calls its models: scripts, tests and `__main__` blocks, other files, factory functions, configuration files that name classes."""
