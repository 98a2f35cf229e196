"""The composition root: Broker, its start and stop, formatting, local clusters."""
