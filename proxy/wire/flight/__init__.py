"""Arrow Flight SQL: statements, prepared statements, the catalog, session options."""
