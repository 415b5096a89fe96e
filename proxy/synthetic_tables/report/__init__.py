"""The report of a synthetic table: its counts beside what the history says of the private ones."""
