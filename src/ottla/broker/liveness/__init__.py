"""Everything that decides which brokers are alive."""
