"""One run from a seed, and smaller ones that still fail."""
