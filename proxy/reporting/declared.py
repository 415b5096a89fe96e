"""A table's declaration in its ledger: names for columns and for levels.

A ledger of the first version has no declarations; its levels are known only by position.
"""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column's public levels.

    Parameters
    ----------
    name, kind, sql_type : str
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
    neighbours : str
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
    n_records_max : int
    version : str
        The version of Tacit that wrote the declaration.
    columns : tuple of DeclaredColumn
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
