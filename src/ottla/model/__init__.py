"""Basic types shared by all packages; no behaviour."""
