"""The first part of the page as values for its template: the verdict in words, worst first.

Names are text; the template escapes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cube.query import Scope
from proxy.reporting.declared import DeclaredColumn
from proxy.synthetic_tables.report.expected import PairDistance
from proxy.synthetic_tables.report.residuals import CheckedTable, Residual, Standing, Way
from proxy.synthetic_tables.report.verdict import Tone, Verdict
from proxy.synthetic_tables.report.wording import (
    group_name,
    joined,
    number_of,
    percent_of,
    whole,
)
from proxy.synthetic_tables.request import Evaluation

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
                f"{number_of(verdict.n_charges_since, 'later charge')} may tell more than it was "
                "made from: with epsilon => 0 it is made again, for free, from all that is known."
            )
    if not verdict.checked:
        said.append("No table of counts of these columns alone was measured.")
    if record.unknown:
        said.append(f"Nothing is known of {joined(record.unknown, N_NAMED_MAX)}: drawn uniformly.")
    unseen = [name for name in verdict.not_checked if name not in record.unknown]
    if unseen and verdict.checked:
        said.append(f"No measured table could be held against {joined(unseen, N_NAMED_MAX)}.")
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
    return (
        f"Evaluated: by pairs of columns, {percent_of(evaluation.estimate, 1.0)} of the rows are "
        f"in the wrong place ({low} to {high})."
    )


def _on_open_pairs(verdict: Verdict) -> str:
    worst = verdict.open_pairs[0]
    text = (
        f"{len(verdict.not_measured):,} of {number_of(len(verdict.pairs), 'pair')} of columns were "
        "not measured; how they go together only follows from the others"
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
