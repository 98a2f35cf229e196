"""Names for numbers: what every other package talks about, and nothing that acts."""
