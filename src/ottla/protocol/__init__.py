"""Kafka's wire format: messages as classes, and the code that writes and reads them. Pure."""
