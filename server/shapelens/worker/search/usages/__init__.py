"""How the project itself builds and calls its models: scripts, tests, `__main__` blocks, other files, factory functions, configurations."""
