"""What outer SQL reads besides answers: public and synthetic tables, views of data_privacy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from planner.domain.relations import REMAINING, privacy_view
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
from proxy.streams.status import StreamStatus
from proxy.synthetic_tables.system_view import SYNTHETIC_VIEW, synthetic_view


@dataclass(frozen=True, slots=True)
class Shown:
    """What a caller's views show, made when one is read.

    Parameters
    ----------
    records : callable
        Of the private tables that they may know of.
    streams : callable
        The streams that they may know of, those that were dropped among them.
    """

    records: Callable[[], Sequence[TableRecord]]
    streams: Callable[[], Sequence[StreamStatus]]


def public_relations(
    names: Sequence[str], seen: VisibleTables, shown: Shown | None
) -> dict[str, pa.Table]:
    """Public tables, and a caller's `data_privacy` views, under their names in the outer SQL.

    Parameters
    ----------
    names : sequence of str
    seen : VisibleTables
        What the caller may know of.
    shown : Shown, optional
        Without it, samples and empty views, to learn the types of the result.
    """
    found: dict[str, pa.Table] = {}
    for name in names:
        view = name.removeprefix(privacy_view(""))
        if name in seen.public:
            rows = seen.public[name]()
            found[name] = rows.slice(0, N_ROWS_TRIED) if shown is None else rows
        elif view == SYNTHETIC_VIEW:
            found[name] = synthetic_view(() if shown is None else seen.synthetic)
        elif view in OWN_VIEWS:
            none = OWN_VIEWS[view].empty_table()
            found[name] = (
                none if shown is None else own_view(view, seen.own.values(), shown.streams())
            )
        elif shown is None:
            found[name] = VIEW_SCHEMAS.get(view, REMAINING_SCHEMA).empty_table()
        elif view in VIEW_SCHEMAS:
            found[name] = view_of(view, shown.records())
        else:
            table = view.removeprefix(f"{REMAINING}(").removesuffix(")")
            found[name] = remaining_aggregates(table, shown.records())
    return found
