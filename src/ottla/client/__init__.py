"""A small async Kafka client: brokers talk to brokers with it, and so do the tools."""
