"""The fold of the metadata log, and its snapshots."""
