"""Every config of brokers and topics of Kafka 4.3, and Ottla's own.

`catalogue` looks configs up; there is one table module per subject.
"""
