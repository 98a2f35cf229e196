"""Every config of brokers and topics that Kafka 4.3 knows, and Ottla's own.

`catalogue` is the place to look a config up; the tables are one module per subject.
"""
