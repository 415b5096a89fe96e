"""Synthetic tables of a federated table: how near each way comes, what each holder pays."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.gate import Told
from accountant.ledger import Payer
from cube.encoding import fingerprint
from cube.measurement import Weight
from cube.query import Partition
from cube.refusals import BudgetExhausted, SourceUnavailable
from proxy.api.requests import LOCAL
from proxy.config.memory import DEFAULT_LIMITS
from proxy.synthetic_tables import Progress, SyntheticRecord, SyntheticStore
from proxy.synthetic_tables.make import make, preview
from proxy.synthetic_tables.request import (
    Clip,
    Joining,
    MadeTable,
    Method,
    SynthesisRequest,
    Votes,
)
from synthesis import Smoothing, Structure
from tests.support.federated import Federation, federated_engine
from tests.support.synthetic import asked, refused

ANN = Payer("ann")
SIZES = {"a": 3, "b": 4, "c": 2}
LAW = np.random.default_rng(3).dirichlet(np.full(24, 0.5)).reshape(3, 4, 2)
N_ROWS = {"north": 3000, "south": 1000, "west": 6000}


def drawn(law: NDArray[np.float64], n_rows: int) -> NDArray[np.int64]:
    draw = np.random.default_rng(n_rows)
    return draw.multinomial(n_rows, law.ravel() / law.sum()).reshape(law.shape)


ALIKE = {name: drawn(LAW, n_rows) for name, n_rows in N_ROWS.items()}
IS_CLASS = np.eye(2)[np.newaxis, np.newaxis]
BY_CLASS = {
    "north": drawn(LAW * IS_CLASS[..., 0, :], 4000),  # all rows of one level of c
    "south": drawn(LAW * IS_CLASS[..., 1, :], 5000),
}


@pytest.fixture
def alike(tmp_path: Path) -> Iterator[Federation]:
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    with federated_engine(tmp_path, SIZES, ALIKE, store=store) as federation:
        yield federation


def request(epsilon: object, **options: object) -> SynthesisRequest:
    """An order of so many epsilon; a network if it says how it is joined."""
    is_network = "joining" in options
    method = Method.PRIVBAYES if is_network else Method.PAIRWISE
    found = {"method": method, "degree": 2, "n_rows": 40_000, "seed": 7, **options}
    return SynthesisRequest(table="rows", epsilon=Fraction(str(epsilon)), **found)  # type: ignore[arg-type]  # of each option its own


def furthest(made: MadeTable, truth: NDArray[np.int64]) -> float:
    """The largest total variation distance of two columns' joint law."""
    names = list(SIZES)
    levels = [
        np.array([int(text[1:]) for text in made.rows.column(name).to_pylist()]) for name in names
    ]
    shares = np.zeros(truth.shape)
    np.add.at(shares, tuple(levels), 1 / made.rows.num_rows)
    apart = shares - truth / truth.sum()
    return max(float(np.abs(apart.sum(axis=other)).sum()) / 2 for other in range(len(names)))


