"""DP_CHI2_TEST through the engine and the wire: what it finds, costs, repeats and refuses."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from adbc_driver_flightsql import dbapi
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.answers.count_statistics import (
    CANNOT_TELL,
    DEPENDENT,
    NOT_REJECTED,
    TESTED_SCHEMA,
)
from proxy.engine.engine import Engine
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import EPSILON_KEY
from tests.support.fakes import NoNoise
from tests.support.serving import channel_to, serving
from tests.support.square_tables import square_engine

SIZES = {"a": 3, "b": 2, "z": 2}
# Given z, a and b are independent; z ties them together.
CONDITIONAL = np.array([[[400, 15], [100, 60]], [[200, 60], [50, 240]], [[80, 90], [20, 360]]])
PRECISE = "WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.01) "


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with square_engine(tmp_path, SIZES, CONDITIONAL) as opened:
        yield opened


@pytest.fixture
def exact(tmp_path: Path) -> Iterator[Engine]:
    with square_engine(tmp_path, SIZES, CONDITIONAL, NoNoise()) as opened:
        yield opened


def outcome(engine: Engine, test: str, options: str = PRECISE) -> dict[str, Any]:
    sql = f"SELECT {options}{test} FROM rows"  # noqa: S608 - a test's own text
    (row,) = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
    found: dict[str, Any] = row
    return found


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def test_without_noise_it_is_the_test_of_the_textbook(exact: Engine) -> None:
    expected = chi2_contingency(CONDITIONAL.sum(axis=2), correction=False)
    found = outcome(exact, "DP_CHI2_TEST(a, b)")
    assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-3)
    assert found["degrees_of_freedom"] == expected.dof
    assert (found["decision"] == DEPENDENT) == (expected.pvalue < 0.05)
    assert found["p_value"] == 1 / 1000  # the least that 999 replicates can tell


def test_given_a_column_it_adds_up_the_tests_of_its_values(exact: Engine) -> None:
    tests = [chi2_contingency(CONDITIONAL[:, :, z], correction=False) for z in range(2)]
    found = outcome(exact, "DP_CHI2_TEST(a, b, GIVEN => z)")
    assert found["statistic"] == pytest.approx(sum(one.statistic for one in tests), rel=1e-3)
    assert found["degrees_of_freedom"] == sum(one.dof for one in tests)
    assert found["decision"] == NOT_REJECTED
    assert found["p_value"] > 0.3


@pytest.mark.parametrize(("option", "lambda_"), [("pearson", 1.0), ("g2", 0.0)])
def test_three_columns_are_tested_together(exact: Engine, option: str, lambda_: float) -> None:
    expected = chi2_contingency(CONDITIONAL, correction=False, lambda_=lambda_)
    options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.01, statistic => '{option}') "
    found = outcome(exact, "DP_CHI2_TEST(a, b, z)", options)
    assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-3)
    assert found["degrees_of_freedom"] == expected.dof == 7
    assert found["decision"] == DEPENDENT
    paid = spent(exact)
    outcome(exact, "DP_CHI2_TEST(a, b, GIVEN => z)", options)  # of the same counts
    assert spent(exact) == paid


@pytest.mark.parametrize("seed", range(8))
def test_without_noise_the_decision_is_that_of_scipy(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.dirichlet([5, 5, 5]), rng.dirichlet([5, 5])
    tied = np.outer(rows, columns) * (1 + (seed % 2) * 0.2 * rng.choice([-1, 1], (3, 2)))
    counts = rng.multinomial(3000, (tied / tied.sum()).ravel()).reshape(3, 2)
    expected = chi2_contingency(counts, correction=False)
    with square_engine(tmp_path, {"a": 3, "b": 2}, counts, NoNoise()) as engine:
        found = outcome(engine, "DP_CHI2_TEST(a, b)")
    assert found["p_value"] == pytest.approx(expected.pvalue, abs=0.05)
    assert abs(expected.pvalue - 0.05) > 0.02, "a case that is too close to call"
    assert (found["decision"] == DEPENDENT) == (expected.pvalue <= 0.05)


def test_asked_again_it_says_the_same_and_costs_nothing(engine: Engine) -> None:
    first = outcome(engine, "DP_CHI2_TEST(a, b)", "")
    paid = spent(engine)
    assert paid > 0
    assert outcome(engine, "DP_CHI2_TEST(a, b)", "") == first
    assert spent(engine) == paid


def test_a_table_that_was_counted_before_is_tested_for_nothing(engine: Engine) -> None:
    engine.answer(QueryRequest(sql="SELECT a, b, COUNT(*) FROM rows GROUP BY a, b"))
    paid = spent(engine)
    outcome(engine, "DP_CHI2_TEST(a, b)", "")
    outcome(engine, "DP_CHI2_TEST(b, a)", "")
    assert spent(engine) == paid


def test_cells_that_are_too_small_are_no_evidence_for_independence(tmp_path: Path) -> None:
    with square_engine(tmp_path, {"a": 2, "b": 2}, np.array([[3, 1], [2, 2]]), NoNoise()) as engine:
        found = outcome(engine, "DP_CHI2_TEST(a, b)")
    assert (found["decision"], found["statistic"], found["p_value"]) == (CANNOT_TELL, None, 1.0)


def test_an_explanation_charges_nothing_and_names_the_price_of_the_cells(engine: Engine) -> None:
    test = "SELECT DP_CHI2_TEST(a, b) FROM rows"
    told = engine.explain(QueryRequest(sql=test))
    assert told.data.column("n_rows").to_pylist()[0] == 6
    assert spent(engine) == 0
    engine.answer(QueryRequest(sql=test))
    assert spent(engine) == told.epsilon


def test_the_receipt_has_what_the_cells_cost(engine: Engine) -> None:
    release = engine.answer(QueryRequest(sql="SELECT DP_CHI2_TEST(a, b) FROM rows"))
    assert release.receipt is not None
    assert release.receipt.epsilon_spent == spent(engine) > 0
    assert release.data.column_names == TESTED_SCHEMA.names


class TestOverTheWire:
    @pytest.fixture
    def stub(self, engine: Engine) -> Iterator[TacitStub]:
        with channel_to(engine) as channel:
            yield TacitStub(channel)

    def test_the_call_is_the_select(self, stub: TacitStub, engine: Engine) -> None:
        request = tacit_pb2.TestIndependenceRequest(
            table="rows",
            x="a",
            y="b",
            given=["z"],
            where="a <> 'a2' -- without the last",
            level=0.01,
            replicates=499,
            target=tacit_pb2.Target(half_width=10),
        )
        reply, call = stub.TestIndependence.with_call(request)
        sql = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01, replicates => 499, "
            "half_width => 10) DP_CHI2_TEST(a, b, GIVEN => z) FROM rows WHERE a <> 'a2'"
        )
        (row,) = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
        assert {name: getattr(reply, name) for name in row} == row
        assert (reply.level, reply.replicates, reply.degrees_of_freedom) == (0.01, 499, 2)
        assert reply.receipt.epsilon_spent == float(spent(engine)) > 0
        assert dict(call.trailing_metadata())[EPSILON_KEY] == repr(reply.receipt.epsilon_spent)

    def test_the_call_tests_several_columns_together(self, stub: TacitStub, engine: Engine) -> None:
        request = tacit_pb2.TestIndependenceRequest(
            table="rows", x="a", y="b", others=["z"], statistic="g2"
        )
        reply = stub.TestIndependence(request)
        sql = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'g2') DP_CHI2_TEST(a, b, z) "
            "FROM rows"
        )
        (row,) = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
        assert {name: getattr(reply, name) for name in row} == row
        assert reply.degrees_of_freedom == 7

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"x": ""}, "invalid_request"),
            ({"statistic": "'"}, "invalid_target"),
            ({"table": " "}, "invalid_request"),
            ({"table": 'no"body'}, "unknown_name"),
            ({"x": "a, b) FROM rows GROUP BY a --"}, "unsupported_sql"),
            ({"x": "a, b), COUNT("}, "unsupported_sql"),
            (
                {"table": "rows", "where": "TRUE) UNION (SELECT COUNT(*) FROM rows"},
                "unsupported_sql",
            ),
            ({"level": float("nan")}, "invalid_target"),
            ({"level": 1e-9}, "invalid_target"),
            ({"replicates": -5}, "invalid_target"),
            ({"replicates": 2**40}, "invalid_target"),
        ],
    )
    def test_what_is_no_test_is_refused_unpaid(
        self, stub: TacitStub, engine: Engine, fields: dict[str, Any], code: str
    ) -> None:
        asked = {"table": "rows", "x": "a", "y": "b"} | fields
        with pytest.raises(grpc.RpcError, match=rf"\[{code}\]"):
            stub.TestIndependence(tacit_pb2.TestIndependenceRequest(**asked))
        assert spent(engine) == 0

    def test_a_database_client_asks_it_in_sql(self, engine: Engine) -> None:
        with (
            serving(engine) as address,
            dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT DP_CHI2_TEST(a, b) FROM rows")
            (row,) = cursor.fetch_arrow_table().to_pylist()
            assert list(row) == TESTED_SCHEMA.names
            assert row["decision"] == DEPENDENT


N_RUNS = 200
SHARES = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
TIED = SHARES + 0.015 * np.array([[1, -1], [-1, 1], [0, 0]])


def rejections(folder: Path, shares: NDArray[np.float64], epsilon: float, n_records: int) -> float:
    """How often independence is rejected, each time on other records and with fresh noise."""
    rng = np.random.default_rng(int(1000 * epsilon) + n_records)
    n_rejected = 0
    for run in range(N_RUNS):
        counts = rng.multinomial(n_records, shares.ravel()).reshape(shares.shape)
        place = folder / f"{run}"
        place.mkdir(parents=True)
        with square_engine(place, {"a": 3, "b": 2}, counts) as engine:
            options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => {3 / epsilon}) "
            found = outcome(engine, "DP_CHI2_TEST(a, b)", options)
            assert spent(engine) == pytest.approx(epsilon, rel=0.01)
            n_rejected += found["decision"] == DEPENDENT
    return n_rejected / N_RUNS


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.35, 1.0])
def test_what_is_true_is_rejected_about_as_often_as_the_level_says(
    tmp_path: Path, epsilon: float
) -> None:
    # Of 200 runs at .05, fewer than 4 or more than 17 reject once in a hundred times.
    assert 0.02 <= rejections(tmp_path, SHARES, epsilon, 5000) <= 0.085


@pytest.mark.slow
def test_more_budget_and_more_records_find_more(tmp_path: Path) -> None:
    by_budget = [rejections(tmp_path / f"e{e}", TIED, e, 5000) for e in (0.02, 0.05, 1.0)]
    assert by_budget == sorted(by_budget)
    assert by_budget[0] < by_budget[-1] - 0.2
    by_size = [rejections(tmp_path / f"n{n}", TIED, 0.1, n) for n in (1000, 5000, 20000)]
    assert by_size == sorted(by_size)
    assert by_size[0] < by_size[-1] - 0.2
