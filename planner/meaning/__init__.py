"""What SQL's functions, operators and casts mean in PostgreSQL, and how DuckDB is asked for that.

One table (`table`) and one pass over a tree (`writing`), which knows the type of each expression
and writes what DuckDB computes. Public levels, public tables and answers are all evaluated by it.
What cannot be computed as PostgreSQL does is refused. Not here: aggregates, and what may be
evaluated on private rows.
"""
