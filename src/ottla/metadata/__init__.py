"""What the cluster knows about itself: the fold of its log, and the controller's decisions."""
