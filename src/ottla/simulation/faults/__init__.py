"""Faults of a run, and changes by administrators."""
