"""The report of a synthetic table: its counts beside the history's estimates of private ones."""
