"""The report of a table that was made through a real gate: what it compares, what it costs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.ledger.limits import Payer
from cube.measurement import Weight
from cube.query import Partition
from proxy.synthetic_tables.make import make
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.compare import known_tables
from proxy.synthetic_tables.report.make import make_report
from proxy.synthetic_tables.request import MadeTable, Method, SynthesisRequest
from proxy.tables.private_table import ServedTable
from tests.support.html_pages import Page
from tests.support.synthesis import AXES, N_ROWS, SCHEMA, served_staff, staff

ANN = Payer("ann")
WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from proxy.synthetic_tables.report.make import make_report
make_report(None, None, None)
"""
NEARLY_EXACT = Weight.at_least(100.0)
REQUEST = SynthesisRequest(table="staff", epsilon=Fraction(1), seed=3)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path, Fraction(1000)) as table:
        yield table


def record_of(made: MadeTable) -> SyntheticRecord:
    return SyntheticRecord(
        id="r1",
        name="staff_1",
        table="staff",
        method=made.method,
        epsilon=Fraction(1),
        epsilon_spent=made.epsilon_spent,
        seed=3,
        n_rows=made.rows.num_rows,
        n_bytes=made.rows.nbytes,
        columns=tuple((name, SCHEMA.by_name[name].sql_type) for name in made.rows.column_names),
        unknown=made.unknown,
        tables=made.tables,
        n_charges=made.n_charges,
        incomplete=made.incomplete,
        made_by="ann",
        made_at="2026-11-21T20:07:49.123+00:00",
    )


CONFIDENCE = 1 - 1e-9  # an interval misses the truth at odds of 1e-9


def labels(*names: str, merged: int = 1) -> NDArray[np.int64]:
    """Every level by itself; of the last column so many neighbours together."""
    shape = SCHEMA.sizes(names)
    ends = (*shape[:-1], -(-shape[-1] // merged))
    places = np.indices(shape)
    cells: NDArray[np.int64] = np.ravel_multi_index((*places[:-1], places[-1] // merged), ends)
    return cells


def counted(*names: str, by: NDArray[np.int64]) -> NDArray[np.int64]:
    places = [[axis.name for axis in AXES].index(name) for name in names]
    return np.bincount(by[tuple(staff()[:, place] for place in places)], minlength=by.max() + 1)


def buy(table: ServedTable, *names: str, merged: int = 1) -> NDArray[np.int64]:
    """Buy a partition, nearly exact; its true counts."""
    by = labels(*names, merged=merged)
    table.buy_tables({Partition(names, by): NEARLY_EXACT}, ANN, epsilon_cap=None)
    return counted(*names, by=by)


def test_nothing_is_known_of_a_table_that_nobody_asked(table: ServedTable) -> None:
    known, total = known_tables(table, AXES, 0.95)
    assert not [one for one in known if one.is_known.any()]
    assert total is None


def test_counts_are_those_of_the_levels_and_groups_that_were_bought(table: ServedTable) -> None:
    jobs = buy(table, "job")
    pairs = buy(table, "age", "senior")
    known, total = known_tables(table, AXES, CONFIDENCE)
    found = {one.scope: one for one in known if one.is_known.all()}
    assert set(found) == {("job",), ("age",), ("senior",), ("age", "senior")}
    assert found["job",].values == pytest.approx(jobs, abs=1)
    assert found["age", "senior"].values.ravel() == pytest.approx(pairs, abs=1)
    assert found["age",].values == pytest.approx(counted("age", by=np.arange(20)), abs=1)
    assert all((one.low < one.values + 1).all() for one in found.values())
    assert all((one.values < one.high + 1).all() for one in found.values())
    assert total is not None
    assert total.about == pytest.approx(N_ROWS, abs=1)
    assert total.low <= N_ROWS <= total.high


def test_a_pair_over_merged_levels_is_known_in_their_groups(table: ServedTable) -> None:
    pairs = buy(table, "job", "since", merged=2)
    known, _ = known_tables(table, AXES, 0.95)
    [found] = [one for one in known if one.scope == ("job", "since")]
    assert found.is_known.all()
    assert [one.tolist() for one in found.groups] == [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2]]
    assert found.values.ravel() == pytest.approx(pairs, abs=1)


def test_what_was_bought_of_three_columns_is_known_of_its_pairs(table: ServedTable) -> None:
    buy(table, "age", "job", "senior")
    known, _ = known_tables(table, AXES, 0.95)
    found = {one.scope: one for one in known if one.is_known.all()}
    assert {("age", "job"), ("age", "senior"), ("job", "senior")} < set(found)
    expected = counted("job", "senior", by=labels("job", "senior"))
    assert found["job", "senior"].values.ravel() == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("method", Method)
def test_a_report_is_free_and_compares_what_was_bought(table: ServedTable, method: Method) -> None:
    made = make(table, replace(REQUEST, method=method), ANN)
    spent = table.gate.budget().spent
    text = make_report(table, record_of(made), made.rows).decode()
    assert table.gate.budget().spent == spent
    seen = " ".join(" ".join(Page(text).texts).split())
    assert re.search(r"Tables outside their noise 0 of [0-9]+ measured", seen)
    assert "The charges for this table: 1 epsilon." in seen
    assert made.method in seen
    for axis in AXES:
        assert f"{axis.name} (" in seen


def test_what_was_counted_with_normal_noise_is_compared_too(table: ServedTable) -> None:
    table.delta = Fraction(1, 10**9)
    made = make(table, replace(REQUEST, epsilon=Fraction(9), delta=table.delta), ANN)
    known, _ = known_tables(table, AXES, 0.95)
    _, total = known_tables(table, AXES, CONFIDENCE)
    found = {one.scope: one for one in known if one.is_known.all()}
    assert {(axis.name,) for axis in AXES} <= set(found)
    assert set(made.tables) <= set(found)
    inside = [
        (found[axis.name,].low <= exact) & (exact <= found[axis.name,].high)
        for axis in AXES
        for exact in [counted(axis.name, by=np.arange(axis.size))]
    ]
    assert np.concatenate(inside).mean() > 0.7, "of 37 at 95 %: less once in ten million runs"
    assert total is not None
    assert total.about == pytest.approx(N_ROWS, abs=100)
    assert total.low < total.about < total.high


def test_a_table_of_some_columns_is_compared_on_these_alone(table: ServedTable) -> None:
    buy(table, "senior")
    buy(table, "age", "senior")
    request = replace(REQUEST, epsilon=Fraction(0), columns=("senior", "job"), n_rows=500)
    made = make(table, request, ANN)
    seen = " ".join(Page(make_report(table, record_of(made), made.rows).decode()).texts)
    assert "age" not in seen.split()
    assert "multiplied by" in seen
    assert made.unknown == ("job",)


def test_without_matplotlib_a_report_is_refused_with_the_way_out() -> None:
    there = subprocess.run(  # noqa: S603 - this interpreter, and a text that stands above
        [sys.executable, "-c", WITHOUT_MATPLOTLIB], check=False, capture_output=True, text=True
    )
    assert "InvalidRequest: The report as a page needs matplotlib" in there.stderr
