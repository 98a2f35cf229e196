"""The plan of a run, from its seed."""
