"""The report of a synthetic table as one self-contained page.

Numbers, lists of names and groups of levels, as the report writes them.

Text out; it is not escaped here.

The first part of the page as values for its template: the verdict in words, worst first.

Names are text; the template escapes them.

Names of tables, columns and levels are untrusted, so every one of them goes through Jinja's
escaping; only charts, which are drawn here from numbers (charts.py), are not escaped.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cube.query import Scope
from proxy.reporting import DeclaredColumn, page_environment
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report import charts
from proxy.synthetic_tables.report.compare import (
    ComparedTable,
    TableComparison,
)
from proxy.synthetic_tables.report.residuals import (
    CheckedTable,
    Residual,
    Standing,
    Way,
)
from proxy.synthetic_tables.report.verdict import (
    PairDistance,
    Tone,
    Verdict,
)
from proxy.synthetic_tables.request import CONFIDENCE, Evaluation

N_RUNS_MAX: Final = 3  # runs of levels that name a group; the rest is given as a number
SHARE_SHOWN_MIN: Final = 0.001  # a smaller share is not written as 0


def group_name(column: DeclaredColumn, levels: NDArray[np.int64]) -> str:
    """The levels of a group as text; of many, the first few and how many more."""
    ends = np.flatnonzero(np.diff(levels) > 1) + 1 if column.is_ordered else None
    runs = np.split(levels, np.arange(1, levels.size) if ends is None else ends)
    names = [column.levels(int(run[0]), int(run[-1]) + 1) for run in runs[:N_RUNS_MAX]]
    n_more = levels.size - sum(run.size for run in runs[:N_RUNS_MAX])
    return ", ".join(names) + (f" and {n_more} more" if n_more else "")


def joined(names: Sequence[str], n_max: int) -> str:
    """Names in a sentence; of many, the first few and how many more.

    >>> joined(["age"], 2), joined(["age", "sex"], 2), joined(["age", "sex", "job", "pay"], 2)
    ('age', 'age and sex', 'age, sex and 2 more')
    """
    shown, n_more = list(names[:n_max]), len(names) - n_max
    if n_more > 0:
        shown.append(f"{n_more:,} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def number_of(number: int, what: str) -> str:
    """A number of things.

    >>> number_of(1, "pair"), number_of(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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


def percent_of(part: float, everything: float) -> str:
    """A part in percent, which is not written as nothing unless it is.

    >>> percent_of(47, 1000), percent_of(0.2, 1000), percent_of(0, 0)
    ('4.7 %', 'under 0.1 %', '0.0 %')
    """
    share = part / everything if everything else 0.0
    return "under 0.1 %" if 0 < share < SHARE_SHOWN_MIN else f"{100 * share:.1f} %"


N_WORST_MAX: Final = 12  # tables that are listed though there are more outside
N_CLOSEST: Final = 5  # tables that are listed if none is outside
N_NAMED_MAX: Final = 3  # columns that the headline names
N_MAP_COLUMNS_MAX: Final = 26  # more would not fit; those that are furthest off are shown
N_BARS_MAX: Final = 26
STEPS: Final = (0.01, 0.025, 0.05, 0.1)  # distances at which the colour of the map changes


@dataclass(frozen=True, slots=True)
class TableLine:
    """A measured table in the list that begins with the worst."""

    name: str
    what: str
    rows: str
    limit: str
    beyond: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class MapCell:
    """A pair in the map: its step from 0 to 4, or -1 for a distance that nothing tells."""

    step: int
    text: str
    title: str
    is_measured: bool
    is_outside: bool


@dataclass(frozen=True, slots=True)
class DistanceMap:
    """Columns by columns, below the diagonal: a row has a cell for each column before its own."""

    names: tuple[str, ...]
    rows: tuple[tuple[MapCell, ...], ...]
    n_left_out: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of the budget."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Overview:
    """What the first screen shows."""

    tone: Tone
    headline: str
    sentences: tuple[str, ...]
    lines: tuple[TableLine, ...]
    distances: DistanceMap
    kinds: tuple[Bar, ...]
    of_columns: tuple[Bar, ...]


def overview_of(verdict: Verdict, columns: Mapping[str, DeclaredColumn]) -> Overview:
    """The verdict in words and lists."""
    bought = verdict.bought
    return Overview(
        tone=verdict.tone,
        headline=_headline(verdict),
        sentences=tuple(_sentences(verdict, columns)),
        lines=tuple(_line(one, columns) for one in _listed(verdict)),
        distances=_map(verdict),
        kinds=_bars(bought.by_kind, bought.total),
        of_columns=_bars(sorted(bought.by_column, key=lambda one: -one[1]), bought.total),
    )


def _headline(verdict: Verdict) -> str:
    match verdict.tone:
        case Tone.BAD if not verdict.checked:
            return "There is nothing to compare with."
        case Tone.BAD:
            return (
                f"It contradicts what was measured of {joined(verdict.worst_columns, N_NAMED_MAX)}."
            )
        case Tone.FAIR if verdict.outside or verdict.near:
            return "It agrees with what was measured in most places, not in all."
        case Tone.FAIR if verdict.has_gaps:
            return "It agrees with everything that was measured. Not everything was."
        case Tone.FAIR:
            return "It agrees with everything that was measured, but noise is large."
        case _:
            return "It agrees with everything that was measured."


def _sentences(verdict: Verdict, columns: Mapping[str, DeclaredColumn]) -> list[str]:
    """The reasons for the verdict, the weightiest first."""
    record, said = verdict.record, []
    if record.evaluation is not None:
        said.append(_on_evaluation(record.evaluation))
    off = [*verdict.outside, *verdict.near]
    if off:
        worst = off[0]
        said.append(
            f"Worst is {_name(worst)}: {_what(worst, columns)}, {_rows(worst.worst)} "
            f"({percent_of(abs(worst.worst.rows), worst.n_rows)} of all), where noise and "
            f"drawing explain at most {whole(worst.worst.limit)}."
        )
        if verdict.n_charges_since:
            said.append(
                f"{number_of(verdict.n_charges_since, 'later charge')} may tell more than the "
                "table was made from. Make it again with epsilon => 0: that is free, and uses "
                "all that is known."
            )
    if not verdict.checked:
        said.append("No table of counts of these columns alone was measured.")
    if record.unknown:
        said.append(f"Nothing is known of {joined(record.unknown, N_NAMED_MAX)}: drawn uniformly.")
    unseen = [name for name in verdict.not_checked if name not in record.unknown]
    if unseen and verdict.checked:
        said.append(f"No measured table could be compared with {joined(unseen, N_NAMED_MAX)}.")
    if record.incomplete:
        said.append(f"Not all of it was bought: {record.incomplete}")
    if verdict.open_pairs:
        said.append(_on_open_pairs(verdict))
    if verdict.is_noisy and record.evaluation is None:
        said.append(
            f"By pairs of columns, {percent_of(verdict.expected or 0.0, 1.0)} of the rows are "
            "expected to be in the wrong place."
        )
    return said


def _on_evaluation(evaluation: Evaluation) -> str:
    low, high = (
        percent_of(min(1.0, max(0.0, evaluation.estimate + side * evaluation.half_width)), 1.0)
        for side in (-1, 1)
    )
    at_most = "at most " if evaluation.is_bound else ""
    return (
        f"Evaluated: by pairs of columns, {at_most}{percent_of(evaluation.estimate, 1.0)} of the "
        f"rows are in the wrong place ({low} to {high})."
    )


def _on_open_pairs(verdict: Verdict) -> str:
    worst = verdict.open_pairs[0]
    text = (
        f"{len(verdict.not_measured):,} of {number_of(len(verdict.pairs), 'pair')} of columns "
        "were not measured; how they go together is inferred from the others"
    )
    if worst.share is None:
        return f"{text}."
    name = " \N{MULTIPLICATION SIGN} ".join(worst.scope)
    return (
        f"{text}. Furthest off may be {name}, by about {percent_of(worst.share, 1.0)} of the rows."
    )


def _listed(verdict: Verdict) -> Sequence[CheckedTable]:
    off = [one for one in verdict.checked if one.standing is not Standing.INSIDE]
    return off[:N_WORST_MAX] if off else verdict.checked[:N_CLOSEST]


def _line(checked: CheckedTable, columns: Mapping[str, DeclaredColumn]) -> TableLine:
    return TableLine(
        name=_name(checked),
        what=_what(checked, columns),
        rows=_rows(checked.worst),
        limit=whole(checked.worst.limit),
        beyond=percent_of(checked.worst.excess, checked.n_rows) if checked.worst.excess else "",
        standing=checked.standing,
    )


def _name(checked: CheckedTable) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(checked.scope)


def _rows(residual: Residual) -> str:
    rows = whole(abs(residual.rows))
    if residual.way in {Way.EVERY, Way.LARGE}:
        return f"{rows} rows in the wrong place"
    return f"{rows} rows too {'many' if residual.rows > 0 else 'few'}"


def _what(checked: CheckedTable, columns: Mapping[str, DeclaredColumn]) -> str:
    """Which counts of a table its worst residual is about."""
    groups = checked.worst.groups
    match checked.worst.way:
        case Way.EVERY:
            return "all of its counts"
        case Way.LARGE:
            return f"its {number_of(groups.size, 'large count')}"
        case Way.SMALL:
            return f"its {number_of(groups.size, 'near-empty count')} together"
        case _:
            levels = checked.measured.levels_in(groups)
            told = [
                f"{name} {group_name(columns[name], places)}"
                for name, places in zip(checked.scope, levels, strict=True)
                if places.size < columns[name].n_levels
            ]
            return ", ".join(told) or "all of its rows"


def _map(verdict: Verdict) -> DistanceMap:
    names = [name for name, _ in verdict.record.columns]
    far = dict.fromkeys(names, 0.0)
    for pair in verdict.pairs.values():
        for name in pair.scope:
            far[name] = max(far[name], pair.share or 0.0)
    shown = set(sorted(names, key=lambda name: -far[name])[:N_MAP_COLUMNS_MAX])
    kept = [name for name in names if name in shown]
    outside = {one.scope for one in verdict.outside}
    rows = tuple(
        tuple(_cell(verdict.pairs[_pair(row, column)], outside) for column in kept[:place])
        for place, row in enumerate(kept)
    )
    return DistanceMap(tuple(kept), rows, len(names) - len(kept))


def _pair(first: str, second: str) -> Scope:
    return (first, second) if first < second else (second, first)


def _cell(pair: PairDistance, outside: set[Scope]) -> MapCell:
    name = " \N{MULTIPLICATION SIGN} ".join(pair.scope)
    is_outside = pair.scope in outside
    if pair.share is None:
        return MapCell(-1, "?", f"{name}: not measured, nothing tells", False, is_outside)
    about = percent_of(pair.share, 1.0)
    how = "measured" if pair.is_measured else "not measured, estimated"
    if is_outside:
        how += ", outside its noise"
    step = int(np.searchsorted(STEPS, pair.share))
    text = f"{100 * pair.share:.0f}"
    return MapCell(step, text, f"{name}: {about}, {how}", pair.is_measured, is_outside)


def _bars(amounts: Sequence[tuple[str, float]], total: float) -> tuple[Bar, ...]:
    shown = amounts[:N_BARS_MAX]
    return tuple(Bar(name, amount / total if total else 0.0) for name, amount in shown)


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
    checked : CheckedTable, optional
        The pair as it was measured; None if it was measured only with other columns.
    lines : tuple of CountLine
        The largest differences, the largest first: at least one.
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
            _count_line(compared, place, {column.name: column})
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
    lines = tuple(_count_line(compared, place, columns) for place in furthest)
    return PairLine(scope, compared, checked, lines, picture)


def _count_line(
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