WAYS: dict[str, dict[str, object]] = {
    "pairwise": {},
    "target": {"target": ("c",)},
    "statistics": {"joining": Joining(structure=Structure.STATISTICS)},
    "votes": {"joining": Joining(structure=Structure.VOTES)},
    "models": {"joining": Joining(structure=Structure.MODELS)},
    "published": {
        "joining": Joining(
            structure=Structure.VOTES,
            votes=Votes.ONE_EACH,
            clip=Clip.HOLDERS,
            smoothing=Smoothing.ONE,
            public_rows=10_000,
        )
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [ALIKE, BY_CLASS], ids=["alike", "by class"])
def test_each_way_is_near_the_truth_for_much_and_no_holder_pays_more_than_that(
    tmp_path: Path, rows: dict[str, NDArray[np.int64]], way: str
) -> None:
    # 40,000 rows are about .01 from their law; with three columns, degree 2 leaves nothing out
    with federated_engine(tmp_path, SIZES, rows) as federation:
        order = request(100, **WAYS[way])
        steps = preview(federation.table, order)
        made = make(federation.table, order, ANN)
        assert furthest(made, sum(rows.values(), np.zeros(LAW.shape, dtype=np.int64))) < 0.04
        assert not made.incomplete
        assert sum(step.epsilon for step in steps) == pytest.approx(100)
        assert max(federation.spent()) == made.epsilon_spent
        for spent in federation.spent():
            assert 90 < spent <= 100


@pytest.mark.parametrize("way", WAYS)
def test_whatever_was_bought_before_no_holder_pays_more_than_an_order_says(
    alike: Federation, way: str
) -> None:
    by_a, by_b = (Partition((name,), np.arange(SIZES[name])) for name in "ab")
    alike.table.buy_tables({by_a: Weight.at_least(3)}, ANN, epsilon_cap=None, levels=(1,))
    alike.table.buy_tables({by_b: Weight.at_least(1)}, ANN, epsilon_cap=None, levels=(0, 2))
    for epsilon in ("0.7", "2"):
        before = alike.spent()
        make(alike.table, request(epsilon, **WAYS[way]), ANN)
        for spent, earlier in zip(alike.spent(), before, strict=True):
            assert spent - earlier <= Fraction(epsilon)


@pytest.mark.parametrize("way", ["pairwise", "votes", "models"])
def test_where_a_person_may_be_at_several_holders_an_order_is_for_all_of_them(
    tmp_path: Path, way: str
) -> None:
    with federated_engine(tmp_path, SIZES, ALIKE, overlap=True) as federation:
        made = make(federation.table, request(3, **WAYS[way]), ANN)
        assert made.epsilon_spent == sum(federation.spent()) <= 3
        assert all(0.99 < spent <= 1 for spent in federation.spent())


def test_one_holders_counts_are_bought_alone_and_the_others_only_catch_up(
    alike: Federation,
) -> None:
    table, by_a = alike.table, Partition(("a",), np.arange(3))
    assert table.buy_tables({by_a: Weight.at_least(2)}, ANN, epsilon_cap=None, levels=(1,)) == 2
    assert alike.spent() == [0, 2, 0]
    assert not len(table.snapshot().pooled)
    assert table.buy_tables({by_a: Weight.at_least(2)}, ANN, epsilon_cap=None) == 0
    assert alike.spent() == [2, 2, 2]
    table.buy_tables({by_a: Weight.at_least(1)}, ANN, epsilon_cap=None)
    assert alike.spent() == [3, 3, 3]


def weights(federation: Federation) -> list[dict[str, int]]:
    """The weight of every block that each holder has measured."""
    return [
        {fingerprint(one.block): one.weight.units for one in gate.measurements()}
        for gate in federation.holders.gates
    ]


@pytest.mark.parametrize("way", ["pairwise", "votes", "statistics", "models"])
def test_after_a_holder_failed_half_way_the_next_order_goes_on(alike: Federation, way: str) -> None:
    order = request(1, **WAYS[way])
    steps: list[str] = []

    def fail_later(step: Progress) -> None:
        steps.append(step.name)
        if step.name.startswith(("measuring columns", "measuring tables")):
            alike.holders.down.add(1)

    with pytest.raises(SourceUnavailable, match="south"):
        make(alike.table, order, ANN, fail_later)
    assert steps[0] == "counting rows"
    assert all(0 < spent < 1 for spent in alike.spent())
    assert way == "models" or len(set(alike.spent())) == 1  # all were asked, or none
    before = alike.spent()
    alike.holders.down.clear()
    steps.clear()
    make(alike.table, order, ANN, lambda step: steps.append(step.name))
    assert "counting rows" not in steps
    for spent, earlier in zip(alike.spent(), before, strict=True):
        assert spent - earlier <= 1


def test_what_a_holder_measured_is_not_bought_again_if_its_reply_was_lost(
    alike: Federation,
) -> None:
    lost = [0]

    def lose_one(told: Told) -> Told:
        lost[0] += 1
        if lost[0] == 5:  # of the second purchase: all columns at each holder
            raise SourceUnavailable("The holder south cannot be reached.")
        return told

    alike.holders.change = lose_one
    with pytest.raises(SourceUnavailable, match="south"):
        make(alike.table, request(1), ANN)
    make(alike.table, request(1), ANN)
    first, *others = weights(alike)
    assert all(one == first for one in others)
    assert len(set(alike.spent())) == 1
    assert alike.spent()[0] == alike.table.budget().spent


def test_an_order_that_a_holder_cannot_pay_is_refused_before_anything_is_bought(
    tmp_path: Path,
) -> None:
    budgets = [Fraction(5), Fraction(1), Fraction(5)]
    with federated_engine(tmp_path, SIZES, ALIKE, budgets=budgets) as federation:
        with pytest.raises(BudgetExhausted, match="south"):
            make(federation.table, request(2), ANN)
        federation.holders.down.add(2)
        with pytest.raises(SourceUnavailable, match="west"):
            make(federation.table, request("0.5"), ANN)
        assert federation.spent() == [0, 0, 0]
        assert federation.table.budget().spent == 0


NETWORK = "epsilon => 1, method => 'privbayes'"
MAKE = "CREATE SYNTHETIC TABLE s FROM rows"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("epsilon => 1, structure => 'votes'", "invalid_request"),
        (f"{NETWORK}, structure => 'meetings'", "invalid_request"),
        (f"{NETWORK}, votes => 'none'", "invalid_request"),
        (f"{NETWORK}, structure => 'models', votes => 'by_size'", "invalid_request"),
        (f"{NETWORK}, structure => 'models', smoothing => 'one'", "invalid_request"),
        (f"{NETWORK}, structure => 'statistics', score => 'R'", "invalid_request"),
        (f"{NETWORK}, structure => 'statistics', structure_share => 0.2", "invalid_request"),
        (f"{NETWORK}, clip => 'nobody'", "invalid_request"),
        (f"{NETWORK}, smoothing => 'much'", "invalid_request"),
        (f"{NETWORK}, public_rows => 0", "invalid_target"),
        ("method => 'privbayes'", "invalid_request"),
        ("method => 'privbayes', structure => 'models'", "invalid_request"),
        ("epsilon => 1, delta => 1e-9", "invalid_request"),
        ("epsilon => 1, columns => (a, holder)", "unknown_name"),
    ],
)
def test_what_holders_cannot_do_is_refused_unpaid(
    alike: Federation, options: str, code: str
) -> None:
    told = refused(alike.engine, f"{MAKE} WITH ({options})")
    assert told.code == code
    assert told.hint
    assert alike.spent() == [0, 0, 0]


