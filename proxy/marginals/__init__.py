"""Noisy tables of counts that may overlap, from asking for them to their rows."""
