"""The catalog that clients of PostgreSQL ask about: definitions that a caller may know of, no data.

Queries of `pg_catalog`, of `information_schema` and of the server itself are answered from
relations that are made of public declarations. Nothing here can reach a source, a gate or a ledger.
"""

from proxy.catalog.shadow import catalog_answer, is_catalog_query, is_catalog_text
from proxy.catalog.world import World, listed_tables

__all__ = ["World", "catalog_answer", "is_catalog_query", "is_catalog_text", "listed_tables"]
