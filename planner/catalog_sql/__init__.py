"""Queries of PostgreSQL's catalog: which statements are such, and what DuckDB runs for them.

What the catalog holds is not known here, nor where it is kept. Nothing here plans answers.
"""
