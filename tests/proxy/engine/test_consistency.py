"""OPTIONS(consistency => ..) on grouping sets: the projection, its exact laws, what it costs."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cube.query import QueryBlock, counting
from cube.target import AccuracyTarget
from inference.joint import draw_errors
from inference.marginals.table import NoisyTable
from inference.posterior import Posterior
from planner.workload import Wanted
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.marginals.make import natural_partition
from tests.support.noisy_tables import Floats, flat, projection_matrix
from tests.support.square_tables import TABLE, square_engine

SIZES = {"a": 3, "b": 2, "c": 2, "d": 2}
COUNTS = np.random.default_rng(7).integers(0, 12, (3, 2, 2, 2))
SETS = "GROUPING SETS ((c, a), (b, c), (a), ())"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with square_engine(tmp_path, SIZES, COUNTS) as opened:
        yield opened


def rows(engine: Engine, consistency: str, where: str = "") -> list[dict[str, Any]]:
    options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => '{consistency}')"
    sql = (
        f"SELECT {options} a, b, c, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, "  # noqa: S608 - a test's own text
        f"DP_INTERVAL_HIGH(n) AS high, DP_STDERR(n) AS error FROM rows {where} GROUP BY {SETS}"
    )
    found: list[dict[str, Any]] = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
    return found


def values(found: list[dict[str, Any]], column: str = "n") -> Floats:
    return np.array([row[column] for row in found], dtype=np.float64)


def apart(engine: Engine) -> None:
    """Buy tables whose estimates share much, and disagree: each is larger than what is combined."""
    for sql in (
        "SELECT a, c, COUNT(*) FROM rows GROUP BY a, c",
        "SELECT a, COUNT(*) FROM rows WHERE b = 'b1' GROUP BY a",
        "SELECT b, c, COUNT(*) FROM rows GROUP BY b, c",
    ):
        engine.answer(QueryRequest(sql=sql))


def spent(engine: Engine) -> tuple[Fraction, int]:
    budget = engine.budgets(LOCAL)[0]
    return budget.spent, budget.n_measurements


def agree(found: list[dict[str, Any]]) -> bool:
    ca, bc, a, total = np.split(values(found), [6, 10, 13])
    return (
        np.allclose(ca.reshape(2, 3).sum(0), a)
        and np.allclose(ca.reshape(2, 3).sum(1), bc.reshape(2, 2).sum(0))
        and np.allclose([a.sum(), bc.sum()], total)
    )


@pytest.mark.parametrize("consistency", ["exact", "nonnegative", "global"])
@pytest.mark.parametrize("where", ["", "WHERE d = 'd1'"])
def test_the_sets_agree_and_agreement_is_free(engine: Engine, consistency: str, where: str) -> None:
    raw = rows(engine, "raw", where)
    paid = spent(engine)
    found = rows(engine, consistency, where)
    assert spent(engine) == paid
    assert agree(found)
    for name in ("a", "b", "c"):
        assert [row[name] for row in found] == [row[name] for row in raw]


def test_clipped_counts_are_not_negative_and_have_no_interval(engine: Engine) -> None:
    for consistency in ("nonnegative", "global"):
        found = rows(engine, consistency)
        assert values(found).min() >= 0
        assert all(row["low"] is row["high"] is row["error"] is None for row in found)


def tables_of(engine: Engine) -> tuple[list[NoisyTable], list[Posterior]]:
    """What history says of each set, and the tables that it makes, over axes in sorted order."""
    table = engine._tables[TABLE]
    target = AccuracyTarget(half_width=30.0, confidence=0.95)
    tables: list[NoisyTable] = []
    posteriors: list[Posterior] = []
    for scope in (("a", "c"), ("b", "c"), ("a",), ()):
        shape = tuple(SIZES[name] for name in scope)
        block = QueryBlock(counting(), natural_partition(scope, shape))
        (found,) = table.look([Wanted(block, target)])
        known = [row for row in found if isinstance(row, Posterior)]
        cells = np.array([row.value for row in known]).reshape(shape)
        variance = float(np.mean([row.standard_deviation**2 for row in known]))
        tables.append(NoisyTable(scope, cells, variance))
        posteriors += known
    return tables, posteriors


def in_order(cells: Floats) -> Floats:
    """Cells of the tables of `tables_of` as the SELECT shows them: its first set is (c, a)."""
    return np.concatenate([cells[:6].reshape(3, 2).T.ravel(), cells[6:]])


def test_exact_is_the_weighted_projection_of_what_history_says(engine: Engine) -> None:
    apart(engine)
    rows(engine, "raw")
    tables, _ = tables_of(engine)
    expected = projection_matrix(tables) @ flat([table.values for table in tables])
    assert values(rows(engine, "exact")) == pytest.approx(in_order(expected))


def test_the_standard_error_is_that_of_the_joint_law_of_what_is_shared(engine: Engine) -> None:
    apart(engine)
    rows(engine, "raw")
    tables, posteriors = tables_of(engine)
    history = engine._tables[TABLE].history
    errors = draw_errors(posteriors, history, 100_000, np.random.default_rng(1))
    expected = in_order((projection_matrix(tables) @ errors).std(axis=1))
    assert values(rows(engine, "exact"), "error") == pytest.approx(expected, rel=0.03)


def test_answers_from_before_and_after_a_raise_agree_all_the_same(engine: Engine) -> None:
    rows(engine, "raw")
    for half_width in (12, 7, 4):
        sql = f"SELECT a, COUNT(*) FROM rows WHERE b = 'b{half_width % 2}' GROUP BY a"  # noqa: S608 - a test's own text
        options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => {half_width})"
        engine.answer(QueryRequest(sql=sql.replace("SELECT", f"SELECT {options}", 1)))
        total = f"SELECT {options} COUNT(*) FROM rows"  # noqa: S608 - a test's own text
        engine.answer(QueryRequest(sql=total))
        found = rows(engine, "exact")
        assert agree(found)
        assert (values(found, "error") > 0).all()


def test_a_rounded_up_interval_is_around_the_count(engine: Engine) -> None:
    for row in rows(engine, "exact"):
        assert row["low"] <= max(row["n"], 0.0) <= row["high"]


def test_the_receipt_says_that_there_is_no_interval(engine: Engine) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'nonnegative') a, COUNT(*) AS n "
        "FROM rows GROUP BY ROLLUP(a) ORDER BY n"
    )
    release = engine.answer(QueryRequest(sql=sql))
    assert release.receipt is not None
    (column,) = release.receipt.columns
    assert np.isnan(column.low).all()
    assert any(note.startswith("Solver: ") for note in release.receipt.notes)
    assert b"NaN" not in release.data.schema.metadata[b"tacit.receipt"]
