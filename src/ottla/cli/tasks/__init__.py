"""Implementations of the commands, and shared options."""
