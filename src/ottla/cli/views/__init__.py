"""Output of the tools."""
