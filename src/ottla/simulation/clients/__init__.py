"""Clients of a run: producers, consumers, groups, hostile ones."""
