"""Synthetic tables: from the request for one to serving it."""
