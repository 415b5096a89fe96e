"""Synthetic tables of a federated table by holder: their column, some of them, their distances."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.ledger import Payer
from cube.refusals import BudgetExhausted, Refused, SourceUnavailable
from planner.sql.synthetic_statements import CreateSynthetic
from proxy.api.requests import LOCAL
from proxy.config.memory import DEFAULT_LIMITS
from proxy.synthetic_tables import Progress, SyntheticRecord, SyntheticStore
from proxy.synthetic_tables.evaluation import evaluated
from proxy.synthetic_tables.make import make, preview
from proxy.synthetic_tables.models import decoded
from proxy.synthetic_tables.request import Joining, Method, SynthesisRequest
from synthesis import Structure
from tests.support.federated import Federation, federated_engine
from tests.support.synthetic import asked, refused

ANN = Payer("ann")
SIZES = {"a": 3, "b": 4}
NAMES = ("north", "south", "west")
N_ROWS = (3000, 1000, 6000)
LAWS = [np.random.default_rng(seed).dirichlet(np.full(12, 0.5)).reshape(3, 4) for seed in range(3)]
COUNTS = {
    name: np.random.default_rng(n).multinomial(n, law.ravel()).reshape(3, 4)
    for name, n, law in zip(NAMES, N_ROWS, LAWS, strict=True)
}
TRUTH = np.stack([COUNTS[name] for name in NAMES], axis=-1)  # a, b, holder
MAKE = "CREATE SYNTHETIC TABLE s FROM rows"
MUCH = Fraction(100)
SURE = 6  # half-widths of 95 %, of few noises: beyond them once in a million


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Federation]:
    """Three holders, whose names are a column of SQL."""
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    with federated_engine(tmp_path, SIZES, COUNTS, holders_public=True, store=store) as found:
        yield found


@pytest.fixture
def hidden(tmp_path: Path) -> Iterator[Federation]:
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    with federated_engine(tmp_path, SIZES, COUNTS, store=store) as found:
        yield found


def request(epsilon: object, **options: object) -> SynthesisRequest:
    found = {"method": Method.PAIRWISE, "n_rows": 40_000, "seed": 7, **options}
    return SynthesisRequest(table="rows", epsilon=Fraction(str(epsilon)), **found)  # type: ignore[arg-type]  # of each option its own


def apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The total variation distance of two tables of counts."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum()) / 2


def counts_of(rows: list[dict[str, object]], names: tuple[str, ...]) -> NDArray[np.float64]:
    levels = {name: [f"{name}{k}" for k in range(size)] for name, size in SIZES.items()}
    levels["holder"] = list(NAMES)
    counts = np.zeros([len(levels[name]) for name in names])
    for row in rows:
        counts[tuple(levels[name].index(str(row[name])) for name in names)] += 1
    return counts


# The holder as a column.


def test_the_holder_is_a_column_that_costs_nothing(public: Federation) -> None:
    (made,) = asked(
        public.engine, f"{MAKE} WITH (epsilon => 100, rows => 20000, columns => (holder, a, b))"
    )
    assert (made["unknown"], made["incomplete"]) == ("", "")
    rows = asked(public.engine, "SELECT * FROM s")
    assert list(rows[0]) == ["holder", "a", "b"]
    for names, other in ((("a", "holder"), 1), (("b", "holder"), 0), (("a", "b"), 2)):
        assert apart(counts_of(rows, names), TRUTH.sum(axis=other).astype(float)) < 0.02
    # The same order without the column costs as much; drawn apart, holders would be .3 off.
    independent = np.multiply.outer(TRUTH.sum(axis=(1, 2)), TRUTH.sum(axis=(0, 1))).astype(float)
    assert apart(independent, TRUTH.sum(axis=1).astype(float)) > 0.1
    assert max(public.spent()) == made["epsilon_spent"]


def test_a_column_of_holders_is_bought_as_without_it(tmp_path: Path) -> None:
    spent, measured = [], []
    for columns in (("a", "b"), ("holder", "a", "b")):
        folder = tmp_path / str(len(columns))
        folder.mkdir()
        with federated_engine(folder, SIZES, COUNTS, holders_public=True) as found:
            order = request(2, columns=columns)
            steps = preview(found.table, order)
            made = make(found.table, order, ANN)
            assert not made.unknown
            assert sum(step.epsilon for step in steps) == pytest.approx(2)
            spent.append(made.epsilon_spent)
            measured.append([[step.name, step.n_tables] for step in steps])
    assert measured[0] == measured[1]
    assert abs(spent[0] - spent[1]) < Fraction(1, 50)  # by which pairs noise has chosen
    assert max(spent) <= 2


def test_from_the_history_the_holder_is_known_as_far_as_it_says(public: Federation) -> None:
    count = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 20)"
    asked(public.engine, f"{count} a, COUNT(*) AS n FROM rows GROUP BY a")
    before = public.spent()
    (made,) = asked(public.engine, f"{MAKE} WITH (columns => (a, holder), rows => 20000)")
    assert public.spent() == before
    assert (made["epsilon_spent"], made["unknown"]) == (0, "")
    rows = asked(public.engine, "SELECT * FROM s")
    assert apart(counts_of(rows, ("a", "holder")), TRUTH.sum(axis=1).astype(float)) < 0.03


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("epsilon => 1, method => 'privbayes', columns => (a, holder)", "pairwise"),
        ("epsilon => 1, columns => (a, holder), target => holder", "target"),
        ("epsilon => 1, columns => (holder)", "another column"),
        ("epsilon => 1, columns => (a, holder), holders => 'any'", "any"),
    ],
)
def test_what_a_column_of_holders_cannot_be_is_refused_unpaid(
    public: Federation, options: str, said: str
) -> None:
    told = refused(public.engine, f"{MAKE} WITH ({options})")
    assert told.code == "invalid_request"
    assert said in str(told.hint)
    assert public.spent() == [0, 0, 0]


def test_a_table_with_holders_is_read_drawn_again_and_reported_on(public: Federation) -> None:
    order = f"{MAKE} WITH (epsilon => 20, columns => (a, holder, b), target => b, rows => 900)"
    asked(public.engine, order)
    synthetic = public.engine.synthetic
    again = synthetic.resample(LOCAL, "s", "t", 500, 3)
    assert again.n_rows == 500
    assert {row["holder"] for row in asked(public.engine, "SELECT holder FROM t")} == set(NAMES)
    assert b"<html" in synthetic.report(LOCAL, "s")
    assert b"north" in synthetic.model_file(LOCAL, "s")


def test_a_workload_may_name_the_holder_if_it_is_a_column(public: Federation) -> None:
    workload = "workload => 'SELECT holder, a, COUNT(*) FROM rows GROUP BY holder, a'"
    told = refused(public.engine, f"{MAKE} WITH (epsilon => 1, columns => (a, b), {workload})")
    assert "holder" in told.message
    assert public.spent() == [0, 0, 0]
    order = f"{MAKE} WITH (epsilon => 1, columns => (a, b, holder), {workload}, rows => 50)"
    assert asked(public.engine, order)[0]["n_rows"] == 50


# Some holders.


@pytest.mark.parametrize("way", ["pairwise", "statistics", "votes", "models"])
def test_without_a_holder_the_table_is_of_the_others(hidden: Federation, way: str) -> None:
    options: dict[str, object] = {}
    if way != "pairwise":
        options = {
            "method": Method.PRIVBAYES,
            "degree": 1,
            "joining": Joining(structure=Structure(way)),
        }
    hidden.holders.down.add(2)
    with pytest.raises(SourceUnavailable, match="west"):
        make(hidden.table, request(100, **options), ANN)
    made = make(hidden.table, request(100, any_holders=True, **options), ANN)
    assert (made.levels, made.left_out) == ((0, 1), "1 of 3")
    assert "Made without the rows of holders that could not answer: 1 of 3." in made.incomplete
    rows = made.rows.to_pylist()
    of_both = TRUTH[..., :2].sum(axis=-1).astype(float)
    assert apart(counts_of(rows, ("a", "b")), of_both) < 0.03
    assert apart(TRUTH.sum(axis=-1).astype(float), of_both) > 0.2
    assert hidden.spent()[2] == 0
    assert max(hidden.spent()) == made.epsilon_spent


def test_a_holder_with_too_little_left_is_left_out_whole(tmp_path: Path) -> None:
    budgets = [Fraction(5), Fraction(1), Fraction(5)]
    with federated_engine(tmp_path, SIZES, COUNTS, budgets=budgets, holders_public=True) as found:
        with pytest.raises(BudgetExhausted, match="south"):
            make(found.table, request(2), ANN)
        made = make(found.table, request(2, any_holders=True), ANN)
        assert (made.levels, made.left_out) == ((0, 2), "south")
        assert found.spent()[1] == 0
        everybody = make(found.table, request(1, any_holders=True), ANN)
        assert (everybody.levels, everybody.left_out) == ((0, 1, 2), "")
        assert everybody.incomplete == ""


def test_where_a_person_may_be_at_several_holders_some_pay_no_more_than_their_part(
    tmp_path: Path,
) -> None:
    with federated_engine(tmp_path, SIZES, COUNTS, overlap=True) as found:
        found.holders.down.add(0)
        made = make(found.table, request(3, any_holders=True, evaluate=Fraction(3)), ANN)
        assert made.levels == (1, 2)
        assert made.epsilon_spent == sum(found.spent()) <= 2
        assert found.spent()[0] == 0
        assert all(0.99 < spent <= 1 for spent in found.spent()[1:])


def test_if_no_holder_can_answer_it_is_refused_unpaid(hidden: Federation) -> None:
    hidden.holders.down |= {0, 1, 2}
    told = refused(hidden.engine, f"{MAKE} WITH (epsilon => 1, holders => 'any')")
    assert told.code == "source_unavailable"
    assert hidden.table.budget().spent == 0


def test_a_holder_that_fails_while_rows_are_made_refuses_and_the_next_order_does_without(
    hidden: Federation,
) -> None:
    def fail_later(level: int) -> None:
        if level == 1 and len(hidden.holders.told) > 3:
            hidden.holders.down.add(1)
            raise SourceUnavailable("The holder south cannot be reached.")

    hidden.holders.before = fail_later
    with pytest.raises(Refused, match="south"):
        make(hidden.table, request(1, any_holders=True), ANN)
    made = make(hidden.table, request(1, any_holders=True), ANN)
    assert made.levels == (0, 2)
    assert made.epsilon_spent <= 1


def test_the_record_says_who_is_left_out_and_the_model_stands_in_for_nobody(
    public: Federation,
) -> None:
    public.holders.down.add(0)
    order = f"{MAKE} WITH (epsilon => 1, holders => 'any', evaluate => 0.5, rows => 100)"
    (made,) = asked(public.engine, order)
    said = "Made without the rows of holders that could not answer: north."
    assert made["incomplete"] == said
    (shown,) = asked(public.engine, "SELECT * FROM data_privacy.synthetic_tables")
    assert shown["incomplete"] == said
    assert "holders => 'any'" in str(shown["options"])
    (record,) = public.engine.synthetic.listed(LOCAL)
    assert record.left_out == "north"
    assert SyntheticRecord.from_json(record.to_json()) == record
    assert public.spent()[0] == 0
    assert public.engine.synthetic.newest("rows") is None
    with pytest.raises(Refused, match="north"):
        public.engine.synthetic.report(LOCAL, "s")
    public.holders.down.clear()
    asked(public.engine, f"{MAKE.replace(' s ', ' t ')} WITH (epsilon => 1, holders => 'any')")
    newest = public.engine.synthetic.newest("rows")
    assert newest is not None
    assert (newest.name, newest.left_out, newest.incomplete) == ("t", "", "")


@pytest.mark.parametrize("value", ["'some'", "''", "3"])
def test_holders_are_all_or_any(hidden: Federation, value: str) -> None:
    told = refused(hidden.engine, f"{MAKE} WITH (epsilon => 1, holders => {value})")
    assert told.code == "invalid_request"
    assert hidden.spent() == [0, 0, 0]


# The evaluation.


def rows_of(counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Rows of levels with these counts."""
    return np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0).astype(np.int32)


