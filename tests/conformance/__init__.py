"""Real clients, and Apache Kafka itself, against a broker in a process of its own."""
