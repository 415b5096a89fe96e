"""Where the history is private: what an owner, an analyst and whoever is refused see of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.refusals import BudgetExhausted, CostAboveCap, LimitReached, Shortfall
from planner.workload import RequestedTarget
from proxy.admin.ledger_admin import LimitChange, change_limit
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.shared.refusal_details import refusal_detail
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.disclosure import shown_spent
from proxy.tables.private_table import ServedTable
from tests.support.fakes import NoNoise
from tests.support.private_history import ANN, ANN_ASKED, BUDGET, DP, EVE, ROWS, told, world
from tests.support.worlds import DEFAULT, SCHEMA, write_csv


def ask(engine: Engine, sql: str, caller: Caller) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, caller=caller))


def test_an_owner_sees_what_there_is(tmp_path: Path) -> None:
    with world(tmp_path / "w", is_busy=True) as engine:
        release = ask(engine, ANN_ASKED[0], LOCAL)
        assert release.receipt is not None
        assert release.receipt.epsilon_spent == 0
        assert release.receipt.columns[0].source == "history"
        assert release.receipt.budget is not None
        assert release.receipt.budget.n_measurements > 0
        assert ask(engine, "SELECT * FROM data_privacy.history", LOCAL).data.num_rows > 0
        assert ask(engine, "SELECT * FROM data_privacy.history", EVE).data.num_rows == 0


def test_what_the_history_knows_is_charged_to_nobody_whatever_is_shown(tmp_path: Path) -> None:
    with world(tmp_path / "w", is_busy=True) as engine:
        before = engine.budgets(LOCAL)[0].spent
        release = ask(engine, ANN_ASKED[0], EVE)
        assert release.receipt is not None
        assert release.receipt.epsilon_spent > 0
        assert engine.budgets(LOCAL)[0].spent == before


def test_a_refusal_for_want_of_budget_names_no_more_than_the_price_of_asking_alone(
    tmp_path: Path,
) -> None:
    with world(tmp_path / "w", is_busy=False, budget=Fraction(1, 10)) as engine:
        ask(engine, f"{DP}(half_width => 40) COUNT(*) FROM people", ANN)
        request = QueryRequest(
            sql=f"{DP}(half_width => 32) COUNT(*) FROM people WHERE city = 'Oslo'", caller=EVE
        )
        with pytest.raises(BudgetExhausted) as caught:
            engine.answer(request)
        price = engine.explain(request).epsilon
        assert caught.value.shortfall == Shortfall(
            table="people", epsilon_needed=price, epsilon_left=None
        )
        assert "epsilon 0.0936167," in caught.value.message
        assert "half_width" not in caught.value.message
        assert "Free" not in caught.value.explain()
        assert "pays for" not in caught.value.explain()


@pytest.mark.parametrize("allowed", ["0.05", "0.02"])
def test_a_limit_of_others_is_named_to_nobody_by_word_or_number(
    tmp_path: Path, allowed: str
) -> None:
    """What is left of a group's limit says what its other members have spent."""
    eve, ann = (replace(one, payer=replace(one.payer, groups=("sales",))) for one in (EVE, ANN))
    found = []
    for is_busy in (False, True):
        with limited(tmp_path / str(is_busy), Fraction(allowed)) as engine:
            if is_busy:
                ask(engine, f"{DP}(half_width => 400) COUNT(*) FROM people WHERE member", ann)
            with pytest.raises(LimitReached) as caught:
                ask(engine, f"{DP}(half_width => 32) COUNT(*) FROM people", eve)
            found.append(MessageToDict(refusal_detail(caught.value)))
    assert found[0] == found[1]
    assert found[0]["shortfall"].keys() == {"table", "epsilonNeeded"}
    assert "sales" not in str(found)


def test_what_a_cap_of_ones_own_covers_is_told_as_to_who_asks_alone(tmp_path: Path) -> None:
    found = []
    for is_busy in (False, True):
        with world(tmp_path / str(is_busy), is_busy=is_busy) as engine:
            with pytest.raises(CostAboveCap) as caught:
                ask(engine, f"{DP}(half_width => 3, epsilon => 0.1) COUNT(*) FROM people", EVE)
            found.append(caught.value.shortfall)
    assert found[0] == found[1]
    assert found[0].epsilon_left == Fraction(1, 10)
    assert found[0].free is None
    assert found[0].fitting is not None


