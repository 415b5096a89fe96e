"""The catalog that clients of PostgreSQL ask about: definitions that a caller may know of, no data.

Queries of `pg_catalog`, of `information_schema` and of the server itself are answered from
relations that are made of public declarations. Nothing here can reach a source, a gate or a ledger.
"""
