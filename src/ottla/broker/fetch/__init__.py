"""The data path of consumers: sessions and responses."""
