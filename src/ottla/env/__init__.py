"""The seams between the broker and the machine: clock, disk, network, workers, randomness."""
