"""Tails of databases: every committed change becomes a record, once and in order."""
