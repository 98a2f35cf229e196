"""The command `ottla`: one module per command."""