@pytest.mark.parametrize("is_public", [True, False])
def test_an_evaluation_is_at_least_the_distance_and_exact_by_holder(
    tmp_path: Path, *, is_public: bool
) -> None:
    """By hand; for two columns by the shares that holders have, which are known well here."""
    shuffled = np.random.default_rng(2).permuted(TRUTH, axis=0)
    with federated_engine(tmp_path, SIZES, COUNTS, holders_public=is_public) as found:
        make(found.table, request(100), ANN)  # so that columns are known
        schema = found.table.info.schema
        counts = shuffled if is_public else shuffled.sum(axis=-1)
        axes = [schema.by_name[name] for name in ("a", "b", "holder")[: counts.ndim]]
        rows = decoded(axes, rows_of(counts), np.random.default_rng(1))
        before = found.spent()
        told = evaluated(found.table, ANN, axes, rows, n_rows=10_000, epsilon=MUCH, seed=1)
        assert told.is_bound
        assert [now - then for now, then in zip(found.spent(), before, strict=True)] == [
            told.epsilon_spent
        ] * 3
        assert told.epsilon_spent <= MUCH
        of_rows = shuffled.sum(axis=-1).astype(float)
        of_all = apart(of_rows, TRUTH.sum(axis=-1).astype(float))
        if is_public:  # each column by holder is exact, and one of three pairs is a bound
            by_hand = [apart(shuffled.sum(axis=k) * 1.0, TRUTH.sum(axis=k) * 1.0) for k in (0, 1)]
            mean = (sum(by_hand) + of_all) / 3
            assert told.estimate == pytest.approx(mean, abs=0.02)
            assert told.estimate > mean - SURE * told.half_width
        else:
            assert of_all - SURE * told.half_width < told.estimate < of_all + 0.05
            # Were each holder compared with its share by size alone, it would be further off.
            sizes = np.array(N_ROWS) / 10_000
            by_size = np.abs(of_rows[..., np.newaxis] * sizes - TRUTH).sum() / 20_000
            assert told.estimate < by_size - 0.1


