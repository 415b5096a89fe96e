"""Data sources: how private tables are opened, encoded as level positions, and counted."""
