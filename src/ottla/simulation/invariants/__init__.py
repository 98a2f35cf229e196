"""What must hold inside brokers at every moment."""
