"""The shell: it receives bytes, asks the pure parts what to do, and does it."""
