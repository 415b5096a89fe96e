"""Tables with neighbours, and what is asked of them, for record and replay (recorded.py).

A table is a list of rows of units; its neighbours lack one unit, or have one more. Units are as
awkward as they come: with more rows than are kept, all in one cell or in many, with values beyond
every bound and in no level at all.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TypeAlias
from unittest import mock

from accountant.ledger.stores import key_file
from cube.refusals import Refused
from proxy.bootstrap import Service
from tests.support.configured import answer, configured

Row: TypeAlias = tuple[str, ...]  # city, age, income, day; and of a table, the unit
CITIES = ("Oslo", "Rome", "Bern", "Lima", "Bonn")
KEY = bytes(range(32))  # by which rows are kept: part of the randomness that is replayed

COLUMNS = """
[tables.people.columns.city]
kind = "category"
levels = ["Oslo", "Rome", "Bern"]
other = "elsewhere"
[tables.people.columns.age]
kind = "integer"
low = 18
high = 29
null = true
[tables.people.columns.income]
kind = "measure"
low = -1000
high = 5000
step = 10
[tables.people.columns.day]
kind = "date"
low = "2026-01-01"
high = "2026-01-07"
"""


@dataclass(frozen=True)
class World:
    """One declaration, and the statements that its table is asked.

    Parameters
    ----------
    name : str
    declared : str
        Lines of the table's section.
    statements : tuple of str
    n_rows_max : int
        How many rows a unit has at most, of which the declaration may keep fewer.
    """

    name: str
    declared: str
    statements: tuple[str, ...]
    n_rows_max: int = 1

    def rows_of_unit(self, random: Random) -> list[Row]:
        """The rows of a new unit: sometimes all alike."""
        rows = [a_row(random) for _ in range(random.randint(1, self.n_rows_max))]
        return rows[:1] * len(rows) if random.random() < 0.3 else rows


def a_row(random: Random) -> Row:
    """A row, with values at and beyond the bounds among them."""
    age = random.choice(["", "18", "29", str(random.randint(18, 29))])
    income = random.choice(["-1000", "5000", "99999", "-7e5", str(random.randint(-900, 4900))])
    return random.choice(CITIES), age, income, f"2026-01-{random.randint(1, 7):02}"


BASIC = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT city, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY city",
    "SELECT AVG(income) AS a, AVG(age) AS b FROM people WHERE age > 20",
    "SELECT city, COUNT(*) FILTER (WHERE income > 900) AS n FROM people GROUP BY ROLLUP (city)",
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 2) city, COUNT(*) AS n FROM people "
        "GROUP BY city"
    ),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.1) SUM(income) AS s FROM people",
    "SELECT MEDIAN(age) AS m, COUNT(DISTINCT city) AS n FROM people",
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 1) SUM(age * 3 - income / 10) AS s "
        "FROM people"
    ),
    "SELECT CORR(age, income) AS c, STDDEV(income) AS d FROM people",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.001) COUNT(*) AS n FROM people",
)
SYNTHETIC = (
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    (
        "CREATE SYNTHETIC TABLE p FROM people WITH (epsilon => 99, method => 'privbayes', "
        "rows => 50, seed => 7, degree => 1, columns => (city, day, age))"
    ),
    (
        "CREATE SYNTHETIC TABLE q FROM people WITH (epsilon => 2, method => 'pairwise', "
        "rows => 50, seed => 7, columns => (city, day, age))"
    ),
    "SELECT city, day, COUNT(*) AS n FROM people GROUP BY city, day",
)
UNITS = (
    "SELECT COUNT(DISTINCT person) AS n FROM people",
    "SELECT city, COUNT(DISTINCT person) AS n FROM people GROUP BY city",
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 2) city, "
        "COUNT(DISTINCT person) AS n FROM people GROUP BY city"
    ),
    "SELECT COUNT(DISTINCT person) FILTER (WHERE WAS_CUT(person)) AS n FROM people",
    "SELECT city, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY city",
    "SELECT day, COUNT(*) AS n FROM people GROUP BY day",
)
GAUSSIAN = (
    *(
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => {width}) {key}, "  # noqa: S608
        f"COUNT(*) AS n "
        f"FROM people GROUP BY {key}"
        for width in (9, 4)
        for key in ("city", "day", "city, day", "age")
    ),
    "SELECT COUNT(*) AS n FROM people",
)
DELTA = 'delta = 1e-5\nexpected_epsilon = "9"'
WORLDS = (
    World("a row each", 'unit = "person"\nbudget = 400', BASIC),
    World("synthetic", 'unit = "person"\nbudget = 900', SYNTHETIC),
    World(
        "rows of units", 'unit = "person"\nrows_per_unit_max = 3\nbudget = 900', (*UNITS, *BASIC), 7
    ),
    World(
        "groups of units",
        'unit = "person"\nrows_per_unit_max = 6\ngroups_per_unit_max = 2\nbudget = 900',
        UNITS,
        9,
    ),
    World(
        "rows by level",
        'unit = "person"\nrows_per_unit_max = 4\nrows_per_unit_max_by = { city = 2 }\nbudget = 900',
        UNITS,
        8,
    ),
    World(
        "Gaussian", f'unit = "person"\nrows_per_unit_max = 3\nbudget = 4000\n{DELTA}', GAUSSIAN, 5
    ),
    World(
        "synthetic Gaussian",
        f'unit = "person"\nbudget = 900\n{DELTA}',
        tuple(
            text.replace("epsilon => 2, ", "epsilon => 2, delta => 1e-5, ") for text in SYNTHETIC
        ),
    ),
)


def neighbours(world: World, seed: int, n_units: int = 60) -> tuple[list[Row], list[Row]]:
    """Two tables that differ by all rows of one unit; rows carry their unit as a fifth value."""
    random = Random(seed)  # noqa: S311 - rows of a test
    units = [world.rows_of_unit(random) for _ in range(n_units)]
    place = random.randrange(n_units)
    less = [rows for number, rows in enumerate(units) if number != place]
    both = [units, less]
    names = [list(range(n_units)), [one for one in range(n_units) if one != place]]
    if random.random() < 0.5:  # a unit more, or one less
        both.reverse()
        names.reverse()
    one, other = (
        [(*row, f"p{name}") for name, rows in zip(of, tables, strict=True) for row in rows]
        for of, tables in zip(names, both, strict=True)
    )
    return one, other


@contextmanager
def serving(world: World, rows: list[Row]) -> Iterator[Service]:
    """A service of a table with these rows; its ledger's key is the same whatever they are."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        lines = [",".join(row) for row in rows]
        (folder / "people.csv").write_text("\n".join(["city,age,income,day,person", *lines, ""]))
        text = (
            '[ledger]\npath = "people.ledger"\n[tables.people]\nsource = "people.csv"\n'
            f"n_records_max = 2000\nhalf_width = 20\n{world.declared}\n{COLUMNS}"
        )
        known = mock.patch.object(
            key_file, "secrets", SimpleNamespace(token_bytes=lambda n: KEY[:n])
        )
        with known, configured(folder, text) as service:
            yield service


def asking(world: World) -> Callable[[Service], list[str]]:
    """All that an analyst sees of a world's statements, refusals among it."""

    def ask(service: Service) -> list[str]:
        return [_seen(service, sql) for sql in world.statements]

    return ask


def _seen(service: Service, sql: str) -> str:
    try:
        found = answer(service, sql)
    except Refused as refused:
        return f"{refused.code}: {refused}"
    return f"{found.data.to_pylist()} {found.receipt}"


def served(world: World, rows: list[Row]) -> Callable[[], AbstractContextManager[Service]]:
    """The same, to be begun later."""
    return lambda: serving(world, rows)
