"""Cluster metadata: the fold of the metadata log, and the controller's decisions."""
