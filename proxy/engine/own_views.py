"""Views of `data_privacy` on tables that answer by themselves: its collections, and its streams.

They have no budget and no history, so none of the other views has them. Everything here is public:
declarations, how many respondents there are, and what each of them, or each epoch, lost.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from cube.measurement import UNITS_PER_EPSILON
from proxy.engine.system_views import VIEW_SCHEMAS
from proxy.streams.opening import epsilon_of
from proxy.streams.status import StreamStatus
from proxy.tables.collected import CollectedTable
from proxy.tables.self_answering import SelfAnswering

COLLECTIONS_VIEW: Final = "collections"
COLLECTIONS_SCHEMA: Final = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("campaign", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("n_respondents", pa.int64(), nullable=False),
        pa.field("n_answered", pa.int64(), nullable=False),
        pa.field("covered", pa.string(), nullable=False),
    ]
)
STREAMS_VIEW: Final = "streams"
STREAMS_SCHEMA: Final = pa.schema(
    [
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("column_name", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("epochs", pa.string(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("epsilon_spent", pa.float64(), nullable=False),
        pa.field("budget", pa.float64()),
        pa.field("n_begun", pa.int64(), nullable=False),
        pa.field("n_released", pa.int64(), nullable=False),
        pa.field("universe", pa.int64()),
        pa.field("bits", pa.int64(), nullable=False),
        pa.field("has_departures", pa.bool_(), nullable=False),
        pa.field("predicates", pa.string(), nullable=False),
        pa.field("opened_by", pa.string(), nullable=False),
    ]
)
OWN_VIEWS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {COLLECTIONS_VIEW: COLLECTIONS_SCHEMA, STREAMS_VIEW: STREAMS_SCHEMA}
)
# Every view with a schema of its own, by name.
LISTED_VIEWS: Final[Mapping[str, pa.Schema]] = MappingProxyType({**VIEW_SCHEMAS, **OWN_VIEWS})


def own_view(
    name: str, tables: Iterable[SelfAnswering], streams: Iterable[StreamStatus]
) -> pa.Table:
    """One of `OWN_VIEWS`.

    Parameters
    ----------
    name : str
    tables : iterable of SelfAnswering
        Those that the caller may know of; one that is no collection is not in the view of them.
    streams : iterable of StreamStatus
        The streams that they may know of.
    """
    if name == STREAMS_VIEW:
        rows = [_stream(status) for status in streams]
    else:
        rows = [_collection(table) for table in tables if isinstance(table, CollectedTable)]
    return pa.Table.from_pylist(rows, schema=OWN_VIEWS[name])


def _collection(table: CollectedTable) -> dict[str, object]:
    n_respondents, covered = table.covered()
    return {
        "table_name": table.campaign.name,
        "campaign": table.edition,
        "state": "open" if table.is_open else "closed",
        "epsilon": float(table.campaign.epsilon),
        "n_respondents": n_respondents,
        "n_answered": table.campaign.n_answered,
        "covered": ", ".join(f"({', '.join(scope)})" for scope in sorted(covered)),
    }


def _stream(status: StreamStatus) -> dict[str, object]:
    opened = status.opened
    budget = opened.budget_units
    return {
        "table_name": status.name,
        "column_name": opened.column,
        "state": "dropped" if status.is_dropped else "open",
        "epochs": opened.epochs.value,
        "epsilon": float(epsilon_of(opened)),
        "epsilon_spent": float(status.epsilon_spent),
        "budget": None if budget is None else float(Fraction(budget, UNITS_PER_EPSILON)),
        "n_begun": status.n_begun,
        "n_released": status.n_released,
        "universe": opened.universe or None,
        "bits": opened.n_places,
        "has_departures": opened.has_departures,
        "predicates": ", ".join(opened.predicates),
        "opened_by": opened.by,
    }
