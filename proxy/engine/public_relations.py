"""What outer SQL reads besides answers: public and synthetic tables, views of data_privacy."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from planner.domain.public import REMAINING, privacy_view
from proxy.engine.own_views import OWN_VIEWS, own_view
from proxy.engine.relations import N_ROWS_TRIED
from proxy.engine.system_views import (
    REMAINING_SCHEMA,
    VIEW_SCHEMAS,
    TableRecord,
    remaining_aggregates,
)
from proxy.engine.system_views import privacy_view as view_of
from proxy.engine.visibility import VisibleTables
from proxy.synthetic_tables.system_view import SYNTHETIC_VIEW, synthetic_view


def public_relations(
    names: Sequence[str], seen: VisibleTables, records: Callable[[], Sequence[TableRecord]] | None
) -> dict[str, pa.Table]:
    """Public tables, and a caller's `data_privacy` views, under their names in the outer SQL.

    Parameters
    ----------
    names : sequence of str
    seen : VisibleTables
        What the caller may know of.
    records : callable, optional
        What the views show, made when one is read; without it, samples and empty views, to learn
        the types of the result.
    """
    found: dict[str, pa.Table] = {}
    for name in names:
        view = name.removeprefix(privacy_view(""))
        if name in seen.public:
            rows = seen.public[name]()
            found[name] = rows.slice(0, N_ROWS_TRIED) if records is None else rows
        elif view == SYNTHETIC_VIEW:
            found[name] = synthetic_view(() if records is None else seen.synthetic)
        elif view in OWN_VIEWS:
            found[name] = own_view(view, () if records is None else seen.own.values())
        elif records is None:
            found[name] = VIEW_SCHEMAS.get(view, REMAINING_SCHEMA).empty_table()
        elif view in VIEW_SCHEMAS:
            found[name] = view_of(view, records())
        else:
            table = view.removeprefix(f"{REMAINING}(").removesuffix(")")
            found[name] = remaining_aggregates(table, records())
    return found
