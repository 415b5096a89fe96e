"""Which engine has a table that stays where it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cube.schema import Schema
from proxy.sources.pushdown.engine import Engine
from proxy.sources.pushdown.postgres import Postgres
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.spark import Spark
from proxy.sources.spark_table import SparkTable

TIMEOUT_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class StaysThere:
    """That rows are counted where they are.

    Parameters
    ----------
    timeout : float
        How long one statement may take, in seconds.
    """

    timeout: float = TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of PostgreSQL: its name, and a function for the parameters of a connection."""

    name: str
    label: str
    parameters: Callable[[], str]


def counted_there(
    schema: Schema, table: SparkTable | PostgresTable, stays: StaysThere, key: bytes
) -> PushedDownSource:
    """A table as a source that its engine counts; ConfigurationInvalid if it cannot be."""
    engine: Engine
    if isinstance(table, SparkTable):
        engine = Spark(table, stays.timeout)
    else:
        engine = Postgres(table.name, table.label, stays.timeout, table.parameters)
    return PushedDownSource(schema, engine, key)
