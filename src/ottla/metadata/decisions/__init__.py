"""Decisions of the controller: requests to records and responses."""
