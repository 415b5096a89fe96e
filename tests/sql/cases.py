"""Cases as .sql files: a header of comments that says what is expected, then one statement.

    -- compare: rows | ordered | none REASON     how the answer is held against DuckDB's
    -- duckdb:                                    what DuckDB is asked instead, indented below
    --   SELECT ..
    -- ignore: low, high                          columns that DuckDB cannot know
    -- interval: n in low, high at 0.8 by sex     these columns hold the truth in 0.8 of answers
    -- half_width: 500                            the call's target, beside the SQL
    -- spends: nothing                            on a fresh ledger as on an old one
    -- n_rows: 0                                  where the answer is not compared

and of what is refused:

    -- code: unsupported_sql
    -- says: a phrase of the explanation
    -- works: SELECT ..                           what to ask instead
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine

HERE = Path(__file__).parent
CONFIDENCE = 0.95

_PRIVACY_CLAUSE = re.compile(r"WITH DIFFERENTIAL_PRIVACY( OPTIONS\([^)]*\))?", re.IGNORECASE)
_INTERVAL = re.compile(r"(\w+) in (\w+), (\w+)(?: at ([0-9.]+))?(?: by (.+))?")


class Interval(NamedTuple):
    """Columns of a result that promise to hold the truth of another."""

    value: str
    low: str
    high: str
    confidence: float
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One file."""

    name: str
    headers: Mapping[str, str]
    sql: str

    @property
    def comparison(self) -> str:
        return self.headers["compare"].split()[0]

    @property
    def oracle_sql(self) -> str:
        """What DuckDB is asked: the same, without the one clause that it cannot parse."""
        return self.headers.get("duckdb", _PRIVACY_CLAUSE.sub("", self.sql))

    @property
    def half_width(self) -> float | None:
        return float(self.headers["half_width"]) if "half_width" in self.headers else None

    @property
    def ignored(self) -> tuple[str, ...]:
        return _names(self.headers.get("ignore", ""))

    @property
    def is_free(self) -> bool:
        return self.headers.get("spends") == "nothing"

    @property
    def interval(self) -> Interval | None:
        if "interval" not in self.headers:
            return None
        found = _INTERVAL.fullmatch(self.headers["interval"])
        assert found is not None, self.name
        value, low, high, confidence, keys = found.groups()
        confidence = CONFIDENCE if confidence is None else float(confidence)
        return Interval(value, low, high, confidence, _names(keys or ""))


HEADERS = {
    "answered": {"compare", "duckdb", "ignore", "interval", "half_width", "spends", "n_rows"},
    "refused": {"code", "says", "works", "half_width"},
}


def cases(folder: str) -> list[Case]:
    """The cases of ``answered`` or ``refused``, in the order of their names."""
    found = [_case(path) for path in sorted((HERE / folder).glob("*.sql"))]
    for case in found:
        assert case.headers.keys() <= HEADERS[folder], case.name
    return found


def parameters(found: Sequence[Case]) -> pytest.MarkDecorator:
    """A decorator that runs a test for each case, under the case's name."""
    return pytest.mark.parametrize("case", found, ids=lambda case: case.name)


def request(case: Case) -> QueryRequest:
    """A case as a client asks it."""
    return QueryRequest(sql=case.sql, target=RequestedTarget(half_width=case.half_width))


def spent(engine: Engine) -> Fraction:
    """The cost of all that was asked of an engine, in epsilon."""
    return sum((budget.spent for budget in engine.budgets(LOCAL)), Fraction(0))


def _case(path: Path) -> Case:
    headers: dict[str, str] = {}
    lines = path.read_text().splitlines()
    name = ""
    while lines and lines[0].startswith("-- "):
        line = lines.pop(0).removeprefix("-- ")
        if line.startswith("  "):
            headers[name] = f"{headers[name]}\n{line.strip()}".strip()
        else:
            name, _, value = line.partition(":")
            assert name not in headers, f"{path.name} says {name} twice"
            headers[name] = value.strip()
    return Case(path.stem, headers, "\n".join(lines))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
