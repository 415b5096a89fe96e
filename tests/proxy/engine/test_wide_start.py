"""Formulas with a target begin wide, and cost what their last half-widths cost."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.noise.lattice_noise import NoiseSource
from planner.workload import Answer
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.answers.formula_widths import TELLING, first_width, next_share, useful_widths
from proxy.engine.engine import Engine
from tests.support.fakes import NoNoise
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(2000)
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


def spent(folder: Path, *statements: str, noise: NoiseSource | None = None) -> float:
    """What some statements cost, one after the other, on a history of their own."""
    with people_engine(folder, ROWS, budget=Fraction(50), noise=noise) as engine:
        for sql in statements:
            engine.answer(QueryRequest(sql=sql))
        return float(_spent(engine))


def _spent(engine: Engine) -> Fraction:
    return sum((budget.spent for budget in engine.budgets(LOCAL)), Fraction(0))


def mean(half_width: float, where: str = "TRUE") -> str:
    return f"{DP}(half_width => {half_width}) AVG(age) AS a FROM people WHERE {where}"


def test_a_mean_costs_in_inverse_proportion_to_its_half_width(tmp_path: Path) -> None:
    """Without noise, by which one mean in twenty or so costs half as much again."""
    costs = {}
    for half_width in (10.0, 5.0, 2.5):
        folder = tmp_path / str(half_width)
        folder.mkdir()
        costs[half_width] = spent(folder, mean(half_width), noise=NoNoise())
    # The last round of a search is within a third of what would have been enough, for each.
    assert costs[5.0] / costs[10.0] == pytest.approx(2, rel=1 / 3)
    assert costs[2.5] / costs[5.0] == pytest.approx(2, rel=1 / 3)


def test_a_look_that_was_wide_costs_nothing_in_the_end(tmp_path: Path) -> None:
    """Known to +-10 first and to +-2 then, a mean costs about what +-2 costs at once."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    at_once = spent(tmp_path / "one", mean(2.0))
    in_steps = spent(tmp_path / "two", mean(10.0), mean(5.0), mean(2.0))
    assert in_steps == pytest.approx(at_once, rel=1 / 3)


def test_a_small_group_costs_more_than_a_large_one(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "few").mkdir()
    few = "city = 'Oslo' AND visits <= 5"
    n_few = sum(row[1] == "Oslo" and row[2] <= 5 for row in ROWS)
    of_all = spent(tmp_path / "all", mean(5.0))
    of_few = spent(tmp_path / "few", mean(5.0, few))
    # At least by half of how many fewer they are; widths of a third of a step are left for chance.
    assert of_few > of_all * len(ROWS) / n_few / 2


def test_a_group_without_records_costs_what_telling_it_from_one_costs(tmp_path: Path) -> None:
    """As narrow as without a target, and then an eighth of it at most: never what a target asks."""
    nobody = "age > 97 AND visits = 20 AND city = 'Rome'"
    assert spent(tmp_path, mean(0.01, nobody), noise=NoNoise()) < 1.6


def test_a_count_that_is_narrow_by_itself_is_not_narrowed_for_a_mean(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "both").mkdir()
    count = f"{DP}(half_width => 5) COUNT(*) AS n"
    alone = spent(tmp_path / "alone", f"{count} FROM people")
    both = spent(tmp_path / "both", f"{count}, AVG(age) AS a FROM people")
    # The sum of ages costs about a hundredth of the count, and the count is bought once.
    assert both < 1.2 * alone


def test_what_is_useful_grows_with_the_divisor_and_is_never_more_than_tells_it() -> None:
    answer = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=2.0)
    assert useful_widths(answer, np.array([0.0, 50.0, 5000.0])).tolist() == [0.0, 2.0, 200.0]
    loose = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=90.0)
    assert useful_widths(loose, np.array([80.0])).tolist() == [80.0 * TELLING]
    unbounded = Answer("a", "x / y", uses=(0, 1), high=math.inf, half_width=2.0)
    assert useful_widths(unbounded, np.array([80.0])).tolist() == [80.0 * TELLING]
    relative = Answer("a", "AVG(x)", uses=(0, 1), low=-100.0, high=50.0, relative=0.03)
    assert useful_widths(relative, np.array([75.0])).tolist() == [3.0]


def test_no_search_begins_narrower_than_without_a_target() -> None:
    answer = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=2.0)
    assert first_width(answer, np.array([10.0]), 20.0) == 20.0
    assert first_width(answer, np.array([1e6, 1e5]), 100.0) == 4000.0  # the smaller row decides


def test_rows_without_a_value_are_narrowed_by_half_at_least() -> None:
    answer = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=2.0)
    empty = np.array([])
    assert next_share(answer, empty, empty) == 1.0
    assert next_share(answer, np.array([0.0]), np.array([100.0])) == 0.04
    assert next_share(answer, np.array([1e9]), np.array([1.0])) == 0.5


def test_explain_foresees_a_search_where_the_sizes_of_groups_are_known(tmp_path: Path) -> None:
    """Over few small groups: `epsilon` was the price of a first round, a fraction of the whole."""
    groups = "FROM people WHERE visits <= 5 GROUP BY city"
    average = f"{DP}(half_width => 3) city, AVG(age) AS a {groups}"
    with people_engine(tmp_path, ROWS, budget=Fraction(50)) as engine:
        blind = engine.explain(QueryRequest(sql=average))
        engine.answer(QueryRequest(sql=f"{DP}(half_width => 30) city, COUNT(*) AS n {groups}"))
        explained = engine.explain(QueryRequest(sql=average))
        before = _spent(engine)
        engine.answer(QueryRequest(sql=average))
        cost = float(_spent(engine) - before)
    (foreseen,) = set(explained.data.column("epsilon_foreseen").to_pylist())
    assert float(explained.epsilon) == foreseen
    assert cost / 3 < foreseen < 3 * cost
    assert blind.epsilon < explained.epsilon  # as if the whole table were in these groups
    assert all(explained.data.column("is_at_least").to_pylist())


def test_an_explanation_without_a_search_foresees_nothing(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(50)) as engine:
        explained = engine.explain(QueryRequest(sql="SELECT COUNT(*) AS n FROM people"))
    assert explained.data.column("epsilon_foreseen").null_count == explained.data.num_rows
    assert explained.epsilon > 0


def test_a_skewed_mean_is_reached_whatever_a_wide_look_seemed_to_say(tmp_path: Path) -> None:
    """One percent of the range, and seen first with noise of many times that."""
    rows = [(30, "Oslo", True, 20 if place % 100 == 0 else 0) for place in range(5000)]
    sql = f"{DP}(relative => 0.1) AVG(visits) AS a FROM people"
    for run in range(5):
        folder = tmp_path / str(run)
        folder.mkdir()
        with people_engine(folder, rows, budget=Fraction(1000)) as engine:
            answer = engine.answer(QueryRequest(sql=sql)).data["a"][0].as_py()
            assert answer == pytest.approx(0.2, rel=0.5)  # five half-widths
            assert _spent(engine) < 5  # at once, about 1.5
