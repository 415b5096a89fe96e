"""A table's declaration in its ledger: names for columns and for levels.

A ledger of the first version has no declarations; its levels are known only by position.
"""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self


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
        n_regular = self.n_levels - len(special)
        if position >= n_regular:
            return special[position - n_regular]
        return self._regular(position)

    def levels(self, start: int, end: int) -> str:
        """The name of the levels from `start` up to, but not including, `end`."""
        first, last = self.level(start), self.level(end - 1)
        return first if end - start == 1 else f"{first} … {last}"

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
    n_records_max : int
    version : str
        The version of Tacit that wrote the declaration.
    columns : tuple of DeclaredColumn
    """

    neighbours: str
    unit: str | None
    n_records_max: int
    version: str
    columns: tuple[DeclaredColumn, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The declaration that `cube.declaration.declare` wrote."""
        fields = json.loads(text)
        columns = tuple(
            DeclaredColumn(one["name"], one["kind"], one["sql_type"], one["size"], one)
            for one in fields["columns"]
        )
        return cls(
            fields["neighbours"],
            fields["unit"],
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