@contextmanager
def limited(folder: Path, allowed: Fraction) -> Iterator[Engine]:
    """People with a private history, and a limit of a group."""
    folder.mkdir()
    path = write_csv(folder / "people.csv", ROWS)
    with open_ledger(folder / "people.ledger") as ledger:
        rows = DuckDbSource(SCHEMA, SourceLocation(path=path))
        gate = open_table(ledger, SCHEMA, BUDGET, rows, NoNoise())
        change_limit(
            ledger,
            SCHEMA.table,
            LimitChange(subject="group:sales", epsilon=str(float(allowed))),
            by="olga",
        )
        yield Engine({SCHEMA.table: ServedTable(SCHEMA, DEFAULT, gate, sharing=Sharing.PRIVATE)})


@pytest.mark.parametrize(
    ("spent", "shown"), [("0", "0.2"), ("0.19", "0.2"), ("0.2", "0.4"), ("1.9", "2"), ("2", "2")]
)
def test_what_is_left_is_never_overstated(spent: str, shown: str) -> None:
    assert shown_spent(Fraction(2), Fraction(spent)) == Fraction(shown)


@contextmanager
def two_tables(folder: Path, *, is_busy: bool) -> Iterator[Engine]:
    """People, and people again under another name, with a limit for each analyst."""
    folder.mkdir()
    path = write_csv(folder / "people.csv", ROWS)
    other = path.with_name("other.csv")
    other.write_text(path.read_text() + "30,Oslo,True,3\n")
    tables = {}
    with open_ledger(folder / "both.ledger") as ledger:
        for schema, source in ((SCHEMA, path), (replace(SCHEMA, table="others"), other)):
            rows = DuckDbSource(schema, SourceLocation(path=source))
            gate = open_table(ledger, schema, BUDGET, rows, NoNoise())
            change = LimitChange(subject="each_analyst", epsilon="50", per_query="30")
            change_limit(ledger, schema.table, change, by="olga")
            tables[schema.table] = ServedTable(schema, DEFAULT, gate, sharing=Sharing.PRIVATE)
        engine = Engine(tables)
        for sql in ANN_ASKED if is_busy else ():
            engine.answer(QueryRequest(sql=sql, caller=replace(ANN, tables=("*",))))
        yield engine


def test_statements_of_two_tables_and_limits_tell_nothing_either(tmp_path: Path) -> None:
    eve = replace(EVE, tables=("*",))
    seen = []
    both = "(SELECT COUNT(*) FROM people WHERE member) - (SELECT COUNT(*) FROM others)"
    for is_busy in (False, True):
        with two_tables(tmp_path / str(is_busy), is_busy=is_busy) as engine:
            requests = [
                QueryRequest(sql=f"{options} {both} AS n", caller=eve)
                for options in ("EXPLAIN PRIVACY SELECT", "SELECT", f"{DP}(half_width => 4)")
            ]
            requests += [
                replace(requests[1], target=RequestedTarget(epsilon_cap=Fraction(cap)))
                for cap in ("0", "0.2", "1")
            ]
            found = [told(lambda one=one: _released(engine.answer(one))) for one in requests]  # type: ignore[misc]  # bound
            seen.append((found, engine.budgets(eve)))
    assert seen[0] == seen[1]
    (limit,) = seen[0][1][0].limits
    assert limit.spent == Fraction(5)
    assert limit.left == Fraction(45)


def _released(release: QueryResult) -> object:
    return (release.data.to_pylist(), str(release.receipt))


def test_an_interval_shown_is_never_narrower_than_the_true_one(tmp_path: Path) -> None:
    statements = (
        ANN_ASKED[0].replace("=> 5", "=> 50"),
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
        "SELECT AVG(visits) AS a FROM people",
        "SELECT COUNT(*) FILTER (WHERE member) / COUNT(*) AS share FROM people",
        f"{DP}(half_width => 90) 2 * SUM(visits) - COUNT(*) AS n FROM people",
    )
    with world(tmp_path / "w", is_busy=True) as engine:
        for sql in statements:
            widths = []
            for caller in (EVE, LOCAL):
                receipt = ask(engine, sql, caller).receipt
                assert receipt is not None
                (column,) = receipt.columns
                widths.append((column.low, column.high))
            (low, high), (own_low, own_high) = widths
            assert all(one <= own for one, own in zip(low, own_low, strict=True))
            assert all(one >= own for one, own in zip(high, own_high, strict=True))
