"""Replication: followers of this broker, and leaders that it follows."""
