"""The report of a synthetic table as one self-contained page: nothing to fetch, nothing to run.

Names of tables, columns and levels are untrusted, so every one of them goes through Jinja's
escaping; only charts, which are drawn here from numbers (charts.py), are not escaped.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from cube.query import Scope
from proxy.reporting.declared import DeclaredColumn
from proxy.reporting.pages import page_environment
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report import charts
from proxy.synthetic_tables.report.compare import ComparedTable, Integers, TableComparison

N_LISTED_MAX: Final = (
    12  # counts that are listed for a column or a drawn pair: those with the largest differences
)
N_RUNS_MAX: Final = 3  # runs of levels that name a group; the rest is given as a number
N_MAPS_MAX: Final = 12  # pairs that are drawn, those that agree least; every pair is listed
AGREES_FROM: Final = 0.9  # share of counts inside their intervals; below it the page warns first
ORDERED_KINDS: Final = frozenset({"integer", "numeric", "date", "measure"})


@dataclass(frozen=True, slots=True)
class CountLine:
    """One count: its group, the history's estimate, and the synthetic count."""

    names: tuple[str, ...]
    estimate: str
    interval: str
    synthetic: str
    is_inside: bool


@dataclass(frozen=True, slots=True)
class ColumnCard:
    """A column's counts, as a chart and as text."""

    column: DeclaredColumn
    compared: ComparedTable
    picture: Markup
    first: str
    last: str
    lines: tuple[CountLine, ...]


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair of columns in the list of all of them; the least agreeing are also drawn.

    Parameters
    ----------
    scope : tuple of str
    compared : ComparedTable
    lines : tuple of CountLine
        The largest differences, the largest first: at least one.
    picture : Markup, optional
    """

    scope: Scope
    compared: ComparedTable
    lines: tuple[CountLine, ...]
    picture: Markup | None


def render_report(
    record: SyntheticRecord,
    comparison: TableComparison,
    columns: Sequence[DeclaredColumn],
    versions: Mapping[str, str],
) -> str:
    """The page.

    Parameters
    ----------
    record : SyntheticRecord
    comparison : TableComparison
    columns : sequence of DeclaredColumn
        The columns of the synthetic table, in its order.
    versions : mapping of str to str
        The versions of the software.
    """
    by_name = {column.name: column for column in columns}
    cards = [
        _card(by_name[name], compared, f"column-{place}")
        for place, (name, compared) in enumerate(comparison.one_ways.items(), start=1)
    ]
    environment = page_environment("proxy.synthetic_tables.report")
    filters: dict[str, Callable[..., str]] = {"whole": whole, "percent": percent}
    environment.filters |= filters
    return environment.get_template("synthetic.html.j2").render(
        record=record,
        comparison=comparison,
        confidence=f"{100 * comparison.confidence:g} %",
        missing=f"{100 * (1 - comparison.confidence):.3g} %",
        agrees=comparison.n_inside >= AGREES_FROM * comparison.n_known,
        columns=columns,
        cards=cards,
        pairs=_pair_lines(comparison, by_name),
        n_pairs=math.comb(len(columns), 2),
        larger=[scope for scope in record.tables if len(scope) > 2],  # noqa: PLR2004 - than a pair
        not_shown=[
            column.name
            for column in columns
            if column.name not in comparison.one_ways and column.name not in record.unknown
        ],
        versions=versions,
    )


def _card(column: DeclaredColumn, compared: ComparedTable, name: str) -> ColumnCard:
    n_groups = compared.synthetic.size
    [groups] = compared.known.groups
    label = (
        f"Counts of {n_groups} levels or groups of levels: synthetic bars, "
        f"{compared.n_inside} of {compared.n_known} within the intervals of the history"
    )
    return ColumnCard(
        column=column,
        compared=compared,
        picture=charts.counts(compared, name, label),
        first=group_name(column, np.flatnonzero(groups == 0)),
        last=group_name(column, np.flatnonzero(groups == n_groups - 1)),
        lines=tuple(
            _line(compared, place, {column.name: column})
            for place in sorted(compared.largest(N_LISTED_MAX))
        ),
    )


def _pair_lines(
    comparison: TableComparison, columns: Mapping[str, DeclaredColumn]
) -> list[PairLine]:
    """All pairs, those that agree least first."""

    def agreement(scope: Scope) -> tuple[float, float]:
        compared = comparison.pairs[scope]
        return compared.share_inside, -float(np.abs(compared.relative).max())

    return [
        _pair_line(
            scope, comparison.pairs[scope], columns, f"pair-{place}" if place <= N_MAPS_MAX else ""
        )
        for place, scope in enumerate(sorted(comparison.pairs, key=agreement), start=1)
    ]


def _pair_line(
    scope: Scope, compared: ComparedTable, columns: Mapping[str, DeclaredColumn], name: str
) -> PairLine:
    picture = None
    if name:
        n_rows, n_columns = compared.synthetic.shape
        label = (
            f"Differences in {n_rows} by {n_columns} cells, "
            f"{compared.n_inside} of {compared.n_known} within the intervals of the history"
        )
        picture = charts.differences(compared, name, label)
    furthest = compared.largest(N_LISTED_MAX if picture else 1)
    lines = tuple(_line(compared, place, columns) for place in furthest)
    return PairLine(scope, compared, lines, picture)


def _line(
    compared: ComparedTable, place: tuple[int, ...], columns: Mapping[str, DeclaredColumn]
) -> CountLine:
    known = compared.known
    names = tuple(
        group_name(columns[column], np.flatnonzero(groups == group))
        for column, groups, group in zip(known.scope, known.groups, place, strict=True)
    )
    low, high = float(known.low[place]), float(known.high[place])
    return CountLine(
        names=names,
        estimate=whole(float(known.values[place])),
        interval=f"{whole(low)} to {whole(high)}",
        synthetic=whole(float(compared.synthetic[place])),
        is_inside=bool(compared.is_inside[place]),
    )


def group_name(column: DeclaredColumn, levels: Integers) -> str:
    """The levels of a group as text; of many, the first few and how many more."""
    ends = np.flatnonzero(np.diff(levels) > 1) + 1 if column.kind in ORDERED_KINDS else None
    runs = np.split(levels, np.arange(1, levels.size) if ends is None else ends)
    names = [column.levels(int(run[0]), int(run[-1]) + 1) for run in runs[:N_RUNS_MAX]]
    n_more = levels.size - sum(run.size for run in runs[:N_RUNS_MAX])
    return ", ".join(names) + (f" and {n_more} more" if n_more else "")


def whole(value: float) -> str:
    """A count rounded to whole rows.

    >>> whole(12345.6), whole(-0.2)
    ('12,346', '0')
    """
    return f"{round(value):,}"


def percent(share: float) -> str:
    """A share in percent, never rounded up to 100 %.

    >>> percent(0.95), percent(0.9999), percent(1.0), percent(0.3333)
    ('95.0 %', '99.9 %', '100.0 %', '33.3 %')
    """
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f} %"
