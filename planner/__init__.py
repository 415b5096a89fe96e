"""SQL to linear queries, and what to measure for least. Never sees private data."""
