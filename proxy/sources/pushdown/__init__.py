"""Private tables that stay where they are: an engine encodes and counts, cells and counts travel.

An engine is Spark or PostgreSQL. What is sent to it is written here, from the public declaration
alone. What needs rows of a unit to be bounded, or rows that grow, is read by an extract instead.
"""

from proxy.sources.pushdown.engine import Engine
from proxy.sources.pushdown.postgres import Postgres
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.spark import Spark

__all__ = ["Engine", "Postgres", "PushedDownSource", "Spark"]
