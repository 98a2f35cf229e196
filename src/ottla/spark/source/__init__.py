"""The source of the format `ottla`: streams and batches."""
