"""Streams into Delta tables, exactly once."""
