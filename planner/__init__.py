"""Turns SQL into linear queries, and finds the cheapest measurements for them. Never sees data."""
