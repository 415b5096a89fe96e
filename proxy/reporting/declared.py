"""A table's declaration in its ledger: names for columns and levels, and measurements told in them.

A ledger of the first version has no declarations; its levels are known only by position.

What a measurement counts or sums is SQL of the public columns, for reports and views:

    COUNT(*) WHERE age BETWEEN 30 AND 40 GROUP BY sex        SUM(revenue) GROUP BY segment

The text is for people. It is made of the linear query that was charged for and of the table's
declaration, never of a statement, and long lists are cut; the ledger has what exactly was charged
for. A number that is no level and no square of one is shown as a weight.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from cube.pieces import runs_of
from cube.query import Factor, Partition, QueryBlock, Term
from cube.statistic import BOUNDED_ROWS, UNIT_SIZES, Rule


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column's public levels.

    Parameters
    ----------
    n_levels : int
        The number of levels.
    fields : mapping
        The declaration; its contents depend on the kind.
    """

    name: str
    kind: str
    sql_type: str
    n_levels: int
    fields: Mapping[str, Any]

    def level(self, position: int) -> str:
        """The name of the level at a position."""
        special = [
            *([] if self.fields["other"] is None else [f"other ({self.fields['other']})"]),
            *(["NULL"] if self.fields["null"] else []),
        ]
        if position >= self.n_regular:
            return special[position - self.n_regular]
        return self._regular(position)

    def levels(self, start: int, end: int) -> str:
        """The name of the levels from `start` up to, but not including, `end`."""
        first, last = self.level(start), self.level(end - 1)
        return first if end - start == 1 else f"{first} … {last}"

    @property
    def n_regular(self) -> int:
        """The number of levels that are neither OTHER nor NULL."""
        return self.n_levels - (self.fields["other"] is not None) - bool(self.fields["null"])

    @property
    def is_ordered(self) -> bool:
        """Whether its levels are numbers or dates, so that levels in a row are a range."""
        return self.kind not in {"category", "boolean"}

    def numbers(self) -> NDArray[np.float64] | None:
        """The numbers that the regular levels are; None if they are something else."""
        if self.kind not in {"integer", "measure"}:
            return None
        step = float(Fraction(self.fields["step"])) if self.kind == "measure" else 1.0
        return float(Fraction(self.fields["low"])) + step * np.arange(
            self.n_regular, dtype=np.float64
        )

    def literal(self, position: int) -> str:
        """A regular level, or OTHER, as SQL writes it."""
        is_other = position >= self.n_regular
        text = str(self.fields["other"]) if is_other else self._regular(position)
        quoted = text.replace("'", "''")
        return f"'{quoted}'" if self.kind in {"category", "date", "timestamp"} else text

    def comparison(self, position: int, *, is_equal: bool = True) -> str:
        """What SQL writes behind the column for one level, or for every level but that one."""
        if position == self.n_levels - 1 and self.fields["null"]:
            return "IS NULL" if is_equal else "IS NOT NULL"
        return f"{'=' if is_equal else '<>'} {self.literal(position)}"

    def range(self, start: int, end: int) -> str:
        """The regular levels from `start` up to, but not including, `end`, as a condition."""
        is_first, is_last = start == 0, end == self.n_regular
        if self.kind == "numeric":
            low, high = (_number(float(self.fields["edges"][place])) for place in (start, end))
            upper = f"{self.name} {'<=' if is_last else '<'} {high}"
            return upper if is_first else f"{self.name} >= {low} AND {upper}"
        if end - start == 1:
            return f"{self.name} {self.comparison(start)}"
        if is_first:
            return f"{self.name} <= {self.literal(end - 1)}"
        if is_last:
            return f"{self.name} >= {self.literal(start)}"
        return f"{self.name} BETWEEN {self.literal(start)} AND {self.literal(end - 1)}"

    def _regular(self, position: int) -> str:
        fields = self.fields
        match self.kind:
            case "category" | "boolean":
                return str(fields["levels"][position])
            case "numeric":
                low, high = (_number(float(edge)) for edge in fields["edges"][position:][:2])
                return f"{low} to {high}"
            case "date":
                first = dt.date.fromisoformat(fields["low"])
                return (first + dt.timedelta(days=position)).isoformat()
            case "timestamp":
                step = dt.timedelta(**{f"{fields['step']}s": position})
                return str(dt.datetime.fromisoformat(fields["low"]) + step)
            case "measure":
                value = Fraction(fields["low"]) + position * Fraction(fields["step"])
                return str(value) if value.denominator == 1 else _number(float(value))
            case _:
                return str(int(fields["low"]) + position)


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """The latest declaration of a table.

    Parameters
    ----------
    unit : str or None
        The column of the privacy unit.
    rows_per_unit_max : int
        The most rows of one unit that are kept.
    rows_per_unit_max_by : mapping of str to int
        The most at each level of a column; empty if that is not bounded.
    groups_per_unit_max : int
        The most groups of a statement in which one unit is counted.
    separate_budget : str
        Why it has a budget of its own beside another table about the same units.
    version : str
        The version of Tacit that wrote the declaration.
    """

    neighbours: str
    unit: str | None
    rows_per_unit_max: int
    rows_per_unit_max_by: Mapping[str, int]
    groups_per_unit_max: int
    separate_budget: str
    n_records_max: int
    version: str
    columns: tuple[DeclaredColumn, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The declaration that `cube.encoding.declare` wrote."""
        fields = json.loads(text)
        n_rows = fields.get("rows_per_unit_max", 1)
        columns = tuple(
            DeclaredColumn(one["name"], one["kind"], one["sql_type"], one["size"], one)
            for one in fields["columns"]
        )
        return cls(
            fields["neighbours"],
            fields["unit"],
            n_rows,
            fields.get("rows_per_unit_max_by", {}),
            fields.get("groups_per_unit_max", n_rows),
            fields.get("separate_budget", ""),
            fields["n_records_max"],
            fields["version"],
            columns,
        )

    def column(self, name: str, n_levels: int) -> DeclaredColumn | None:
        """A column, if the declaration has it with this number of levels."""
        found = (one for one in self.columns if (one.name, one.n_levels) == (name, n_levels))
        return next(found, None)


def _number(value: float) -> str:
    return f"{value:.12g}"


N_SHOWN: Final = 4  # of levels, ranges or terms
ROWS: Final = "COUNT(*)"
LIKE: Final = 1e-9  # a share: weights are told from levels, and nothing is computed with them

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Part:
    """One term: the aggregate, its conditions, and how many times it counts."""

    aggregate: str
    conditions: list[str]
    times: float

    @property
    def filtered(self) -> str:
        """The aggregate of one of several terms."""
        where = f" FILTER (WHERE {' AND '.join(self.conditions)})" if self.conditions else ""
        return f"{self.times:.6g} * {self.aggregate}{where}"


def query_text(block: QueryBlock, declared: DeclaredTable | None) -> str:
    """A linear query and its groups as SQL; of a column that is not declared, only the name."""
    parts = [_part(term, declared) for term in block.query.terms]
    partition = block.partition
    where = [] if partition is None else _inside(partition, declared)
    if len(parts) == 1:
        what, where = parts[0].aggregate, parts[0].conditions + where
    else:
        what = _cut((part.filtered for part in parts), " + ")
    keys = "" if partition is None else f" GROUP BY {_keys(partition)}"
    clause = f" WHERE {' AND '.join(where)}" if where else ""
    return f"{what}{clause}{keys}"


def of_units_text(block: QueryBlock, rule: Rule, declared: DeclaredTable | None) -> str:
    """A count of the units with a row in each group of a block, or of bounded rows of each unit."""
    rows = query_text(block, declared)
    unit = "unit" if declared is None or declared.unit is None else declared.unit
    kind, most, beside = rule
    if kind == BOUNDED_ROWS:
        return f"{rows}, at most {most} rows of each {unit} and a sum of {beside}"
    if kind == UNIT_SIZES:
        return f"how many of each {unit}: {rows}"
    count = f"COUNT(DISTINCT {unit})"
    if beside:
        count += f" FILTER (WHERE WAS_CUT({unit}))"
    if rows.startswith(ROWS):
        return f"{count}{rows.removeprefix(ROWS)}"
    return f"{count} of the rows of {rows}"


def _cut(texts: Iterable[str], between: str) -> str:
    """Texts in a row, the first few of them."""
    every = list(texts)
    more = [f"{len(every) - N_SHOWN} more"] if len(every) > N_SHOWN else []
    return between.join(every[:N_SHOWN] + more)


def _part(term: Term, declared: DeclaredTable | None) -> _Part:
    """One product of factors."""
    summed: list[str] = []
    conditions: list[str] = []
    times = float(term.scale)
    for factor in term.factors:
        column = _declared(factor.axes, factor.shape, declared)
        if factor.ends == (0, 1):
            conditions += _condition(factor.axes, factor.values != 0, column)
            continue
        name = ", ".join(factor.axes)
        power, multiple = _power(factor, column)
        summed += [name] * power or [f"weight of {name}"]
        times *= multiple
        if power and column is not None:
            conditions += _condition(factor.axes, _summed(factor, column), column)
    return _Part(f"SUM({' * '.join(summed)})" if summed else ROWS, conditions, times)


def _summed(factor: Factor, column: DeclaredColumn) -> Flags:
    """The levels that add to a sum, with 0 where its neighbours do, for 0 adds nothing."""
    kept: Flags = factor.values != 0
    regular = kept[: column.n_regular]
    for place in np.flatnonzero(column.numbers() == 0.0).tolist():
        regular[place] = regular[max(place - 1, 0)] or regular[place + 1 : place + 2].any()
    kept[column.n_regular :] = regular.all()
    return kept


def _declared(
    axes: tuple[str, ...], shape: tuple[int, ...], declared: DeclaredTable | None
) -> DeclaredColumn | None:
    """The declaration of an only axis."""
    return None if declared is None or len(axes) > 1 else declared.column(axes[0], shape[0])


def _power(factor: Factor, column: DeclaredColumn | None) -> tuple[int, float]:
    """1 or 2 where the values are levels or their squares, and how many times; 0 otherwise."""
    numbers = None if column is None else column.numbers()
    if numbers is None:
        return 0, 1.0
    values = factor.values[: numbers.size].astype(np.float64)
    support = np.flatnonzero(values)
    for power in (1, 2) if support.size else ():
        levels = numbers[support] ** power
        times = values[support[-1]] / levels[-1] if levels[-1] else 0.0
        if times and np.allclose(values[support], times * levels, rtol=LIKE, atol=0.0):
            return power, times
    return 0, 1.0


def _inside(partition: Partition, declared: DeclaredTable | None) -> list[str]:
    """The condition that a record is in some group."""
    if partition.covers_all:
        return []
    if len(partition.axes) > 1:  # there may be far too many cells to look at each
        found = f"{partition.n_grouped} of {partition.n_cells} combinations"
        return [f"({', '.join(partition.axes)}) in {found}"]
    column = _declared(partition.axes, partition.shape, declared)
    return _condition(partition.axes, partition.labels >= 0, column)


def _keys(partition: Partition) -> str:
    """The columns of the groups; with the number of groups if these are not single levels."""
    names = ", ".join(partition.axes)
    is_fine = partition.n_groups == partition.n_grouped
    return names if is_fine else f"{names} ({partition.n_groups} groups)"


def _condition(axes: tuple[str, ...], kept: Flags, column: DeclaredColumn | None) -> list[str]:
    """The levels that are kept, as one condition; none if all are."""
    if kept.all():
        return []
    if column is None:
        of_what = "levels" if len(axes) == 1 else "combinations"
        return [f"({', '.join(axes)}) in {np.count_nonzero(kept)} of {kept.size} {of_what}"]
    n_regular = column.n_regular
    special = [place for place in range(n_regular, kept.size) if kept[place]]
    if kept[:n_regular].all():
        absent = [place for place in range(n_regular, kept.size) if not kept[place]]
        return [f"{column.name} {column.comparison(place, is_equal=False)}" for place in absent]
    parts = _regular(column, kept[:n_regular])
    parts += [f"{column.name} {column.comparison(place)}" for place in special]
    return [parts[0]] if len(parts) == 1 else [f"({_cut(parts, ' OR ')})"]


def _regular(column: DeclaredColumn, kept: Flags) -> list[str]:
    """Regular levels as ranges, or as a list where levels have no order."""
    if not column.is_ordered:
        places = np.flatnonzero(kept).tolist()
        if len(places) <= 1:
            return [f"{column.name} {column.comparison(place)}" for place in places]
        return [f"{column.name} IN ({_cut(map(column.literal, places), ', ')})"]
    runs = runs_of(kept.astype(np.int64))
    ends = [*runs.starts[1:].tolist(), kept.size]
    pairs = zip(runs.starts.tolist(), ends, strict=True)
    return [column.range(start, end) for start, end in pairs if kept[start]]
