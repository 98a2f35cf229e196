"""Partition logs on disk, in Apache Kafka's files: blocking code behind the disk seam."""
