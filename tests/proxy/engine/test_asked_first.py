"""Statements of two rounds: what they cost together, and what is said before and after."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.refusals import BudgetExhausted, CostAboveCap, TargetNotReached
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.sql import world
from tests.support.fakes import KnownTable, NoNoise

INNER = "SELECT COUNT(*) FROM patients WHERE sex = 'female' AND age > 40"
DP = "SELECT WITH DIFFERENTIAL_PRIVACY "
OUTER = "SELECT COUNT(*) AS n FROM patients WHERE cost > ({}) / 10"


@contextmanager
def patients(folder: Path, budget: Fraction) -> Iterator[tuple[Engine, ServedTable]]:
    source = KnownTable(world.SCHEMA, world.positions())
    with open_ledger(folder / "patients.ledger") as ledger:
        gate = open_table(ledger, world.SCHEMA, budget, source, NoNoise())
        table = ServedTable(world.SCHEMA, world.DEFAULT, gate)
        yield Engine({"patients": table}), table


def asked(sql: str) -> QueryRequest:
    return QueryRequest(sql=sql)


def test_the_receipt_names_what_was_put_in_and_both_prices(tmp_path: Path) -> None:
    with patients(tmp_path, Fraction(10)) as (engine, table):
        result = engine.answer(asked(OUTER.format(INNER)))
        alone = len(table.history)
        inner = engine.answer(asked(INNER))
    assert result.receipt is not None
    assert inner.receipt is not None
    assert inner.receipt.epsilon_spent == 0
    (value,) = inner.data.column(0).to_pylist()
    assert result.receipt.notes[0].startswith(f"({INNER}) was asked first, and gave {value:.6g} (")
    assert "for this value" in result.receipt.notes[0]
    assert result.receipt.epsilon_spent > result.receipt.columns[0].epsilon_spent > 0
    assert alone == 2  # two measurements, and none for what stood in


def test_nothing_is_bought_where_both_together_are_not_covered(tmp_path: Path) -> None:
    with patients(tmp_path, Fraction(10)) as (engine, _):
        price = engine.explain(asked(INNER)).epsilon
    (tmp_path / "poor").mkdir()
    with patients(tmp_path / "poor", price * 3 / 2) as (engine, table):
        with pytest.raises(BudgetExhausted):
            engine.answer(asked(OUTER.format(INNER)))
        assert len(table.history) == 0
        engine.answer(asked(INNER))  # which the budget covers by itself


def test_a_cap_covers_the_subquery_and_the_rest(tmp_path: Path) -> None:
    narrow = f"{DP}OPTIONS(half_width => 50) {INNER[len('SELECT') :]}"
    capped = f"{DP}OPTIONS(half_width => 50, epsilon => {{}}) {OUTER[len('SELECT') :]}"
    with patients(tmp_path, Fraction(10)) as (engine, table):
        price = engine.explain(asked(narrow)).epsilon
        with pytest.raises(CostAboveCap):
            engine.answer(asked(capped.format(float(price * 3 / 2), narrow)))
        assert len(table.history) == 0
        result = engine.answer(asked(capped.format(float(price * 5 / 2), narrow)))
    assert result.receipt is not None
    assert result.receipt.epsilon_spent <= price * 5 / 2


def test_a_cap_alone_is_shared_by_the_subquery_and_the_rest(tmp_path: Path) -> None:
    capped = f"{DP}OPTIONS(epsilon => 0.004) {OUTER[len('SELECT') :]}"
    with patients(tmp_path, Fraction(10)) as (engine, table):
        result = engine.answer(asked(capped.format(INNER)))
        assert result.receipt is not None
        assert Fraction(3, 1000) < result.receipt.epsilon_spent <= Fraction(4, 1000)
        assert len(table.history) == 2
        again = engine.answer(asked(capped.format(INNER)))
    assert again.receipt is not None
    assert again.receipt.epsilon_spent == 0


def test_a_refusal_after_the_subquery_says_what_is_free_now(tmp_path: Path) -> None:
    with patients(tmp_path, Fraction(1, 2)) as (engine, table):
        tight = f"{DP}OPTIONS(relative => 0.01, fallback => 'error') SUM(cost) / SUM(stay) AS r"
        with pytest.raises((TargetNotReached, BudgetExhausted)) as refusal:
            engine.answer(asked(f"{tight} FROM patients WHERE visits > ({INNER}) / 200"))
        spent = bool(len(table.history))
    assert spent == ("free now" in refusal.value.explain())


def test_explain_prices_both_and_says_what_is_asked_first(tmp_path: Path) -> None:
    with patients(tmp_path, Fraction(10)) as (engine, table):
        explained = engine.explain(asked(OUTER.format(INNER)))
        assert len(table.history) == 0
        result = engine.answer(asked(OUTER.format(INNER)))
    advice = explained.data.column("advice").to_pylist()
    assert advice[0].startswith("Asked first")
    assert advice[-1] is None or not advice[-1].startswith("Asked first")
    assert result.receipt is not None
    assert explained.epsilon == pytest.approx(result.receipt.epsilon_spent)


def test_its_columns_are_known_before_and_cost_nothing(tmp_path: Path) -> None:
    with patients(tmp_path, Fraction(10)) as (engine, table):
        promised = engine.result_schema(asked(OUTER.format(INNER)))
        empty = engine.answer(asked(OUTER.format(INNER) + " LIMIT 0"))
        assert len(table.history) == 0
        found = engine.answer(asked(OUTER.format(INNER)))
    assert promised.equals(found.data.schema, check_metadata=False)
    assert empty.data.num_rows == 0
