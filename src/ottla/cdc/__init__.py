"""Change data capture: every committed change of a database becomes a record, once and in order."""
