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
from proxy.synthetic_tables.report.compare import ComparedTable, TableComparison
from proxy.synthetic_tables.report.overview import overview_of
from proxy.synthetic_tables.report.residuals import CheckedTable
from proxy.synthetic_tables.report.verdict import Verdict
from proxy.synthetic_tables.report.wording import group_name, percent, percent_of, whole
from proxy.synthetic_tables.request import CONFIDENCE

N_LISTED_MAX: Final = (
    12  # counts that are listed for a column or a drawn pair: those with the largest differences
)
N_MAPS_MAX: Final = 12  # pairs that are drawn, the worst; every pair is listed


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
    checked: CheckedTable | None
    picture: Markup
    first: str
    last: str
    lines: tuple[CountLine, ...]


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair of columns in the list of all of them; the worst are also drawn.

    Parameters
    ----------
    scope : tuple of str
    compared : ComparedTable
    checked : CheckedTable, optional
        The pair as it was measured; None if it was measured only with other columns.
    lines : tuple of CountLine
        The largest differences, the largest first: at least one.
    picture : Markup, optional
    """

    scope: Scope
    compared: ComparedTable
    checked: CheckedTable | None
    lines: tuple[CountLine, ...]
    picture: Markup | None


def render_report(
    record: SyntheticRecord,
    comparison: TableComparison,
    verdict: Verdict,
    columns: Sequence[DeclaredColumn],
    versions: Mapping[str, str],
) -> str:
    """The page.

    Parameters
    ----------
    record : SyntheticRecord
    comparison : TableComparison
    verdict : Verdict
    columns : sequence of DeclaredColumn
        The columns of the synthetic table, in its order.
    versions : mapping of str to str
        The versions of the software.
    """
    by_name = {column.name: column for column in columns}
    # Of several tables on the same columns, the worst, which comes first
    checked = {one.scope: one for one in reversed(verdict.checked)}
    cards = [
        _card(by_name[name], compared, checked.get((name,)), f"column-{place}")
        for place, (name, compared) in enumerate(comparison.one_ways.items(), start=1)
    ]
    cards.sort(key=lambda card: -card.checked.excess_share if card.checked else 0.0)
    environment = page_environment("proxy.synthetic_tables.report")
    filters: dict[str, Callable[..., str]] = {
        "whole": whole,
        "percent": percent,
        "percent_of": percent_of,
    }
    environment.filters |= filters
    return environment.get_template("synthetic.html.j2").render(
        record=record,
        comparison=comparison,
        verdict=verdict,
        overview=overview_of(verdict, by_name),
        confidence=f"{100 * comparison.confidence:g} %",
        evaluation_confidence=f"{100 * CONFIDENCE:g} %",
        missing=f"{100 * (1 - comparison.confidence):.3g} %",
        columns=columns,
        cards=cards,
        pairs=_pair_lines(comparison, checked, by_name),
        n_pairs=math.comb(len(columns), 2),
        larger=[scope for scope in record.tables if len(scope) > 2],  # noqa: PLR2004 - than a pair
        not_shown=[
            column.name
            for column in columns
            if column.name not in comparison.one_ways and column.name not in record.unknown
        ],
        versions=versions,
    )


def _card(
    column: DeclaredColumn, compared: ComparedTable, checked: CheckedTable | None, name: str
) -> ColumnCard:
    n_groups = compared.synthetic.size
    [groups] = compared.known.groups
    label = (
        f"Counts of {n_groups} levels or groups of levels: synthetic bars, "
        f"{compared.n_inside} of {compared.n_known} within the intervals of the history"
    )
    return ColumnCard(
        column=column,
        compared=compared,
        checked=checked,
        picture=charts.counts(compared, name, label),
        first=group_name(column, np.flatnonzero(groups == 0)),
        last=group_name(column, np.flatnonzero(groups == n_groups - 1)),
        lines=tuple(
            _line(compared, place, {column.name: column})
            for place in sorted(compared.largest(N_LISTED_MAX))
        ),
    )


def _pair_lines(
    comparison: TableComparison,
    checked: Mapping[Scope, CheckedTable],
    columns: Mapping[str, DeclaredColumn],
) -> list[PairLine]:
    """All pairs: those furthest outside their noise first, then those that agree least."""

    def agreement(scope: Scope) -> tuple[float, float]:
        beyond = checked[scope].excess_share if scope in checked else 0.0
        return -beyond, comparison.pairs[scope].weighed_inside

    return [
        _pair_line(
            scope,
            comparison.pairs[scope],
            checked.get(scope),
            columns,
            f"pair-{place}" if place <= N_MAPS_MAX else "",
        )
        for place, scope in enumerate(sorted(comparison.pairs, key=agreement), start=1)
    ]


def _pair_line(
    scope: Scope,
    compared: ComparedTable,
    checked: CheckedTable | None,
    columns: Mapping[str, DeclaredColumn],
    name: str,
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
    return PairLine(scope, compared, checked, lines, picture)


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
