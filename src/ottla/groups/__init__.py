"""Consumer groups as pure state machines over the partitions of `__consumer_offsets`."""
