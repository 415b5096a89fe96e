"""Statements that name no target cost what their table's default cost is, and no more."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Subject, SubjectKind
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import CostAboveCap, Shortfall
from planner.workload import Part, RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, Receipt
from proxy.config.sharing import Sharing
from proxy.engine import across_tables
from proxy.engine.default_cost import SHARE_OF_LEFT
from proxy.engine.engine import Engine
from proxy.engine.targets import Settled, settle
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.empty_history import CLOSE
from proxy.tables.private_table import ServedTable
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

ROWS: Final = random_rows(2000)
COST: Final = Fraction(1, 100)
DP: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
COUNT: Final = "SELECT COUNT(*) AS n FROM people"
FIRST_STATEMENTS: Final = (
    COUNT,
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT AVG(age) AS a FROM people",
    "SELECT city, COUNT(*) AS n, AVG(age) AS a, SUM(visits) AS v FROM people GROUP BY city",
    "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
    "SELECT SUM(visits) / COUNT(*) AS r FROM people WHERE member",
    "SELECT MEDIAN(age) AS m FROM people",
    "SELECT CORR(age, visits) AS c FROM people",
    "SELECT member, AVG(visits) AS a FROM people GROUP BY member",
    "SELECT COUNT(*) AS n FROM people WHERE age > 20 AND age < 40 AND city = 'Oslo'",
)


@contextmanager
def served(
    folder: Path,
    budget: Fraction = Fraction(1),
    cost: Fraction | None = COST,
    sharing: Sharing = Sharing.SHARED,
) -> Iterator[tuple[Engine, ServedTable]]:
    """The table, with a default cost."""
    folder.mkdir(exist_ok=True)
    source = DuckDbSource(SCHEMA, SourceLocation(path=write_csv(folder / "people.csv", ROWS)))
    with open_ledger(folder / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, budget, source, SystemNoise())
        table = ServedTable(SCHEMA, DEFAULT, gate, sharing=sharing, default_cost=cost)
        yield Engine({SCHEMA.table: table}), table


def receipt(engine: Engine, sql: str, **target: object) -> Receipt:
    """What a statement cost, and its intervals."""
    asked = RequestedTarget(**target)  # type: ignore[arg-type]  # one helper for every kind of target
    found = engine.answer(QueryRequest(sql=sql, target=asked)).receipt
    assert found is not None
    return found


def spent(engine: Engine) -> Fraction:
    (budget,) = engine.budgets(LOCAL)
    return budget.spent


def width(found: Receipt) -> float:
    return found.columns[0].high[0] - found.columns[0].low[0]


@pytest.mark.parametrize("sql", FIRST_STATEMENTS)
def test_a_first_statement_costs_the_default_cost_and_again_nothing(
    tmp_path: Path, sql: str
) -> None:
    with served(tmp_path) as (engine, _):
        first = receipt(engine, sql)
        # Nothing was known, so all of it buys something.
        assert CLOSE * COST <= first.epsilon_spent <= COST
        assert receipt(engine, sql).epsilon_spent == 0


def test_a_budget_lasts_for_many_statements_and_never_ends_with_one(tmp_path: Path) -> None:
    with served(tmp_path, Fraction(3, 100)) as (engine, _):
        for sql in FIRST_STATEMENTS:
            left = Fraction(3, 100) - spent(engine)
            assert receipt(engine, sql).epsilon_spent <= min(COST, SHARE_OF_LEFT * left)
        assert spent(engine) < Fraction(15, 1000)


def test_nothing_is_bought_narrower_than_the_tables_own_width(tmp_path: Path) -> None:
    with served(tmp_path / "rich", Fraction(1000), Fraction(10)) as (engine, _):
        rich = receipt(engine, COUNT)
    with served(tmp_path / "plain", Fraction(1000), None) as (engine, _):
        plain = receipt(engine, COUNT)
    assert rich.epsilon_spent == plain.epsilon_spent > 0
    assert not rich.notes


def test_a_target_means_what_it_says(tmp_path: Path) -> None:
    with served(tmp_path / "with") as (engine, _):
        found = receipt(engine, COUNT, half_width=30.0)
    with served(tmp_path / "without", cost=None) as (engine, _):
        plain = receipt(engine, COUNT, half_width=30.0)
    assert found.epsilon_spent == plain.epsilon_spent > COST
    assert width(found) <= 60.0


def test_an_epsilon_alone_is_what_a_statement_is_answered_for(tmp_path: Path) -> None:
    with served(tmp_path) as (engine, _):
        dear = receipt(engine, COUNT, epsilon_cap=3 * COST)
        assert 3 * CLOSE * COST <= dear.epsilon_spent <= 3 * COST
        free = receipt(engine, COUNT, epsilon_cap=Fraction(0))
        assert free.epsilon_spent == 0
        assert width(free) == pytest.approx(width(dear))


def test_the_note_says_what_half_the_width_costs(tmp_path: Path) -> None:
    with served(tmp_path / "default") as (engine, _):
        first = receipt(engine, COUNT)
    (note,) = first.notes
    with served(tmp_path / "half") as (engine, _):
        half = receipt(engine, COUNT, half_width=width(first) / 4)
    told = float(note.partition("they cost about ")[2].rstrip("."))
    assert float(half.epsilon_spent) == pytest.approx(told, rel=0.02)


def test_what_is_shown_together_is_about_equally_good(tmp_path: Path) -> None:
    """A count is known to s records, and a sum of numbers up to 20 to 20 s."""
    sql = "SELECT COUNT(*) AS n, SUM(visits) AS v FROM people"
    with served(tmp_path) as (engine, _):
        found = engine.answer(QueryRequest(sql=sql))
    assert found.receipt is not None
    (row,) = found.data.to_pylist()
    # The lower ends may be cut at 0.
    count, total = (one.high[0] - row[one.name] for one in found.receipt.columns)
    assert total / 20 == pytest.approx(count, rel=0.05)


def test_a_limit_for_each_statement_holds_for_defaults_too(tmp_path: Path) -> None:
    with served(tmp_path) as (engine, table):
        limit = Limit(Subject(SubjectKind.EACH_ANALYST), per_query=COST / 4)
        table.gate._ledger.append("people", lambda _history: LimitSet(limit, "owner"))
        assert 0 < receipt(engine, COUNT).epsilon_spent <= COST / 4


def test_a_private_history_has_the_same_widths_whatever_was_spent(tmp_path: Path) -> None:
    with served(tmp_path / "new", sharing=Sharing.PRIVATE) as (engine, _):
        new = receipt(engine, COUNT).notes
    with served(tmp_path / "used", sharing=Sharing.PRIVATE) as (engine, _):
        receipt(engine, FIRST_STATEMENTS[-1], half_width=5.0)
        used = receipt(engine, COUNT).notes
    assert new == used != ()


def test_explain_foretells_it(tmp_path: Path) -> None:
    with served(tmp_path) as (engine, _):
        foretold = engine.explain(QueryRequest(sql=COUNT)).epsilon
        assert receipt(engine, COUNT).epsilon_spent == foretold


@pytest.mark.parametrize(
    ("share", "is_answered"), [(Fraction(3, 40), True), (Fraction(1, 8), False)]
)
def test_a_least_price_is_paid_up_to_a_tenth_of_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: Fraction, is_answered: bool
) -> None:
    budget = Fraction(1, 10)
    least = share * budget

    def dear(table: ServedTable, parts: tuple[Part, ...], **beside: object) -> Settled:
        cap = parts[0].epsilon_cap
        assert cap is not None
        if cap < least:  # whatever the width is
            raise CostAboveCap(
                Shortfall(table=SCHEMA.table, epsilon_needed=least, epsilon_left=cap)
            )
        return settle(table, parts, **beside)  # type: ignore[arg-type]  # what it was called with

    monkeypatch.setattr(across_tables, "settle", dear)
    with served(tmp_path, budget) as (engine, _):
        if is_answered:
            found = receipt(engine, COUNT)
            assert f"may spend epsilon {float(least):.3g} on people: no answer about it costs " in (
                " ".join(found.notes)
            )
            assert 0 < spent(engine) <= least
        else:
            with pytest.raises(CostAboveCap):
                receipt(engine, COUNT)
            assert not spent(engine)
