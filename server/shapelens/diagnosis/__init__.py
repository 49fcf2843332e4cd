"""What a user or a report of a bug needs to know of an installation. It must do without rich and typer: the extension runs it as well."""
