"""Coordinators over the partitions of a topic: groups."""
