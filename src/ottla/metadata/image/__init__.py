"""The cluster as its metadata log says: the fold of all records, and its snapshots."""
