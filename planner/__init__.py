"""From SQL to linear queries, and the cheapest measurements for them. Never sees private data."""
