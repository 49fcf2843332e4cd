"""Which examples a file is run with: the syntax of an example, where examples come from, and the settings. Nothing here runs user code."""
