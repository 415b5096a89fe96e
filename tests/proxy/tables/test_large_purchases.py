"""The alarm: raised by one request that takes a tenth of a budget, and by no other."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import TargetNotReached
from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, QueryRequest
from proxy.config.memory import DEFAULT_LIMITS
from proxy.engine.engine import Engine
from proxy.monitoring.events import Unwatched
from proxy.monitoring.logs import configure_logs
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

SQL = "SELECT COUNT(*) FROM people WHERE age < 30"


class Listener(Unwatched):
    """Keeps the tables for which the alarm was raised."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def took_much(self, table: str) -> None:
        self.heard.append(table)


@contextmanager
def watched_engine(folder: Path, listener: Listener) -> Iterator[Engine]:
    source = DuckDbSource(
        SCHEMA, SourceLocation(path=write_csv(folder / "people.csv", random_rows(50)))
    )
    with open_ledger(folder / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1), source, SystemNoise())
        table = ServedTable(SCHEMA, DEFAULT, gate, watcher=listener)
        store = SyntheticStore(folder / "synthetic", DEFAULT_LIMITS)
        yield Engine({"people": table}, watcher=listener, store=store)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logs(stream)
    yield stream
    configure_logs()


def ask(engine: Engine, half_width: float) -> None:
    engine.answer(QueryRequest(sql=SQL, target=RequestedTarget(half_width=half_width)))


def test_a_tenth_of_the_budget_at_once_raises_the_alarm(tmp_path: Path, log: io.StringIO) -> None:
    listener = Listener()
    with watched_engine(tmp_path, listener) as engine:
        ask(engine, 100.0)  # costs .03
        ask(engine, 31.0)  # raises it to .097
        assert listener.heard == []
        assert not log.getvalue()
        ask(engine, 10.0)  # raises it to .3
        ask(engine, 10.0)  # free
    assert listener.heard == ["people"]
    (line,) = log.getvalue().splitlines()
    told = json.loads(line)
    assert told["event"] == "large_purchase"
    assert told["table"] == "people"
    assert told["epsilon"] == pytest.approx(0.203, abs=0.005)
    assert told["epsilon_left"] == pytest.approx(0.7, abs=0.005)


def test_a_search_that_ends_short_of_its_target_spends_too_little_for_the_alarm(
    tmp_path: Path,
) -> None:
    listener = Listener()
    with watched_engine(tmp_path, listener) as engine:
        target = RequestedTarget(half_width=0.01, fallback=Fallback.ERROR)
        with pytest.raises(TargetNotReached) as caught:
            engine.answer(QueryRequest(sql="SELECT AVG(age) AS a FROM people", target=target))
        assert 0 < caught.value.epsilon_spent == engine.budgets(LOCAL)[0].spent <= Fraction(1, 10)
    assert listener.heard == []


def test_a_batch_raises_the_alarm_once_it_is_bought(tmp_path: Path) -> None:
    listener = Listener()
    with watched_engine(tmp_path, listener) as engine:
        batch = BatchRequest(sql=f"{SQL}; {SQL}0", target=RequestedTarget(half_width=10.0))
        engine.plan_batch(batch)
        assert listener.heard == []
        engine.plan_batch(replace(batch, buy=True))
        engine.plan_batch(replace(batch, buy=True))  # free
    assert listener.heard == ["people"]


def test_a_synthetic_table_raises_the_alarm(tmp_path: Path) -> None:
    listener = Listener()
    make = "CREATE SYNTHETIC TABLE {} FROM people WITH (columns => (city, member), epsilon => {})"
    with watched_engine(tmp_path, listener) as engine:
        engine.answer(QueryRequest(sql=make.format("small", "0.05")))
        assert listener.heard == []
        engine.answer(QueryRequest(sql=make.format("large", "0.5")))
    assert listener.heard == ["people"]
