"""What the controller decides: a request, and the records that answer it."""
