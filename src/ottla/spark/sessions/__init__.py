"""Spark sessions and their Python processes."""
