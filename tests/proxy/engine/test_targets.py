"""Targets that depend on answers: of a formula, and relative to the answer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Subject, SubjectKind
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import LatticeNoise, SystemNoise
from cube.refusals import BudgetExhausted, CostAboveCap, TargetNotReached
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.engine.targets import UNSURE_SHARE
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.fakes import NoNoise
from tests.support.worlds import DEFAULT, SCHEMA, people_engine, random_rows, write_csv

ROWS = random_rows(2000)
MEAN_AGE = sum(row[0] for row in ROWS) / len(ROWS)
N_OSLO = sum(row[1] == "Oslo" for row in ROWS)
BUDGET = Fraction(4)
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS, budget=BUDGET) as engine:
        yield engine


def ask(engine: Engine, sql: str) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql))


def spent(engine: Engine) -> Fraction:
    return sum((budget.spent for budget in engine.budgets(LOCAL)), Fraction(0))


@pytest.mark.parametrize("half_width", [5.0, 1.0, 0.25])
def test_a_mean_is_as_accurate_as_it_was_asked_to_be(engine: Engine, half_width: float) -> None:
    release = ask(engine, f"{DP}(half_width => {half_width}) AVG(age) AS a FROM people")
    assert release.receipt is not None
    (column,) = release.receipt.columns
    (value,) = release.data.column(0).to_pylist()
    assert value - column.low[0] <= half_width
    assert column.high[0] - value <= half_width
    assert abs(value - MEAN_AGE) < 4 * half_width  # beyond it by chance less than once in 10**9


def test_means_of_no_group_are_no_rows_and_free(engine: Engine) -> None:
    sql = f"{DP}(half_width => 6) age AS k, AVG(age) AS a FROM people WHERE age > 60 AND age < 50"
    for _ in range(2):
        assert ask(engine, f"{sql} GROUP BY age").data.num_rows == 0
    assert spent(engine) == 0


def test_a_mean_asked_more_accurately_costs_the_difference(engine: Engine) -> None:
    ask(engine, f"{DP}(half_width => 1) AVG(age) AS a FROM people")
    ask(engine, f"{DP}(half_width => 0.25) AVG(age) AS a FROM people")
    in_steps = spent(engine)
    ask(engine, f"{DP}(half_width => 0.25) AVG(age) AS a FROM people")
    assert spent(engine) == in_steps
    # One record moves SUM(age - c) by 50 and COUNT by 1; each of both is known to a share of .25.
    assert in_steps < 3


class HighThenExact(NoNoise):
    """A `NoiseSource` whose draws are three times their scale until that is turned off."""

    is_high = True

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        return (int(3 * noise.scale_in_steps) if self.is_high else 0,) * size

    def refined_laplace(
        self,
        coarse: LatticeNoise,  # noqa: ARG002 - a fake
        fine: LatticeNoise,
        drawn: Sequence[int],
    ) -> tuple[int, ...]:
        return self.discrete_laplace(fine, len(drawn))


def average(name: str, where: str, half_width: float) -> str:
    return f"{DP}(half_width => {half_width}) AVG(age) AS {name} FROM people WHERE {where}"


def width_of(release: QueryResult) -> float:
    assert release.receipt is not None
    (column,) = release.receipt.columns
    value = release.data.column(0)[0].as_py()
    return float(max(column.high[0] - value, value - column.low[0]))


def test_an_average_has_the_same_interval_whatever_else_is_measured(engine: Engine) -> None:
    first = ask(engine, average("a", "age < 50", 3))
    before = spent(engine)
    ask(engine, f"{DP}(half_width => 20) COUNT(*) AS n FROM people WHERE age >= 50")
    assert spent(engine) > before
    again = ask(engine, average("a", "age < 50", 3))
    assert first.receipt is not None
    assert again.receipt is not None
    assert again.data.equals(first.data.replace_schema_metadata(again.data.schema.metadata))
    assert again.receipt.columns[0].low == first.receipt.columns[0].low
    assert again.receipt.columns[0].high == first.receipt.columns[0].high


def test_an_average_that_later_measurements_widen_is_given_as_before(tmp_path: Path) -> None:
    noise = HighThenExact()
    with people_engine(tmp_path, ROWS[:100], budget=BUDGET, noise=noise) as engine:
        width = 1.001 * width_of(ask(engine, average("a", "age < 50", 8)))
        first = ask(engine, average("a", "age < 50", width))
        noise.is_high = False
        ask(engine, f"{DP}(half_width => 4) COUNT(*) AS n FROM people WHERE age < 50")
        # The oracle: as narrow as that, the history of today does not say it.
        assert width_of(ask(engine, average("a", "age < 50", 40))) > width
        before = spent(engine)
        for name, where in (("a", "age < 50"), ("another", "age <= 49")):
            again = ask(engine, average(name, where, width))
            assert again.data.column(0).equals(first.data.column(0))
            assert width_of(again) == width_of(first) <= width
        assert spent(engine) == before
        ask(engine, average("a", "age < 50", 0.999 * width))  # another target: another question
        assert spent(engine) > before


def test_what_a_formula_cannot_reach_is_told_before_it_is_tried(engine: Engine) -> None:
    with pytest.raises(TargetNotReached) as caught:
        ask(engine, f"{DP}(half_width => 0.001, fallback => 'error') AVG(age) AS a FROM people")
    at_the_default_width = spent(engine)
    assert at_the_default_width <= UNSURE_SHARE * BUDGET
    assert "a " in str(caught.value.hint)
    # What is free now is what the refusal says.
    free = ask(engine, f"{DP}(half_width => 0.9) AVG(age) AS a FROM people")
    assert spent(engine) == at_the_default_width
    assert free.receipt is not None
    (column,) = free.receipt.columns
    (value,) = free.data.column(0).to_pylist()
    width = max(column.high[0] - value, value - column.low[0])
    assert f"a {width:.6g}" in str(caught.value.hint)
    (known,) = caught.value.free
    assert known.answer == "a"
    assert known.half_width == pytest.approx(width)
    assert caught.value.epsilon_spent == at_the_default_width
    shortfall = caught.value.shortfall
    assert shortfall is not None
    assert shortfall.epsilon_left == BUDGET - at_the_default_width < shortfall.epsilon_needed
    assert shortfall.free is shortfall.fitting is None


def test_a_ratio_of_nothing_does_not_burn_the_budget(tmp_path: Path) -> None:
    """Without noise, which once in some hundred times looks like somebody for a round."""
    nobody = "age > 97 AND visits = 20 AND city = 'Rome'"
    with people_engine(tmp_path, ROWS, budget=Fraction(1000), noise=NoNoise()) as engine:
        release = ask(engine, f"{DP}(half_width => 0.5) AVG(age) AS a FROM people WHERE {nobody}")
        assert release.data.column(0).to_pylist() == [None]
        # The count is narrowed to an eighth of its first width at most.
        assert spent(engine) < Fraction(8, 5)


def test_the_cap_of_a_request_holds_over_all_rounds(engine: Engine) -> None:
    release = ask(engine, f"{DP}(half_width => 0.05, epsilon => 0.6) AVG(age) AS a FROM people")
    assert release.receipt is not None
    assert release.receipt.warnings[0].startswith("target_not_reached")
    assert 0 < spent(engine) <= Fraction(6, 10)
    with pytest.raises(CostAboveCap):
        ask(engine, f"{DP}(half_width => 1, epsilon => 0) AVG(visits) AS a FROM people")


@pytest.mark.parametrize("relative", [0.2, 0.05])
def test_a_relative_target_follows_the_answer(tmp_path: Path, relative: float) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(20)) as engine:
        release = ask(
            engine,
            f"{DP}(relative => {relative}, at_least => 50) COUNT(*) AS n FROM people "
            "WHERE city = 'Oslo'",
        )
        assert release.receipt is not None
        (column,) = release.receipt.columns
        (value,) = release.data.column(0).to_pylist()
        half_width = (column.high[0] - column.low[0]) / 2
        assert half_width <= relative * value
        assert abs(value - N_OSLO) < 4 * half_width
        # It was not asked for very much more than that, whatever the noise said on the way.
        assert half_width > relative * value / 20


def test_a_relative_target_is_never_below_its_floor(engine: Engine) -> None:
    nobody = "age > 97 AND visits = 20"
    release = ask(engine, f"{DP}(relative => 0.01) COUNT(*) AS n FROM people WHERE {nobody}")
    assert release.receipt is not None
    (column,) = release.receipt.columns
    (value,) = release.data.column(0).to_pylist()
    assert column.high[0] - max(0, value) <= DEFAULT.half_width  # no interval ends below 0
    assert spent(engine) < Fraction(1, 2)


@contextmanager
def two_tables(folder: Path, budgets: tuple[Fraction, Fraction]) -> Iterator[Engine]:
    """The same schema twice, over different rows."""
    tables = {}
    with open_ledger(folder / "two.ledger") as ledger:
        for number, budget in enumerate(budgets):
            name = f"people_{number}"
            schema = type(SCHEMA)(table=name, axes=SCHEMA.axes, n_records_max=SCHEMA.n_records_max)
            (folder / name).mkdir()
            path = write_csv(folder / name / "rows.csv", random_rows(500, seed=number))
            source = DuckDbSource(schema, SourceLocation(path=path))
            gate = open_table(ledger, schema, budget, source, SystemNoise())
            tables[name] = ServedTable(schema, DEFAULT, gate)
        yield Engine(tables)


BOTH = (
    "SELECT a.n + b.n AS n FROM (SELECT COUNT(*) AS n FROM people_0) AS a, "
    "(SELECT COUNT(*) AS n FROM people_1) AS b"
)


def test_a_statement_of_two_tables_charges_both(tmp_path: Path) -> None:
    with two_tables(tmp_path, (Fraction(1), Fraction(1))) as engine:
        release = ask(engine, BOTH)
        assert abs(release.data.column(0).to_pylist()[0] - 1000) < 200
        assert all(budget.spent > 0 for budget in engine.budgets(LOCAL))
        assert release.receipt is not None
        assert release.receipt.epsilon_spent == spent(engine)


def test_a_limit_on_one_table_is_not_used_up_on_another(tmp_path: Path) -> None:
    with two_tables(tmp_path, (Fraction(1), Fraction(1))) as engine:
        ask(engine, "SELECT COUNT(*) AS n FROM people_1")
        ledger = engine._tables["people_1"].gate._ledger
        limit = Limit(Subject(SubjectKind.EACH_ANALYST), per_query=Fraction(1, 1000))
        ledger.append("people_1", lambda _history: LimitSet(limit, "owner"))
        release = ask(engine, BOTH)
        assert release.receipt is not None
        assert release.receipt.epsilon_spent > Fraction(1, 1000)


def test_no_table_is_charged_if_another_refuses(tmp_path: Path) -> None:
    with two_tables(tmp_path, (Fraction(1), Fraction(1, 1000))) as engine:
        with pytest.raises(BudgetExhausted):
            ask(engine, BOTH)
        assert spent(engine) == 0


def test_what_cannot_be_computed_is_refused_before_it_is_paid_for(engine: Engine) -> None:
    with pytest.raises(Exception, match="SQL on the answers"):
        ask(engine, "SELECT n FROM (SELECT COUNT(*) AS n FROM people) AS t WHERE m > 1")
    assert spent(engine) == 0


def test_a_probe_reads_nothing(engine: Engine) -> None:
    request = QueryRequest(sql="SELECT city, AVG(age) AS a FROM people GROUP BY city LIMIT 0")
    release = engine.answer(request)
    assert release.data.num_rows == 0
    assert release.data.schema == engine.result_schema(request)
    assert spent(engine) == 0


def test_a_requested_half_width_is_that_of_a_formula_too(engine: Engine) -> None:
    request = QueryRequest(
        sql="SELECT AVG(age) AS a FROM people", target=RequestedTarget(half_width=1.0)
    )
    release = engine.answer(request)
    assert release.receipt is not None
    (column,) = release.receipt.columns
    assert column.high[0] - column.low[0] <= 2.0


def test_the_smallest_of_several_caps_holds(engine: Engine) -> None:
    inner = f"{DP}(epsilon => 5, half_width => 1) COUNT(*) AS n FROM people"
    with pytest.raises(CostAboveCap):
        ask(engine, f"{DP}(epsilon => 0.01) n FROM ({inner}) AS t")
    request = QueryRequest(
        sql=f"{DP}(epsilon => 5, half_width => 1) COUNT(*) AS n FROM people",
        target=RequestedTarget(epsilon_cap=Fraction(1, 100)),
    )
    with pytest.raises(CostAboveCap):
        engine.answer(request)
    assert spent(engine) == 0


def test_a_cap_is_one_for_all_tables_of_a_statement(tmp_path: Path) -> None:
    with two_tables(tmp_path, (Fraction(1), Fraction(1))) as engine:
        ask(engine, BOTH)
        one = engine.budgets(LOCAL)[0].spent
    (tmp_path / "again").mkdir()
    with two_tables(tmp_path / "again", (Fraction(1), Fraction(1))) as engine:
        target = RequestedTarget(half_width=DEFAULT.half_width, epsilon_cap=one * Fraction(3, 2))
        request = QueryRequest(sql=BOTH, target=target)
        with pytest.raises(CostAboveCap):
            engine.answer(request)
        assert spent(engine) == 0


def test_what_only_having_looks_at_is_not_known_to_a_fraction_of_a_record(engine: Engine) -> None:
    ask(engine, "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING 1000 * COUNT(*) > 5")
    assert spent(engine) < Fraction(1, 2)
