"""Tests of the wire format against Kafka's."""
