"""Replication rules of partition leaders and followers. Pure."""
