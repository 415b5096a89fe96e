"""Tells Apache Superset that the dialect ``tacit://`` speaks PostgreSQL's SQL.

Superset finds it by the entry point `superset.db_engine_specs`; nothing else imports it.
"""

from superset.db_engine_specs.postgres import PostgresBaseEngineSpec


class TacitEngineSpec(PostgresBaseEngineSpec):  # type: ignore[misc]  # Superset is installed elsewhere
    """Tacit over Flight SQL. Rows are private: there is nothing to sample or to upload."""

    engine = "tacit"
    engine_name = "Tacit"
    sqlalchemy_uri_placeholder = "tacit://analyst:token@host:31337/?half_width=50"
    default_driver = "flightsql"
    supports_file_upload = False
    allows_alias_to_source_column = False
