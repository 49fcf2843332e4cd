"""`python -m shapelens` is the command `shapelens`."""

from .cli import main

main()
