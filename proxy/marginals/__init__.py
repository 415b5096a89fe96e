"""Noisy tables of counts that may overlap: from the request to their rows."""
