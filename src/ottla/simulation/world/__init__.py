"""Virtual time, disks, network, workers and processes."""
