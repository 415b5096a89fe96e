"""What answers say of rows that are left out: how many of a unit are kept, and who has more.

The bound is declared, so every answer about rows says it. Of how many units rows are left out is
private: it is said once somebody has bought it, as

    SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)), COUNT(DISTINCT customer) ..

does. It is then history, and costs nothing to say again. How many rows these units have beyond the
bound is not known: one unit may have any number of them.
"""

import math
from collections.abc import Sequence

from cube.block import QueryBlock
from cube.query import counting
from inference.posterior import Posterior
from planner.workload import Part, Wanted
from proxy.api.requests import Caller
from proxy.api.rows_kept import rows_kept
from proxy.tables.disclosure import shown_instead
from proxy.tables.private_table import ServedTable

_EVERYBODY = QueryBlock(counting())


def counts_kept_rows(parts: Sequence[Part]) -> bool:
    """Whether answers would be others if no row were left out.

    Not where units of the whole table are counted: each has a row that is kept.
    """
    return any(
        aggregate.groups_max is None or block.scope
        for part in parts
        for aggregate in part.aggregates
        for block in aggregate.blocks
        if not block.query.is_constant
    )


def left_out(table: ServedTable, caller: Caller) -> tuple[str, ...]:
    """What is said of the rows of a table that are left out; nothing if none are."""
    schema = table.info.schema
    kept = rows_kept(schema)
    if kept is None:
        return ()
    note = f"{schema.table}: {kept}; counts and sums are of the rows that are kept."
    known = None if shown_instead(table, caller) is not None else _units_cut(table)
    return (note if known is None else f"{note} {known}",)


def _units_cut(table: ServedTable) -> str | None:
    """Of how many units rows are left out, as far as the history says; None if it does not."""
    confidence = table.info.default.confidence
    cut, every = _counted(table, only_cut=True), _counted(table, only_cut=False)
    if cut is None:
        return None
    if every is None or every.value <= 0:
        low, high = cut.interval(confidence)
        about = f"{max(cut.value, 0.0):.0f}"
        ends = f"{math.floor(max(low, 0.0))} to {math.ceil(max(high, 0.0))}"
    else:
        low, value, high = share_cut(cut, every, confidence)
        about = f"{100 * value:.2g} % of the"
        ends = f"{math.floor(1e4 * low) / 100:g} % to {math.ceil(1e4 * high) / 100:g} %"
    return f"Of about {about} units ({ends} at confidence {confidence:g}), rows are left out."


def share_cut(cut: Posterior, every: Posterior, confidence: float) -> tuple[float, float, float]:
    """The low end, the value and the high end of the share of units with rows left out.

    Both counts are between their ends with the confidence, as they share the error probability;
    where they are, the share is between these ends.
    """
    surer = (1 + confidence) / 2
    (cut_low, cut_high), (low, high) = cut.interval(surer), every.interval(surer)
    least = min(max(cut_low, 0.0) / high, 1.0) if high > 0 else 0.0
    most = min(max(cut_high, 0.0) / low, 1.0) if low > 0 else 1.0
    value = cut.value / every.value if every.value > 0 else least
    return least, min(max(value, least), most), most


def _counted(table: ServedTable, *, only_cut: bool) -> Posterior | None:
    """What the history says of the units of the whole table; None if they were never counted."""
    schema = table.info.schema
    groups_max = schema.groups_per_unit
    wanted = Wanted(_EVERYBODY, table.info.default, groups_max=groups_max, only_cut=only_cut)
    ((found,),) = table.look([wanted])
    return found if isinstance(found, Posterior) else None
