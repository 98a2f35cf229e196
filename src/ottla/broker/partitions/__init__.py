"""Partitions, their logs and directories, and the work that keeps those in order."""
