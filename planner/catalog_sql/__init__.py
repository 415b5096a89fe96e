"""Recognises queries of PostgreSQL's catalog, and writes the SQL that DuckDB runs for them.

What the catalog holds is not known here, nor where it is kept. Nothing here plans answers.
"""

from planner.catalog_sql.functions import DEFINITIONS, RELATION_NAMES, TYPE_NAMES, CatalogFacts
from planner.catalog_sql.recognise import CATALOG, INFORMATION, is_about_catalog
from planner.catalog_sql.rewrite import catalog_sql, names_after_star

__all__ = [
    "CATALOG",
    "DEFINITIONS",
    "INFORMATION",
    "RELATION_NAMES",
    "TYPE_NAMES",
    "CatalogFacts",
    "catalog_sql",
    "is_about_catalog",
    "names_after_star",
]
