"""The host of replicated state machines."""
