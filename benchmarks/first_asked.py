"""Statements as somebody writes them who meets a table for the first time, at random by kind.

Each is plain SQL without a target. It is also written for an engine on the rows themselves: with
every group, and with the number of rows of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.first_tables import Category, Declared, Number

N_ROWS: Final = "rows_of_group"
TOP: Final = (3, 5)
FRACTIONS: Final = ("0.1", "0.25", "0.75", "0.9")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of an answer.

    Parameters
    ----------
    sql : str
    parts : tuple of str
        The count or sum that it is, or the two whose ratio it is; empty for anything else.
    """

    sql: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement.

    Parameters
    ----------
    kind : str
        Its kind, such as ``average by group``.
    table : str
    keys : tuple of str
        The keys of its groups; none for one row.
    aggregates : tuple of Aggregate
        Columns ``v1``, ``v2`` and so on.
    where : str
        The condition; empty for none.
    limit : int
        How many rows it keeps, by the first column from its largest; 0 for all.
    """

    kind: str
    table: str
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    where: str = ""
    limit: int = 0

    @property
    def sql(self) -> str:
        """As the analyst writes it."""
        tail = f" ORDER BY v1 DESC LIMIT {self.limit}" if self.limit else ""
        return self._written(self._columns) + tail

    @property
    def exact_sql(self) -> str:
        """For an engine on the rows: all groups, with divisors ``d1``, .. and numbers of rows."""
        divisors = [
            f"{one.parts[1]} AS d{number}"
            for number, one in enumerate(self.aggregates, 1)
            if one.parts[1:]
        ]
        return self._written([*self._columns, *divisors, f"COUNT(*) AS {N_ROWS}"])

    @property
    def _columns(self) -> list[str]:
        return [f"{one.sql} AS v{number}" for number, one in enumerate(self.aggregates, 1)]

    def _written(self, columns: list[str]) -> str:
        keys = [f"{key} AS k{number}" for number, key in enumerate(self.keys, 1)]
        said = f"SELECT {', '.join([*keys, *columns])} FROM {self.table}"  # noqa: S608 - fixed words
        if self.where:
            said += f" WHERE {self.where}"
        return said + (f" GROUP BY {', '.join(self.keys)}" if self.keys else "")


COUNT: Final = Aggregate("COUNT(*)", ("COUNT(*)",))


def total(number: Number) -> Aggregate:
    """A sum."""
    return Aggregate(f"SUM({number.name})", (f"SUM({number.name})",))


def average(number: Number) -> Aggregate:
    """An average."""
    return Aggregate(f"AVG({number.name})", (f"SUM({number.name})", f"COUNT({number.name})"))


def people(table: Declared) -> Aggregate:
    """A number of people."""
    counted = f"COUNT(DISTINCT {table.person})"
    return Aggregate(counted, (counted,))


def ratio(above: Aggregate, below: Aggregate) -> Aggregate:
    """One sum or count over another."""
    return Aggregate(f"{above.sql} / {below.sql}", (*above.parts, *below.parts))


@dataclass(frozen=True, slots=True)
class Draw:
    """What statements on a table are drawn from."""

    table: Declared
    rng: np.random.Generator

    def category(self) -> Category:
        """A category to group by."""
        return self.table.categories[int(self.rng.integers(len(self.table.categories)))]

    def measure(self) -> Number:
        """A number to add up."""
        return self.table.measures[int(self.rng.integers(len(self.table.measures)))]

    def number(self) -> Number:
        """A number to look at in any way."""
        return self.table.numbers[int(self.rng.integers(len(self.table.numbers)))]

    def one_of(self, *of: Aggregate) -> Aggregate:
        """One of some aggregates."""
        return of[int(self.rng.integers(len(of)))]

    def key(self) -> tuple[str, ...]:
        """What to group by."""
        return (self.category().name,)

    def where(self) -> str:
        """A condition: none, one or two."""
        n_conditions = int(self.rng.choice(3, p=[0.4, 0.4, 0.2]))
        chosen = self.rng.permutation(3)[:n_conditions]
        makers = (self._of_category, self._of_number, self._of_days)
        return " AND ".join(makers[int(place)]() for place in chosen)

    def _of_category(self) -> str:
        one = self.category()
        n_named = int(self.rng.integers(1, min(4, len(one.levels))))
        named = self.rng.choice(one.levels[: max(3, n_named)], n_named, replace=False).tolist()
        said = ", ".join(f"'{level}'" for level in named)
        return f"{one.name} = {said}" if n_named == 1 else f"{one.name} IN ({said})"

    def _of_number(self) -> str:
        one = self.number()
        cut = int(self.rng.choice(one.thresholds))
        return f"{one.name} {self.rng.choice(['>=', '<', '>'])} {cut}"

    def _of_days(self) -> str:
        days = self.table.days
        year = int(self.rng.integers(days.first_year + 1, days.last_year + 1))
        if self.rng.random() < 0.5:
            return f"{days.name} >= DATE '{year}-01-01'"
        return f"{days.name} BETWEEN DATE '{year - 1}-01-01' AND DATE '{year}-06-30'"


Columns = tuple[tuple[str, ...], tuple[Aggregate, ...]]


def _count(_: Draw) -> Columns:
    return (), (COUNT,)


def _mixed(draw: Draw) -> Columns:
    columns = (COUNT, average(draw.number()), total(draw.measure()))
    return draw.key(), columns if draw.rng.random() < 0.7 else (*columns, people(draw.table))


def _correlation(draw: Draw) -> Columns:
    first, second = draw.rng.choice(len(draw.table.numbers), 2, replace=False).tolist()
    names = draw.table.numbers[first].name, draw.table.numbers[second].name
    return (), (Aggregate(f"CORR({', '.join(names)})"),)


def _quantile(draw: Draw) -> Columns:
    fraction = draw.rng.choice(FRACTIONS)
    said = f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {draw.measure().name})"
    return (), (Aggregate(said),)


def _ratio(draw: Draw) -> Columns:
    first, second = draw.table.numbers[:2]
    per_person = ratio(total(draw.measure()), people(draw.table))
    found = draw.one_of(per_person, ratio(total(first), total(second)))
    return (draw.key() if draw.rng.random() < 0.3 else ()), (found,)


def _series(draw: Draw) -> Columns:
    by_month = (f"DATE_TRUNC('month', {draw.table.days.name})",)
    return by_month, (draw.one_of(COUNT, total(draw.measure()), average(draw.measure())),)


def _top(draw: Draw) -> Columns:
    return draw.key(), (draw.one_of(COUNT, total(draw.measure()), average(draw.number())),)


# Sessions begin with these kinds, one after the other.
KINDS: Final[dict[str, Callable[[Draw], Columns]]] = {
    "several by group": _mixed,
    "correlation": _correlation,
    "average by group": lambda draw: (draw.key(), (average(draw.number()),)),
    "ratio": _ratio,
    "series": _series,
    "quantile": _quantile,
    "top": _top,
    "sum by group": lambda draw: (draw.key(), (total(draw.measure()),)),
    "median": lambda draw: ((), (Aggregate(f"MEDIAN({draw.number().name})"),)),
    "average": lambda draw: ((), (average(draw.number()),)),
    "people by group": lambda draw: (draw.key(), (people(draw.table),)),
    "people": lambda draw: ((), (people(draw.table),)),
    "sum": lambda draw: ((), (total(draw.measure()),)),
    "groups": lambda draw: (draw.key(), (COUNT,)),
    "count": _count,
}


def first_statements(
    table: Declared, rng: np.random.Generator, n_statements: int, first_kind: int
) -> list[Asked]:
    """Different statements of kinds at random; the first has no condition.

    Parameters
    ----------
    table : Declared
    rng : numpy.random.Generator
    n_statements : int
    first_kind : int
        The place of the first statement's kind in `KINDS`, which is gone through in a circle.
    """
    draw = Draw(table, rng)
    names = list(KINDS)
    found: dict[str, Asked] = {}
    while len(found) < n_statements:
        is_first = not found
        kind = names[first_kind % len(names) if is_first else int(rng.integers(len(names)))]
        keys, aggregates = KINDS[kind](draw)
        limit = int(rng.choice(TOP)) if kind == "top" else 0
        where = "" if is_first else draw.where()
        asked = Asked(kind, table.name, keys, aggregates, where, limit)
        found.setdefault(asked.sql, asked)
    return list(found.values())
