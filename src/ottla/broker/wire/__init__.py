"""From bytes to handlers and back: connections, the table of APIs, dispatch, error responses."""
