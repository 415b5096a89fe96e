"""The rows that a generated SELECT reads: the names it may use, and the same FROM for DuckDB.

A statement is written once. Where Tacit and DuckDB are asked in different words, both stand between
marks, Tacit's first; `for_tacit` and `for_duckdb` read one of them.

DuckDB shows the groups that records are in, Tacit every group that the public domain allows. So
DuckDB reads, beside the records, one phantom for every combination of levels of the columns that
keys and WHERE use: groups appear by phantoms, and aggregates are of records alone.
"""

# ruff: noqa: S608 - the statements are what is generated

import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import duckdb

from tests.sql import world

_EITHER = re.compile("⟦([^¦⟧]*)¦([^⟧]*)⟧")
ONLY_REAL = "⟦¦ FILTER (WHERE is_real)⟧"
N_PHANTOMS_MAX = 20_000  # more take DuckDB longer than they are worth

# What a column is good for; its axis is what it is computed from.
BASE = {
    "sex": "sex",
    "city": "city",
    "blood": '"Blood Type"',
    "age": "age",
    "visits": "visits",
    "bmi": "bmi",
    "insured": "insured",
    "admitted": "admitted",
    "cost": "cost",
    "stay": "stay",
}
LEVELS = {column: axis.size for column, axis in zip(BASE.values(), world.SCHEMA.axes, strict=True)}
PUBLIC = {"country": "country", "population": "population", "capital": "is_capital"}

Axes = frozenset[str]


def either(tacit: str, duckdb: str) -> str:
    """Text that is one thing to Tacit and another to DuckDB."""
    return f"⟦{tacit}¦{duckdb}⟧"


def for_tacit(text: str) -> str:
    return _EITHER.sub(r"\1", text)


def for_duckdb(text: str) -> str:
    return _EITHER.sub(r"\2", text)


@dataclass
class Source:
    """Private rows in FROM.

    Parameters
    ----------
    columns : mapping
        How each column is written, by what it is good for.
    axes : mapping
        What each column is computed from, by what it is good for.
    text : callable
        FROM's entry, with phantoms for some axes.
    restricted : frozenset of str
        The axes that conditions inside the entry are about.
    has_unit : bool
        Whether the unit's key can be counted.
    with_text : callable
        The WITH that FROM's entry names, with phantoms for some axes.
    """

    columns: Mapping[str, str]
    axes: Mapping[str, Axes]
    text: Callable[[Axes], str]
    restricted: Axes = frozenset()
    has_unit: bool = True
    with_text: Callable[[Axes], str] = lambda _axes: ""
    used: set[str] = field(default_factory=set)

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    def __getitem__(self, role: str) -> str:
        """A column's text; that it was used is remembered."""
        self.used |= self.axes[role]
        return self.columns[role]

    def phantoms(self) -> Axes:
        """The axes that phantoms are needed for, after what was used so far."""
        return frozenset(self.used) | self.restricted


def are_few(phantoms: Axes) -> bool:
    return math.prod(LEVELS[axis] for axis in phantoms) <= N_PHANTOMS_MAX


def base(rng: random.Random) -> Source:
    """The table itself, under one of its names, its columns qualified or not."""
    name, alias = rng.choice(
        [("patients", ""), ("patients", "p"), ("public.patients", ""), ('"patients"', "q")]
    )
    shown = alias or "patients"
    prefix = f"{shown}." if rng.random() < 0.3 else ""
    columns = {role: prefix + column for role, column in BASE.items()}
    if rng.random() < 0.1:
        columns["age"] = columns["age"].upper()
    axes = {role: frozenset({column}) for role, column in BASE.items()}

    def text(touched: Axes) -> str:
        return either(
            name + (f" AS {alias}" if alias else ""), f"{_with_phantoms(touched)} {shown}"
        )

    return Source(columns, axes, text)


def joined(rng: random.Random) -> Source:
    """The table joined with a public one by its key."""
    join, condition = rng.choice(
        [
            ("JOIN", "ON p.city = c.city"),
            ("LEFT JOIN", "ON p.city = c.city"),
            ("INNER JOIN", "ON c.city = p.city"),
        ]
    )
    public = rng.choice(
        [
            "cities",
            "(SELECT city, country, population, is_capital FROM cities WHERE population > 5e5)",
        ]
    )
    columns = {role: f"p.{column}" for role, column in BASE.items()}
    columns |= {role: f"c.{column}" for role, column in PUBLIC.items()}
    axes = {role: frozenset({column}) for role, column in BASE.items()}
    axes |= dict.fromkeys(PUBLIC, frozenset({"city"}))

    def text(touched: Axes) -> str:
        return (
            f"{either('patients', _with_phantoms(touched))} AS p {join} {public} AS c {condition}"
        )

    return Source(columns, axes, text, frozenset() if "LEFT" in join else frozenset({"city"}))


def derived(rng: random.Random, inner: Source, condition: str, *, as_cte: bool) -> Source:
    """A SELECT that filters and computes rows of another source: in FROM, or in WITH.

    The axes that `inner` has been used for so far are those of the condition.
    """
    restricted = inner.phantoms() if condition else inner.restricted
    columns, axes, items = {}, {}, []
    for role, column in inner.columns.items():
        name = rng.choice([role, f"my_{role}"])
        shown = f"{column} + 1" if role == "age" and rng.random() < 0.2 else column
        items.append(f"{shown} AS {name}")
        columns[role], axes[role] = name, inner.axes[role]
    rng.shuffle(items)
    items.append("is_real")
    shown_items = either(", ".join(items[:-1]), ", ".join(items))
    where = f" WHERE {condition}" if condition else ""

    def query(touched: Axes) -> str:
        return f"SELECT {shown_items} FROM {inner.text(touched)}{where}"

    if as_cte:
        return Source(
            columns,
            axes,
            lambda _: "t",
            restricted,
            False,
            lambda axes: f"WITH t AS ({query(axes)}) ",
        )
    return Source(columns, axes, lambda axes: f"({query(axes)}) AS t", restricted, False)


def _with_phantoms(axes: Axes) -> str:
    real = "SELECT *, TRUE AS is_real FROM main.patients"
    if not axes:
        return f"({real})"
    tables = ", ".join(f'"levels of {axis.strip(chr(34))}"' for axis in sorted(axes))
    return f"({real} UNION ALL BY NAME SELECT *, FALSE AS is_real FROM {tables})"


def add_levels(database: duckdb.DuckDBPyConnection) -> None:
    """A table of its levels for every axis, and division as it is after Tacit's answers."""
    for column, axis in zip(BASE.values(), world.SCHEMA.axes, strict=True):
        table = f'"levels of {axis.name}"'
        database.execute(f"CREATE TABLE {table} ({column} {axis.sql_type})")
        rows = [[level] for level in axis.levels]
        database.executemany(f"INSERT INTO {table} VALUES (?)", rows)
    database.execute("SET ieee_floating_point_ops = false")
    database.execute("SET error_on_division_by_zero = false")
    database.execute("SET threads = 1")
