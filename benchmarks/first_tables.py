"""Five made-up tables as their owners declare them: loans, sales, salaries, visits, stays.

A table has categories with common and rare levels, numbers that are skewed and follow each other,
days over some years, and a person, who may have several rows. `tacit init` drafts its configuration
from a Parquet file; what the draft leaves open is filled in from the declaration, as an owner does
it from public knowledge, and nothing else of the draft is changed. So the accuracies and limits
that a benchmark meets are those that a new owner gets.

No row is beyond `rows_per_unit_max`. Some numbers are beyond their declared bounds: `clamped` is
what answers are about.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from proxy.cli.draft.configuration import draft
from proxy.cli.draft.levels import toml_string
from proxy.sources.location import SourceLocation

DECLARED_FACTOR: Final = 2  # the public bound on the number of rows, of the number that there is
Array = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.str_] | NDArray[np.datetime64]


@dataclass(frozen=True, slots=True)
class Category:
    """A column of texts, and the share of each in the rows."""

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def declared(self) -> tuple[str, ...]:
        """The lines that an owner fills in."""
        return (f"levels = [{', '.join(map(toml_string, self.levels))}]",)

    def draw(self, rng: np.random.Generator, n_rows: int) -> NDArray[np.int64]:
        """Places of levels, of shape ``(n_rows,)``."""
        shares = np.array(self.shares)
        return rng.choice(len(self.levels), n_rows, p=shares / shares.sum()).astype(np.int64)

    def texts(self, places: NDArray[np.int64]) -> NDArray[np.str_]:
        """The levels at some places."""
        return np.array(self.levels)[places]


@dataclass(frozen=True, slots=True)
class Number:
    """A column of numbers between bounds.

    Parameters
    ----------
    name : str
    low, high : int
        The declared bounds; rows beyond are clamped.
    thresholds : tuple of int
        Where conditions of statements cut it.
    step : str
        To which rows are rounded, as in the configuration; empty for a whole number that is a key
        as well, which has no rows beyond its bounds.
    """

    name: str
    low: int
    high: int
    thresholds: tuple[int, ...]
    step: str = ""

    @property
    def declared(self) -> tuple[str, ...]:
        """The lines that an owner fills in."""
        bounds = (f"low = {self.low}", f"high = {self.high}")
        return (*bounds, f"step = {self.step}") if self.step else bounds

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64] | NDArray[np.int64]:
        """Numbers as the rows have them."""
        if not self.step:
            return np.clip(np.round(values), self.low, self.high).astype(np.int64)
        n_decimals = len(self.step.partition(".")[2])
        return np.round(np.maximum(values, self.low), n_decimals).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Days:
    """A column of days in whole years."""

    name: str
    first_year: int
    last_year: int

    @property
    def declared(self) -> tuple[str, ...]:
        """The lines that an owner fills in."""
        return (f"low = {self.first_year}-01-01", f"high = {self.last_year}-12-31")

    def draw(self, rng: np.random.Generator, n_rows: int) -> NDArray[np.datetime64]:
        """Days, somewhat more of them in later years."""
        first = np.datetime64(dt.date(self.first_year, 1, 1), "D")
        n_days = (dt.date(self.last_year, 12, 31) - dt.date(self.first_year, 1, 1)).days + 1
        days: NDArray[np.datetime64] = first + np.floor(n_days * rng.beta(1.4, 1.0, n_rows)).astype(
            int
        )
        return days


Drawn = dict[str, Array]
Drawing = Callable[["Declared", np.random.Generator, int], Drawn]


@dataclass(frozen=True, slots=True)
class Declared:
    """A table as its owner knows it.

    Parameters
    ----------
    name : str
    person : str
        The column that says whom a row is about.
    rows_per_person : int
    categories : tuple of Category
    numbers : tuple of Number
    days : Days
    drawing : callable
        Draws the numbers, and the categories that they follow, for a number of rows.
    """

    name: str
    person: str
    rows_per_person: int
    categories: tuple[Category, ...]
    numbers: tuple[Number, ...]
    days: Days
    drawing: Drawing

    @property
    def measures(self) -> tuple[Number, ...]:
        """The numbers that are only summed and averaged."""
        return tuple(one for one in self.numbers if one.step)

    def rows(self, rng: np.random.Generator, n_rows: int) -> pa.Table:
        """Rows at random, in no order."""
        n_of_each = rng.integers(1, self.rows_per_person + 1, n_rows)
        persons = rng.permutation(np.repeat(np.arange(1, n_rows + 1), n_of_each)[:n_rows])
        drawn = self.drawing(self, rng, n_rows)
        return pa.table(
            {self.person: persons, **drawn, self.days.name: self.days.draw(rng, n_rows)}
        )

    def clamped(self, folder: Path) -> str:
        """A SELECT of the rows in a folder with numbers clamped to their bounds, for DuckDB."""
        kept = [self.person, self.days.name, *(one.name for one in self.categories)]
        clamps = [f"greatest(least({x.name}, {x.high}), {x.low}) AS {x.name}" for x in self.numbers]
        return f"SELECT {', '.join((*kept, *clamps))} FROM '{folder / self.name}.parquet'"  # noqa: S608 - declared names


def write_table(table: Declared, folder: Path, rng: np.random.Generator, n_rows: int) -> Path:
    """Write rows as Parquet, and the configuration that `tacit init` drafts, filled in.

    Returns
    -------
    path : Path
        Of the configuration; the rows are beside it, in ``NAME.parquet``.
    """
    parquet = folder / f"{table.name}.parquet"
    pq.write_table(table.rows(rng, n_rows), parquet)
    drafted = draft(
        SourceLocation(path=parquet),
        source=parquet.name,
        table=table.name,
        n_records_max=DECLARED_FACTOR * n_rows,
    )
    path = folder / "tacit.toml"
    path.write_text(filled_in(table, drafted.text), encoding="utf-8")
    return path


def filled_in(table: Declared, text: str) -> str:
    """A draft with what it leaves open.

    Raises
    ------
    ValueError
        If it has no place for something, or no line for the bound on rows.
    """
    columns: tuple[Category | Number | Days, ...] = (
        *table.categories,
        *table.numbers,
        table.days,
    )
    open_lines = {f"[tables.{table.name}.columns.{one.name}]": one.declared for one in columns}
    lines: list[str] = []
    waiting: tuple[str, ...] = ()
    is_bounded = table.rows_per_person == 1
    for line in text.splitlines():
        if not is_bounded and line.startswith("# rows_per_unit_max = ..."):
            lines.append(f"rows_per_unit_max = {table.rows_per_person}")
            is_bounded = True
            continue
        lines.append(line)
        if line.startswith("kind = ") and waiting:
            lines += waiting
            waiting = ()
        waiting = open_lines.pop(line, waiting)
    if open_lines or waiting or not is_bounded:
        raise ValueError(f"the draft has no place for {list(open_lines) or table.name}")
    return "\n".join([*lines, ""])


def _loans(table: Declared, rng: np.random.Generator, n_rows: int) -> Drawn:
    """Rates and amounts rise with the grade, amounts with the income."""
    grade, purpose = (one.draw(rng, n_rows) for one in table.categories)
    rate, amount, income = table.numbers
    incomes = rng.lognormal(11.0, 0.5, n_rows)
    return {
        **_texts(table, grade, purpose),
        rate.name: rate.rounded(6.0 + 3.2 * grade + rng.normal(0.0, 1.6, n_rows)),
        amount.name: amount.rounded(
            0.13 * incomes * np.exp(0.12 * grade + rng.normal(0.0, 0.45, n_rows))
        ),
        income.name: income.rounded(incomes),
    }


def _sales(table: Declared, rng: np.random.Generator, n_rows: int) -> Drawn:
    """More pieces cost more, and dearer products are bought by the piece."""
    product, region, channel = (one.draw(rng, n_rows) for one in table.categories)
    amount, pieces = table.numbers
    n_pieces = pieces.rounded(rng.geometric(0.35, n_rows).astype(np.float64))
    price = rng.lognormal(2.0 + 0.15 * product, 0.5, n_rows)
    return {
        **_texts(table, product, region, channel),
        amount.name: amount.rounded(price * n_pieces),
        pieces.name: n_pieces,
    }


def _salaries(table: Declared, rng: np.random.Generator, n_rows: int) -> Drawn:
    """A few earn many times what most do, and more from year to year."""
    team, role = (one.draw(rng, n_rows) for one in table.categories)
    salary, bonus, season = table.numbers
    years = rng.integers(season.low, season.high + 1, n_rows)
    paid = rng.lognormal(13.0 + 0.2 * role + 0.04 * (years - season.low), 0.9, n_rows)
    return {
        **_texts(table, team, role),
        salary.name: salary.rounded(paid),
        bonus.name: bonus.rounded(0.1 * paid * rng.lognormal(0.0, 0.6, n_rows)),
        season.name: years.astype(np.int64),
    }


def _visits(table: Declared, rng: np.random.Generator, n_rows: int) -> Drawn:
    """More pages take longer."""
    places = [one.draw(rng, n_rows) for one in table.categories]
    seconds, pages = table.numbers
    n_pages = pages.rounded(rng.geometric(0.25, n_rows).astype(np.float64))
    return {
        **_texts(table, *places),
        seconds.name: seconds.rounded(n_pages * rng.exponential(45.0, n_rows)),
        pages.name: n_pages,
    }


def _stays(table: Declared, rng: np.random.Generator, n_rows: int) -> Drawn:
    """Longer stays cost more, by ward."""
    ward, diagnosis, sex = (one.draw(rng, n_rows) for one in table.categories)
    cost, nights = table.numbers
    n_nights = nights.rounded(rng.gamma(1.3, 3.0, n_rows) + 1.0)
    return {
        **_texts(table, ward, diagnosis, sex),
        cost.name: cost.rounded(n_nights * rng.lognormal(6.4 + 0.1 * ward, 0.4, n_rows)),
        nights.name: n_nights,
    }


def _texts(table: Declared, *places: NDArray[np.int64]) -> Drawn:
    return {one.name: one.texts(at) for one, at in zip(table.categories, places, strict=True)}


def _falling(n_levels: int, power: float = 0.7) -> tuple[float, ...]:
    """Shares of levels, from the most common to the rarest, unscaled."""
    return tuple(float((place + 1) ** -power) for place in range(n_levels))


def _category(name: str, levels: str, power: float = 0.7) -> Category:
    texts = tuple(levels.split())
    return Category(name, texts, _falling(len(texts), power))


TABLES: Final = (
    Declared(
        "loans",
        "member_id",
        1,
        (
            Category("grade", tuple("ABCDEFG"), (0.17, 0.29, 0.28, 0.15, 0.07, 0.03, 0.01)),
            _category("purpose", "debt card home car medical moving wedding other", 1.0),
        ),
        (
            Number("interest_rate", 0, 35, (8, 12, 15, 20), "0.01"),
            Number("loan_amount", 0, 40_000, (5000, 10_000, 20_000), "1"),
            Number("annual_income", 0, 250_000, (40_000, 60_000, 100_000), "1"),
        ),
        Days("issued", 2015, 2019),
        _loans,
    ),
    Declared(
        "sales",
        "customer_id",
        2,
        (
            _category("product", "bread fruit books toys music garden sport shoes tools phones"),
            _category("region", "north south east west islands"),
            _category("channel", "web store app phone", 1.0),
        ),
        (
            Number("amount", 0, 500, (20, 50, 100), "0.01"),
            Number("pieces", 1, 20, (2, 3, 5)),
        ),
        Days("sold", 2021, 2023),
        _sales,
    ),
    Declared(
        "salaries",
        "player_id",
        5,
        (
            _category("team", "reds blues greens lions bears hawks wolves foxes owls eagles", 0.2),
            _category("role", "guard centre forward keeper coach", 0.4),
        ),
        (
            Number("salary", 0, 5_000_000, (250_000, 500_000, 1_000_000), "1000"),
            Number("bonus", 0, 500_000, (20_000, 50_000, 100_000), "100"),
            Number("season", 2010, 2020, (2012, 2014, 2016)),
        ),
        Days("signed", 2010, 2020),
        _salaries,
    ),
    Declared(
        "visits",
        "visitor_id",
        3,
        (
            _category("page", "home search product basket account help blog jobs press legal"),
            _category("device", "phone laptop tablet", 1.0),
            _category("country", "de fr it es pl nl be at cz pt se dk fi no ie"),
        ),
        (
            Number("seconds", 0, 1800, (30, 60, 300), "0.1"),
            Number("pages", 1, 30, (2, 4, 8)),
        ),
        Days("visited", 2022, 2024),
        _visits,
    ),
    Declared(
        "stays",
        "patient_id",
        1,
        (
            _category("ward", "surgery heart lungs children birth eyes skin nerves", 0.5),
            _category("diagnosis", "fall flu heart lungs cancer birth eye skin stroke kidney bone"),
            Category("sex", ("f", "m"), (0.53, 0.47)),
        ),
        (
            Number("cost", 0, 50_000, (1000, 3000, 10_000), "1"),
            Number("nights", 1, 60, (2, 4, 7)),
        ),
        Days("admitted", 2018, 2023),
        _stays,
    ),
)
