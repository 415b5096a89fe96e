"""A growing table in memory: records by day, of which a reading sees those before a horizon."""

import hashlib
import hmac
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from cube.axis import CategoryAxis, IntegerAxis
from cube.schema import Schema
from tests.support.fakes import KnownTable

N_DAYS = 8
DAY = IntegerAxis(name="day", low=0, high=N_DAYS - 1)
KIND = CategoryAxis(name="kind", values=("a", "b"))
SCHEMA = Schema(table="orders", axes=(DAY, KIND), n_records_max=1000, grows="day")
RECORDS = np.array(
    [[day, kind] for day in range(N_DAYS) for kind in (0, 0, 1)[: 1 + day % 3]], dtype=np.int64
)


class ReadTable(KnownTable):
    """A snapshot of the records of the first days."""

    def period_fingerprint(self, start: int, end: int, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        days = self.records[:, 0]
        inside = sorted(self.records[(days >= start) & (days < end)].tolist())
        return hmac.new(key, repr((start, end, inside)).encode(), hashlib.sha256).hexdigest()


class GrowingTable:
    """A `GrowingSource` over records that a test may change; it counts how often it was read."""

    def __init__(self, records: NDArray[np.int64] = RECORDS, schema: Schema = SCHEMA) -> None:
        self.schema = schema
        self.records = records
        self.horizons_read: list[int] = []

    def fingerprint(self, key: bytes) -> str:
        return hmac.new(key, self.schema.table.encode(), hashlib.sha256).hexdigest()

    def read_up_to(self, horizon: int) -> ReadTable:
        self.horizons_read.append(horizon)
        return ReadTable(self.schema, self.records[self.records[:, 0] < horizon])


def opened(
    ledger: Ledger, table: GrowingTable, horizon: int, noise: NoiseSource | None = None
) -> Gate:
    """The gate of the table, which is readable so far."""
    gate = open_table(ledger, table.schema, Fraction(4), table, noise or SystemNoise())
    gate.advance(horizon, "owner")
    return gate
