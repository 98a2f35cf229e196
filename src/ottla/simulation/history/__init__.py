"""What clients did and saw, and the checks of it."""
