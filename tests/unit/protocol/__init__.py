"""Tests of the wire: what we write and read is what Kafka writes and reads."""
