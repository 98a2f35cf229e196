"""What the tools show."""
