"""`python -m shapelens` is the command `shapelens`."""

from ._current_folder import leave_out_of_imports

leave_out_of_imports()

from .cli import main  # noqa: E402

main()
