"""A shop: two applications, a database, two consumer groups and Spark, around one log."""
