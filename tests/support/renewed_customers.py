"""A table of customers whose data its owner replaces, and what tests ask of it."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.opening import open_ledger
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load

CONFIG = """
[ledger]
path = "a.ledger"
[tables.customers]
source = "customers.csv"
unit = "id"
budget = "1000"
n_records_max = 10000
half_width = 2
[tables.customers.columns]
city = {kind = "category", levels = ["Oslo", "Bergen"]}
age = {kind = "integer", low = 0, high = 99}
"""
# A whole number is told from its neighbours, but for one time in ten million.
PRECISE = RequestedTarget(half_width=0.49, confidence=0.9999999)
BY_CITY = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"
BEFORE = {"Oslo": 30, "Bergen": 50}
AFTER = {"Oslo": 70, "Bergen": 20}


def write(folder: Path, cities: dict[str, int]) -> None:
    rows = [(city, place) for city, n in cities.items() for place in range(n)]
    with (folder / "customers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "city", "age"), *((n, city, age) for n, (city, age) in enumerate(rows))]
        )


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def ask(service: Service, sql: str = BY_CITY, target: RequestedTarget = PRECISE) -> QueryResult:
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))


def counts(found: pa.Table) -> dict[str, int]:
    return {row["city"]: round(row["n"]) for row in found.to_pylist()}


def tacit(*arguments: str) -> int:
    """Run a command; its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(ended.value.code or 0)


def renew(folder: Path, cities: dict[str, int] = AFTER) -> None:
    """The owner replaces the file, and says so."""
    write(folder, cities)
    config = str(folder / "tacit.toml")
    assert tacit("table", "renew", "customers", "--by", "ann", "--config", config) == 0


def follow(service: Service) -> None:
    """What a server does about once a second."""
    service.ledger.refresh()
    service.renewing.look()


def check_ledger(folder: Path, n_generations: int) -> None:
    with open_ledger(folder / "a.ledger") as ledger:
        verdict = verify(ledger.entries())
    assert verdict.problem is None
    (table,) = verdict.tables
    assert table.n_generations == n_generations
    assert table.spent == table.recomputed
