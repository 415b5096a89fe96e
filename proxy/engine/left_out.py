"""What answers say of rows that are left out, and of rows whose values count as others.

The bound is declared, so every answer about rows says it. Of how many units rows are left out is
private: it is said once somebody has bought it, as

    SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)), COUNT(DISTINCT customer) ..

does. It is then history, and costs nothing to say again. How many rows these units have beyond the
bound is not known: one unit may have any number of them. How many rows have a value that is clamped
or counts as OTHER is said likewise, once it was bought.
"""

import math
from collections.abc import Sequence
from typing import Final

from cube.query import QueryBlock, counting
from inference.posterior import Posterior
from planner.workload import ChangedValues, Part, Wanted
from proxy.api.requests import Caller
from proxy.api.rows_kept import LEFT_OUT, rows_kept
from proxy.tables.disclosure import shown_instead
from proxy.tables.private_table import ServedTable

_EVERYBODY: Final = QueryBlock(counting())
_WIDTH_MAX: Final = 0.2  # of the interval of a share that is worth telling


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
    note = f"{schema.table}: {kept}. {LEFT_OUT}"
    known = None if shown_instead(table, caller) is not None else _units_cut(table)
    return (note if known is None else f"{note} {known}",)


def _units_cut(table: ServedTable) -> str | None:
    """Of how many units rows are left out, as far as the history says; None if it does not."""
    confidence = table.info.default.confidence
    cut, every = _counted(table, only_cut=True), _counted(table, only_cut=False)
    if cut is None:
        return None
    share = None if every is None else _share_text(cut, every, "units", confidence)
    if share is None:
        low, high = cut.interval(confidence)
        ends = f"{math.floor(max(low, 0.0))} to {math.ceil(max(high, 0.0))}"
        share = f"{max(cut.value, 0.0):.0f} units ({ends} at confidence {confidence:g})"
    return f"Of about {share}, rows are left out."


def rows_changed(
    table: ServedTable, changed: Sequence[ChangedValues], caller: Caller
) -> tuple[str, ...]:
    """Which shares of a table's rows have values that count as others, if the history says."""
    target, name = table.info.default, table.info.schema.table
    asked = [one for one in changed if one.table == name]
    if not asked or shown_instead(table, caller) is not None:
        return ()
    blocks = (_EVERYBODY, *(one.rows for one in asked))
    every, *counts = (rows[0] for rows in table.look([Wanted(one, target) for one in blocks]))
    if not isinstance(every, Posterior):
        return ()
    shares = (
        _share_text(count, every, f"rows of {name}", target.confidence)
        if isinstance(count, Posterior)
        else None
        for count in counts
    )
    told = zip(asked, shares, strict=True)
    return tuple(f"About {share} {one.rows_said}." for one, share in told if share is not None)


def _share_text(some: Posterior, every: Posterior, what: str, confidence: float) -> str | None:
    """A share with its interval; None if the ends of this are far apart."""
    low, value, high = share_of(some, every, confidence)
    if high - low > _WIDTH_MAX:
        return None
    ends = f"{math.floor(1e4 * low) / 100:g} % to {math.ceil(1e4 * high) / 100:g} %"
    return f"{100 * value:.2g} % of the {what} ({ends} at confidence {confidence:g})"


def share_of(some: Posterior, every: Posterior, confidence: float) -> tuple[float, float, float]:
    """The low end, the value and the high end of the share that some are of all.

    Both counts are between their ends with the confidence, as they share the error probability;
    where they are, the share is between these ends.
    """
    surer = (1 + confidence) / 2
    (some_low, some_high), (low, high) = some.interval(surer), every.interval(surer)
    least = min(max(some_low, 0.0) / high, 1.0) if high > 0 else 0.0
    most = min(max(some_high, 0.0) / low, 1.0) if low > 0 else 1.0
    value = some.value / every.value if every.value > 0 else least
    return least, min(max(value, least), most), most


def _counted(table: ServedTable, *, only_cut: bool) -> Posterior | None:
    """What the history says of the units of the whole table; None if they were never counted."""
    schema = table.info.schema
    groups_max = schema.groups_per_unit
    wanted = Wanted(_EVERYBODY, table.info.default, groups_max=groups_max, only_cut=only_cut)
    ((found,),) = table.look([wanted])
    return found if isinstance(found, Posterior) else None
