"""Kafka's wire format: message classes, encoders and decoders. Pure."""