def test_rows_like_those_of_holders_that_are_alike_are_close(tmp_path: Path) -> None:
    """By size alone, holders differ by chance: by .8 of the root of a count, in each cell."""
    law = LAWS[0].ravel()
    draw = np.random.default_rng(4)
    alike = {name: draw.multinomial(20_000, law).reshape(3, 4) for name in NAMES}
    with federated_engine(tmp_path, SIZES, alike) as found:
        make(found.table, request(50), ANN)
        total = sum(alike.values(), np.zeros((3, 4), dtype=np.int64))
        axes = found.table.info.schema.axes
        rows = decoded(axes, rows_of(total), np.random.default_rng(1))
        told = evaluated(found.table, ANN, axes, rows, n_rows=60_000, epsilon=MUCH, seed=1)
        by_chance = 3 * 0.8 * np.sqrt(20_000 * law).sum() / 120_000
        assert 0 <= told.estimate < by_chance / 3


def test_intervals_of_several_holders_count_the_noise_of_each(hidden: Federation) -> None:
    make(hidden.table, request(20), ANN)
    axes = hidden.table.info.schema.axes
    rows = decoded(axes, rows_of(TRUTH.sum(axis=-1)), np.random.default_rng(1))

    def found(epsilon: str, seed: int) -> tuple[float, float]:
        told = evaluated(
            hidden.table, ANN, axes, rows, n_rows=10_000, epsilon=Fraction(epsilon), seed=seed
        )
        return told.estimate, told.half_width

    # One pair and three noises of scale 1 / epsilon in counts, each over 20,000.
    _, half_width = found("0.01", 0)
    draws = np.random.default_rng(0).laplace(0, 100 / 20_000, (100_000, 3)).sum(axis=1)
    assert half_width == pytest.approx(float(np.quantile(np.abs(draws), 0.95)), rel=0.02)


