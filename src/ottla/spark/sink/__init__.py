"""The sink of the format `ottla`."""