def test_a_public_holder_is_no_column_unless_it_is_named(tmp_path: Path) -> None:
    store = SyntheticStore(tmp_path / "synthetic", DEFAULT_LIMITS)
    rows = {name: ALIKE[name] for name in ("north", "south")}
    with federated_engine(tmp_path, SIZES, rows, holders_public=True, store=store) as federation:
        engine = federation.engine
        asked(engine, f"{MAKE} WITH (epsilon => 1)")
        assert set(asked(engine, "SELECT * FROM s")[0]) == set(SIZES)


def test_the_record_says_how_answers_were_joined_and_orders_the_same_again(
    alike: Federation,
) -> None:
    how = "structure => 'votes', votes => 'one_each', clip => 'holders', public_rows => 9000"
    asked(alike.engine, f"{MAKE} WITH ({NETWORK}, {how}, rows => 50)")
    (shown,) = asked(alike.engine, "SELECT options FROM data_privacy.synthetic_tables")
    assert how in str(shown["options"])
    (record,) = alike.engine.synthetic.listed(LOCAL)
    assert SyntheticRecord.from_json(record.to_json()) == record
    again = asked(alike.engine, f"CREATE SYNTHETIC TABLE t FROM rows WITH ({record.options})")
    assert again[0]["n_rows"] == 50


def test_statistics_of_too_many_or_too_large_sets_are_refused_unpaid(tmp_path: Path) -> None:
    many, large = {f"c{place}": 1 for place in range(30)}, {"a": 400, "b": 400}
    for sizes, joined in ((many, "2"), (large, "1")):
        counts = np.zeros(tuple(sizes.values()), dtype=np.int64)
        counts.flat[0] = 9
        store = SyntheticStore(tmp_path / joined, DEFAULT_LIMITS)
        (tmp_path / joined).mkdir(exist_ok=True)
        with federated_engine(tmp_path / joined, sizes, {"north": counts}, store=store) as found:
            order = f"{MAKE} WITH ({NETWORK}, structure => 'statistics', degree => {joined})"
            told = refused(found.engine, order)
            assert told.code == "too_large"
            assert "votes" in str(told.hint)
            assert found.spent() == [0]
