"""Counters and gauges, and the page that shows them."""
