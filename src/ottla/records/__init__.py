"""Record batches, format 2, as Apache Kafka defines them: pure functions over bytes."""
