"""`shapelens mcp`: the tools that coding agents ask, over the Model Context Protocol. Only `server.py` knows the protocol's library."""
