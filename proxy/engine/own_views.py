"""Views of `data_privacy` on tables that answer by themselves: ``data_privacy.collections``.

They have no budget and no history, so none of the other views has them. Everything here is public:
declarations, how many respondents there are, and what each of them lost.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from proxy.engine.system_views import VIEW_SCHEMAS
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
OWN_VIEWS: Final[Mapping[str, pa.Schema]] = MappingProxyType({COLLECTIONS_VIEW: COLLECTIONS_SCHEMA})
# Every view with a schema of its own, by name.
LISTED_VIEWS: Final[Mapping[str, pa.Schema]] = MappingProxyType({**VIEW_SCHEMAS, **OWN_VIEWS})


def own_view(name: str, tables: Iterable[SelfAnswering]) -> pa.Table:
    """One of `OWN_VIEWS` on some tables; a table of another kind is not in it."""
    rows = [_collection(table) for table in tables if isinstance(table, CollectedTable)]
    return pa.Table.from_pylist(rows, schema=OWN_VIEWS[name])


def _collection(table: CollectedTable) -> dict[str, object]:
    return {
        "table_name": table.campaign.name,
        "campaign": table.edition,
        "state": "open" if table.is_open else "closed",
        "epsilon": float(table.campaign.epsilon),
        "n_respondents": table.estimates.n_respondents,
        "n_answered": table.campaign.n_answered,
        "covered": ", ".join(f"({', '.join(scope)})" for scope in sorted(table.estimates.covered)),
    }
