"""Public tables: small tables that anybody may see, as values, and read from their files."""
