"""Real clients and Apache Kafka itself, driven against a broker that runs as a process of its own."""
