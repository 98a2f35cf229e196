"""How the partitions of a consumer group's topics are shared out among its members."""
