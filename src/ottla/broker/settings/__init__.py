"""Settings of a broker: its properties file, listeners, and the configs of topics."""
