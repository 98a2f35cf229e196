"""Transcripts of pure machines: what is said to them, and what comes of it."""
