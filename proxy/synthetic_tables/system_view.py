"""The relation ``data_privacy.synthetic_tables``: one row for every synthetic table.

The caller of this module selects the records: those whose private table the reader may know of.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from proxy.synthetic_tables.record import SyntheticRecord

SYNTHETIC_VIEW: Final = "synthetic_tables"
_COLUMNS: Final = {
    "table_name": pa.string(),
    "source": pa.string(),
    "method": pa.string(),
    "n_rows": pa.int64(),
    "epsilon": pa.float64(),
    "epsilon_spent": pa.float64(),
    "options": pa.string(),
    "model": pa.string(),
    "unknown": pa.string(),
    "incomplete": pa.string(),
    "made_at": pa.timestamp("ms", tz="UTC"),
    "made_by": pa.string(),
    "n_charges": pa.int64(),
    "evaluated": pa.string(),
}
SYNTHETIC_SCHEMA: Final = pa.schema(
    [pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()]
)


def synthetic_view(records: Iterable[SyntheticRecord]) -> pa.Table:
    """The relation for some records; `n_charges` is how many charges the source's history had."""
    rows = [
        {
            "table_name": record.name,
            "source": record.table,
            "method": str(record.method),
            "n_rows": record.n_rows,
            "epsilon": float(record.epsilon),
            "epsilon_spent": float(record.epsilon_spent),
            "options": record.options,
            "model": record.model,
            "unknown": ", ".join(record.unknown),
            "incomplete": record.incomplete,
            "made_at": dt.datetime.fromisoformat(record.made_at),
            "made_by": record.made_by,
            "n_charges": record.n_charges,
            "evaluated": record.evaluated,
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, schema=SYNTHETIC_SCHEMA)
