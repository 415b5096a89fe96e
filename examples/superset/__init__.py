"""Apache Superset on a private table, over both wires."""
