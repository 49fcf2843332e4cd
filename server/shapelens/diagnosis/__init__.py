"""The state of an installation, for users and reports of bugs. It must do without rich and typer: the extension runs it as well."""
