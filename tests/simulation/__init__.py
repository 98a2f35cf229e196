"""Whole runs in virtual time, from seeds."""
