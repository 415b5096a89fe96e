"""Arrow Flight SQL: statements, prepared statements, the catalog, session options."""

from proxy.wire.flight.service import FlightSqlService

__all__ = ["FlightSqlService"]
