"""Connects programs to Tacit by DBAPI 2.0; answers have intervals, sources and costs.

    connection = tacit_client.connect("127.0.0.1:31337", half_width=50)
    connection.sql("SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex").to_pandas()

It speaks Flight SQL through ADBC, and shares no module with the server.
"""

from typing import Final

try:
    import adbc_driver_flightsql.dbapi as _driver
except ImportError as missing:
    raise ImportError(
        "tacit_client needs the Flight SQL driver: pip install 'tacit-dp[client]'"
    ) from missing

from tacit_client.calls import BestReport, Collected, Marginals
from tacit_client.catalog import Column, Table
from tacit_client.connection import Connection, connect
from tacit_client.cursor import Cursor
from tacit_client.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    InvalidStatement,
    NotCovered,
    NotNow,
    NotSupportedError,
    OfferedWidth,
    OperationalError,
    Position,
    ProgrammingError,
    Refused,
)
from tacit_client.receipts import ColumnReceipt, Receipt, Renewal
from tacit_client.responding import respond
from tacit_client.result import Result

apilevel: Final = "2.0"
threadsafety: Final = 1
paramstyle: Final = "qmark"

# What DBAPI 2.0 wants of a module beside its classes.
Warning = _driver.Warning  # noqa: A001 - DBAPI's name
Binary = bytes
Date = _driver.Date
DateFromTicks = _driver.DateFromTicks
Time = _driver.Time
TimeFromTicks = _driver.TimeFromTicks
Timestamp = _driver.Timestamp
TimestampFromTicks = _driver.TimestampFromTicks
BINARY = _driver.BINARY
DATETIME = _driver.DATETIME
NUMBER = _driver.NUMBER
ROWID = _driver.ROWID
STRING = _driver.STRING

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "BestReport",
    "Binary",
    "Collected",
    "Column",
    "ColumnReceipt",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InvalidStatement",
    "Marginals",
    "NotCovered",
    "NotNow",
    "NotSupportedError",
    "OfferedWidth",
    "OperationalError",
    "Position",
    "ProgrammingError",
    "Receipt",
    "Refused",
    "Renewal",
    "Result",
    "Table",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "respond",
    "threadsafety",
]
