"""Making synthetic tables through a real gate: what it costs, what is kept, what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.ledger.charged import ChargedChoice
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Partition
from cube.refusals import (
    BudgetExhausted,
    InvalidRequest,
    InvalidTarget,
    LimitReached,
    TooLarge,
    UnknownName,
)
from cube.statistic import Choice, Score
from proxy.synthetic_tables.make import EPSILON_MIN, make, preview, resampled
from proxy.synthetic_tables.request import Grouping, MadeTable, Method, Progress, SynthesisRequest
from proxy.tables.private_table import ServedTable
from synthesis import pairwise
from tests.support.auditing import audited
from tests.support.made_up_rows import distance
from tests.support.synthesis import AXES, N_ROWS, SCHEMA, served_staff, staff

ANN = Payer("ann")
ONE = SynthesisRequest(table="staff", epsilon=Fraction(1), seed=3)
NOTHING = replace(ONE, epsilon=Fraction(0))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path) as table:
        yield table


def spent(table: ServedTable) -> Fraction:
    return table.gate.budget().spent


def by(name: str) -> Partition:
    return Partition((name,), np.arange(SCHEMA.by_name[name].size, dtype=np.int64))


def pair_of(made: MadeTable, *names: str) -> np.ndarray:
    """The joint counts of two columns of category or whole-number type."""
    columns = []
    for name in names:
        axis = SCHEMA.by_name[name]
        places = {value: place for place, value in enumerate(axis.levels)}
        columns.append(np.array([places[value] for value in made.rows[name].to_pylist()]))
    table = np.zeros(SCHEMA.sizes(names))
    np.add.at(table, tuple(columns), 1.0)
    return table


def real_pair(*names: str) -> np.ndarray:
    places = [[axis.name for axis in AXES].index(name) for name in names]
    table = np.zeros(SCHEMA.sizes(names))
    np.add.at(table, tuple(staff()[:, place] for place in places), 1.0)
    return table


def test_a_table_costs_no_more_than_was_asked_and_resembles_the_rows(table: ServedTable) -> None:
    steps: list[Progress] = []
    made = make(table, ONE, ANN, steps.append)
    assert made.epsilon_spent == spent(table)
    assert Fraction(99, 100) < spent(table) <= 1
    assert made.unknown == ()
    assert made.rows.column_names == [axis.name for axis in AXES]
    assert made.rows.num_rows == pytest.approx(N_ROWS, abs=200)
    dependent = real_pair("age", "senior")
    assert distance(pair_of(made, "age", "senior"), dependent) < 0.1
    independent = np.outer(dependent.sum(axis=1), dependent.sum(axis=0))
    assert distance(independent, dependent) > 0.15
    assert_goes_forward(steps)
    assert steps[-1].epsilon_spent == made.epsilon_spent


def assert_goes_forward(steps: list[Progress]) -> None:
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert [step.epsilon_spent for step in steps] == sorted(step.epsilon_spent for step in steps)
    assert 0 <= steps[0].done < steps[-1].done < 1


def test_progress_goes_forward_where_no_pair_is_worth_a_table(
    table: ServedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairwise, "pair_budgets", lambda *_: {})
    steps: list[Progress] = []
    make(table, ONE, ANN, steps.append)
    names = [step.name for step in steps]
    assert names[names.index("scoring pairs") + 1] == "measuring columns", "again, for what is left"
    assert_goes_forward(steps)


def test_progress_goes_forward_over_the_classes_of_a_target(table: ServedTable) -> None:
    steps: list[Progress] = []
    make(table, replace(ONE, target=("senior",)), ANN, steps.append)
    done = [step.done for step in steps if step.name == "scoring pairs"]
    assert len(done) == len(SCHEMA.by_name["senior"].levels)
    assert len(set(done)) == len(done)
    assert_goes_forward(steps)


def test_a_network_is_bought_for_one_price_and_its_tables_are_history(table: ServedTable) -> None:
    request = replace(ONE, method=Method.PRIVBAYES, columns=("job", "senior", "pay"))
    steps = preview(table, request)
    assert float(sum(step.epsilon for step in steps)) == pytest.approx(1.0)
    made = make(table, request, ANN)
    assert made.epsilon_spent == spent(table)
    assert Fraction(99, 100) < spent(table) <= 1
    assert made.model["kind"] == "privbayes"
    kinds = {type(one) for told in table.gate.history.released for one in told.statistics}
    assert kinds == {ChargedChoice}
    measured = {one.block.scope for one in table.gate.measurements()}
    assert {scope for scope in made.tables if len(scope) > 1} <= measured
    assert distance(pair_of(made, "job", "senior"), real_pair("job", "senior")) < 0.1
    axes = [SCHEMA.by_name[name] for name in request.columns]
    assert resampled(made.model, axes, n_rows=None, seed=3).equals(made.rows)
    pairwise = make(table, replace(NOTHING, columns=request.columns), ANN)
    assert pairwise.unknown == (), "one history"


def test_the_settings_of_a_network_are_those_that_were_asked_for(table: ServedTable) -> None:
    columns = ("age", "pay", "senior")
    request = replace(
        ONE, method=Method.PRIVBAYES, columns=columns, degree=1, score=Score.INFORMATION
    )
    made = make(table, replace(request, hierarchies=True), ANN)
    asked = [one for told in table.gate.history.released for one in told.statistics]
    choices = [one.choice for one in asked if isinstance(one, ChargedChoice)]
    assert len(choices) == 2
    for choice in choices:
        assert [view.n_groups for view in choice.views if view.axes == ("age",)] == [20, 10, 5, 3]
        assert choice.score is Score.INFORMATION
    assert max(len(node["parents"]) for node in made.model["nodes"]) == 1
    alone = make(table, replace(request, degree=0), ANN)
    assert not any(node["parents"] for node in alone.model["nodes"])


def choices_of(table: ServedTable) -> list[Choice]:
    asked = [one for told in table.gate.history.released for one in told.statistics]
    return [one.choice for one in asked if isinstance(one, ChargedChoice)]


def test_a_budget_is_divided_as_it_was_asked(table: ServedTable) -> None:
    request = replace(ONE, method=Method.PRIVBAYES, columns=("age", "job", "senior"))
    shares = Fraction(1, 10), Fraction(9, 10)
    priced = [preview(table, replace(request, structure_share=share))[-2:] for share in shares]
    for share, (network, tables) in zip(shares, priced, strict=True):
        assert network.epsilon / (network.epsilon + tables.epsilon) == pytest.approx(float(share))
    made = make(table, replace(request, theta=1000.0), ANN)  # no table with a parent is useful
    assert not any(node["parents"] for node in made.model["nodes"])
    made = make(table, replace(request, theta=0.1), ANN)
    assert any(node["parents"] for node in made.model["nodes"])


def test_categories_may_be_parents_by_groups_of_their_levels(table: ServedTable) -> None:
    """Job has three levels, another and NULL: the first two are a group."""
    group = Grouping(name="jobs.kind", column="job", labels=(0, 0, 1, 2, 3))
    request = replace(
        ONE, method=Method.PRIVBAYES, columns=("job", "senior", "pay"), groups=(group,)
    )
    made = make(table, request, ANN)
    for choice in choices_of(table):
        assert [view.n_groups for view in choice.views if view.axes == ("job",)] == [5, 4]
    again = resampled(
        made.model, [SCHEMA.by_name[name] for name in request.columns], n_rows=None, seed=3
    )
    assert again.equals(made.rows)


def test_a_score_of_columns_with_two_levels_leaves_the_others_to_r(table: ServedTable) -> None:
    request = replace(ONE, method=Method.PRIVBAYES, score=Score.FULL_DEPENDENCE)
    scores = set()
    for seed in range(4):
        before = len(choices_of(table))
        made = make(table, replace(request, seed=seed), ANN)
        assert {node["child"] for node in made.model["nodes"]} == set(made.rows.column_names)
        for choice in choices_of(table)[before:]:
            sizes = {choice.views[one.child].n_groups for one in choice.candidates}
            assert (choice.score is Score.FULL_DEPENDENCE) == (max(sizes) == 2)
            scores.add(choice.score)
    assert scores == {Score.FULL_DEPENDENCE, Score.DISTANCE}


def test_history_alone_gives_the_same_model_for_nothing(table: ServedTable) -> None:
    bought = make(table, ONE, ANN)
    before = spent(table)
    again = make(table, NOTHING, ANN)
    assert spent(table) == before
    assert again.epsilon_spent == 0
    assert again.model == bought.model
    assert again.rows.equals(bought.rows)
    other = make(table, replace(NOTHING, seed=4), ANN)
    assert not other.rows.equals(bought.rows)
    assert resampled(bought.model, AXES, n_rows=None, seed=3).equals(bought.rows)
    assert resampled(bought.model, AXES, n_rows=17, seed=3).num_rows == 17


def test_what_statements_bought_is_used_and_what_nothing_is_known_of_is_named(
    table: ServedTable,
) -> None:
    with pytest.raises(InvalidRequest, match="Nothing is known"):
        make(table, NOTHING, ANN)
    age_and_senior = Partition(("age", "senior"), np.arange(40).reshape(20, 2))
    table.buy_tables(
        {age_and_senior: Weight.at_least(2), by("job"): Weight.at_least(2)},
        ANN,
        epsilon_cap=None,
    )
    made = make(table, NOTHING, ANN)
    assert made.unknown == ("pay", "since")
    assert made.tables == (("age", "senior"),)
    assert distance(pair_of(made, "age", "senior"), real_pair("age", "senior")) < 0.05
    before = spent(table)
    preview_steps = {step.name: step for step in preview(table, ONE)}
    assert preview_steps["reading the history"].n_tables == 2
    assert "counting rows" not in preview_steps
    assert spent(table) == before


def test_a_preview_adds_up_to_the_price(table: ServedTable) -> None:
    steps = preview(table, ONE)
    assert float(sum(step.epsilon for step in steps)) == pytest.approx(1.0)
    assert spent(table) == 0


@pytest.mark.parametrize(
    ("request_", "refusal", "said"),
    [
        (replace(ONE, columns=("age", "wage")), UnknownName, "no column wage"),
        (replace(ONE, epsilon=Fraction(101)), InvalidTarget, "no meaningful protection"),
        (replace(ONE, epsilon=Fraction(1, 2000)), InvalidTarget, "too small to measure"),
        (replace(NOTHING, method=Method.PRIVBAYES), InvalidRequest, "needs an epsilon"),
        (replace(ONE, epsilon=Fraction(11)), BudgetExhausted, "staff has 10 left"),
    ],
)
def test_bad_requests_are_refused_and_cost_nothing(
    table: ServedTable, request_: SynthesisRequest, refusal: type[Exception], said: str
) -> None:
    with pytest.raises(refusal, match=said):
        make(table, request_, ANN)
    assert spent(table) == 0
    assert not table.gate.payments()


def test_a_column_of_too_many_levels_is_refused(
    table: ServedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.synthetic_tables.make.N_LEVELS_MAX", 19)
    with pytest.raises(TooLarge, match="age has 20 levels"):
        make(table, ONE, ANN)
    assert make(table, replace(ONE, columns=("job", "pay")), ANN).rows.column_names == [
        "job",
        "pay",
    ]


def test_the_limit_of_one_query_is_the_limit_of_one_table(table: ServedTable) -> None:
    limit = Limit(Subject(SubjectKind.ANALYST, "ann"), per_query=Fraction(1, 2))
    table.gate._ledger.append("staff", lambda _history: LimitSet(limit, "owner"))
    with pytest.raises(LimitReached, match="next query of analyst:ann may cost at most"):
        make(table, ONE, ANN)
    assert spent(table) == 0
    make(table, replace(ONE, epsilon=Fraction(1, 2)), ANN)


class StoppedError(Exception):
    """What a client that goes away amounts to."""


@pytest.mark.parametrize(
    "at", ["measuring columns", "scoring pairs", "measuring pairs", "drawing rows"]
)
def test_what_was_charged_before_a_stop_is_used_by_the_next(table: ServedTable, at: str) -> None:
    def watch(step: Progress) -> None:
        if step.name == at:
            raise StoppedError

    with pytest.raises(StoppedError):
        make(table, ONE, ANN, watch)
    before = spent(table)
    assert (before > 0) == (at != "counting rows")
    assert not table.gate.history.pending
    left = 1 - before if 1 - before > EPSILON_MIN else Fraction(0)
    made = make(table, replace(ONE, epsilon=left), ANN)
    assert made.unknown == ()
    assert spent(table) <= 1


def test_when_others_spend_the_rest_a_table_is_made_of_what_there_is(tmp_path: Path) -> None:
    with served_staff(tmp_path, budget=Fraction(1)) as table:

        def watch(step: Progress) -> None:
            if step.name == "measuring pairs":
                rest = int((1 - spent(table)) * UNITS_PER_EPSILON)
                table.buy_tables({None: Weight(rest)}, Payer("bob"), epsilon_cap=None)

        made = make(table, ONE, ANN, watch)
        assert "0 left" in made.incomplete
        assert made.epsilon_spent < 1
        assert made.rows.num_rows == pytest.approx(N_ROWS, abs=300)
        assert spent(table) == 1


def test_values_are_of_their_columns(table: ServedTable) -> None:
    made = make(table, replace(ONE, epsilon=Fraction(5)), ANN)
    assert set(made.rows["job"].to_pylist()) == {"baker", "judge", "nurse", "another", None}
    assert set(made.rows["senior"].to_pylist()) == {True, False}
    assert set(made.rows["since"].to_pylist()) == set(AXES[4].levels)
    pay = [value for value in made.rows["pay"].to_pylist() if value is not None]
    assert len(pay) < made.rows.num_rows, "NULL is a level"
    assert -1.0 in pay, "so is what stands for everything else"
    inside = np.array([value for value in pay if value != -1.0])
    assert ((inside >= 0) & (inside < 1000)).all()
    counts, _ = np.histogram(inside, bins=[0, 10, 100, 1000])
    real = np.bincount(staff()[:, 3], minlength=5)[:3]
    assert np.abs(counts - real).max() < 50
    assert len(set(inside.tolist())) > 0.99 * inside.size, "anywhere in its bin"


def test_tables_are_raised_and_not_bought_twice(table: ServedTable) -> None:
    half: dict[Partition | None, Weight] = {by("job"): Weight.at_least(Fraction(1, 2))}
    price = table.price_of_tables(half)
    assert table.buy_tables(half, ANN, epsilon_cap=None) == price == Fraction(1, 2)
    assert table.buy_tables(half, ANN, epsilon_cap=Fraction(1, 2)) == Fraction(1, 2)
    first, second = table.gate.measurements()
    assert second.supersedes == 0
    assert (first.weight.exact, second.weight.exact) == (Fraction(1, 2), Fraction(1))
    assert table.buy_tables({}, ANN, epsilon_cap=None) == 0


def test_no_statistics_cost_nothing_is_not_said(table: ServedTable) -> None:
    with pytest.raises(ValueError, match="pays for nothing"):
        table.ask_statistics([], ANN, epsilon_cap=None)
    assert spent(table) == 0


@pytest.mark.parametrize("target", [("senior",), ("job", "senior")])
def test_a_target_s_classes_are_counted_for_one_price(
    tmp_path: Path, target: tuple[str, ...]
) -> None:
    """Every class has the whole epsilon, since a row is in one; the auditor agrees."""
    with served_staff(tmp_path) as table:
        steps = preview(table, replace(ONE, target=target))
        assert float(sum(step.epsilon for step in steps)) == pytest.approx(1.0)
        made = make(table, replace(ONE, target=target), ANN)
        assert made.epsilon_spent == spent(table)
        assert Fraction(1, 2) < spent(table) <= 1, "less if no pair of a class is worth it"
        assert made.rows.num_rows == pytest.approx(N_ROWS, abs=200)
        assert all(set(target) < set(scope) for scope in made.tables)
        assert distance(pair_of(made, "age", "senior"), real_pair("age", "senior")) < 0.1
        axes = SCHEMA.axes
        assert resampled(made.model, axes, n_rows=None, seed=3).equals(made.rows)
        again = make(table, replace(NOTHING, target=target), ANN)
        assert again.epsilon_spent == 0
        assert again.tables == made.tables
        paid = spent(table)
    verdict = audited(tmp_path / "staff.ledger")
    assert verdict.problem is None
    [of_staff] = verdict.tables
    assert of_staff.recomputed == of_staff.spent == paid


def test_a_target_without_a_budget_is_made_of_whatever_is_known(table: ServedTable) -> None:
    make(table, ONE, ANN)
    made = make(table, replace(NOTHING, target=("senior",)), ANN)
    # Noise decided which pairs were counted: those of the target may be enough for its classes.
    assert made.model["kind"] in {"pairwise", "strata"}
    assert made.unknown == ()


def test_a_target_of_many_levels_counts_more_among_pairs(table: ServedTable) -> None:
    made = make(table, replace(ONE, target=("age",)), ANN)
    assert made.model["kind"] == "pairwise"
    assert ("age", "senior") in made.tables
