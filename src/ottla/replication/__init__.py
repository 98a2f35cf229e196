"""Replication of partitions: what leaders and followers know, and what they do next. Pure."""
