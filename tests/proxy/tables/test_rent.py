"""The bound of ski rental on one set of columns: at most three times the rent is spent."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.axis import IntegerAxis
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable
from tests.support.examples import examples
from tests.support.fakes import KnownTable, NoNoise

N_LEVELS = 27  # enough for hierarchies to be offered
SCHEMA = Schema(
    table="t", axes=(IntegerAxis(name="x", low=0, high=N_LEVELS - 1),), n_records_max=1000
)
NARROW = ("query", "top_up")

Asked = tuple[int, int, int]  # the first and the last level of a range, and a half-width

ASKED = st.tuples(
    st.integers(0, N_LEVELS - 1), st.integers(0, N_LEVELS - 1), st.sampled_from((5, 10, 20, 60))
)
ALIKE = st.tuples(st.integers(0, N_LEVELS // 2), st.integers(N_LEVELS // 2, N_LEVELS - 1))


def wanted(asked: Asked) -> Wanted:
    """The count of a range."""
    first, last = sorted(asked[:2])
    levels = np.arange(N_LEVELS)
    holds = ((first <= levels) & (levels <= last)).astype(np.int64)
    block = QueryBlock(counting([Factor(("x",), holds)])).primitive[0]
    return Wanted(block, AccuracyTarget(half_width=asked[2], confidence=0.95))


def spent_and_rent(requests: Sequence[Asked]) -> tuple[Fraction, Fraction]:
    """What a table's cost comes to, and what the rows would have added, each when it was due."""
    rent = Fraction(0)
    source = KnownTable(SCHEMA, np.zeros((0, 1), dtype=np.int64))
    with TemporaryDirectory() as folder, open_ledger(Path(folder) / "rent.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(100), source, NoNoise())
        first = wanted(requests[0])
        table = ServedTable(SCHEMA, first.target, gate, Strategy.AUTO)
        for asked in requests:
            one = [wanted(asked)]
            snapshot = table.snapshot()
            (offers,) = snapshot.plan(one, snapshot.estimates(one)).offers
            narrow = [offer.epsilon for offer in offers if offer.name in NARROW]
            rent += min(narrow, default=Fraction(0))
            table.acquire(one, Payer("me"), None)
        return table.budget().spent, rent


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(ASKED, min_size=1, max_size=8)
    | st.lists(ALIKE.map(lambda ends: (*ends, 10)), min_size=4, max_size=12)
)
def test_at_most_three_times_the_rent_is_spent(requests: list[Asked]) -> None:
    spent, rent = spent_and_rent(requests)
    assert spent <= 3 * rent


def test_a_rule_that_pays_more_than_twice_the_rent_is_convicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = [(0, 12, 10)]
    spent, rent = spent_and_rent(requests)
    assert spent <= 3 * rent
    monkeypatch.setattr(
        "planner.measuring.ski_rental.Evidence.worth",
        lambda known, rent, **_: 10 * (known.rent_now + rent),
    )
    spent, rent = spent_and_rent(requests)
    assert spent > 3 * rent
