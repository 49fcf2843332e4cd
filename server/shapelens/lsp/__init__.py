"""The language server: handlers that translate and nothing more around one session that holds the state."""
