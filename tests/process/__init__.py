"""What a broker process survives: kill -9, full disks, bad bytes and crowds of connections."""
