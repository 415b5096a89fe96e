"""Synthetic tables, from asking for one to serving it."""
