"""Groups whose members use both protocols, and the change from one to the other."""