def test_an_evaluation_is_told_as_a_bound_and_paid_beside_the_table(hidden: Federation) -> None:
    order = f"{MAKE} WITH (epsilon => 1, evaluate => 0.5, rows => 2000)"
    steps = asked(hidden.engine, f"EXPLAIN PRIVACY {order}")
    assert [steps[-1]["step"], steps[-1]["epsilon"]] == ["evaluating the rows", 0.5]
    (made,) = asked(hidden.engine, order)
    assert str(made["evaluated"]).startswith("at most 0.")
    assert max(hidden.spent()) == made["epsilon_spent"]
    assert 1.4 < max(hidden.spent()) <= 1.5
    (record,) = hidden.engine.synthetic.listed(LOCAL)
    assert SyntheticRecord.from_json(record.to_json()) == record


def test_an_evaluation_that_a_holder_cannot_pay_is_refused_before_the_table_is_made(
    tmp_path: Path,
) -> None:
    budgets = [Fraction(5), Fraction(12, 10), Fraction(5)]
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    with federated_engine(tmp_path, SIZES, COUNTS, budgets=budgets, store=store) as found:
        order = f"{MAKE} WITH (epsilon => 1, evaluate => 0.5)"
        told = refused(found.engine, order)
        assert told.code == "budget_exhausted"
        assert found.spent() == [0, 0, 0]


def test_if_a_holder_fails_at_the_evaluation_the_rows_are_kept(hidden: Federation) -> None:
    def go_down(step: Progress) -> None:
        if step.name == "evaluating the rows":
            hidden.holders.down.add(1)

    order = CreateSynthetic(
        name="s", table="rows", epsilon=Fraction(1), evaluate=Fraction(1, 2), n_rows=100
    )
    record = hidden.engine.synthetic.create(LOCAL, order, go_down)
    assert record.evaluation is None
    assert "south" in record.incomplete
    assert record.incomplete.startswith("The rows were not evaluated: ")
    assert len(asked(hidden.engine, "SELECT * FROM s")) == 100
