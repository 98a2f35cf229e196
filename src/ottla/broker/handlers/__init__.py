"""One module per API: what a request does to the broker and what it answers."""
