"""What a holder charges, measures and tells for another ledger, whatever that ledger does."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.gate import Asked, Gate, open_table
from accountant.gate.asked import AskedRows, AskedStatistic, Raised
from accountant.ledger import (
    ChargedBlock,
    ChargedUnitCount,
    Ledger,
    Limit,
    Payer,
    Subject,
    SubjectKind,
    open_ledger,
)
from accountant.ledger.entries import LimitSet
from accountant.noise import GaussianNoise, LatticeNoise, SystemNoise, rounded_up
from cube.measurement import UNITS_PER_EPSILON, Precision, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import (
    BudgetExhausted,
    InvalidRequest,
    LimitReached,
    SourceUnavailable,
    TooLarge,
)
from cube.statistic import UnitCount
from tests.support.fakes import KnownTable
from tests.support.square_tables import records_of, schema_of

SIZES = {"a": 3, "b": 2}
COUNTS = np.array([[5, 70], [11, 0], [400, 9]], dtype=np.int64)
SCHEMA = schema_of(SIZES)
ONE, OTHER = Payer("one"), Payer("other")
EVERYTHING = QueryBlock(counting())
BY_A = QueryBlock(counting(), Partition(("a",), np.arange(3)))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "holder.ledger") as ledger:
        yield ledger


@pytest.fixture
def gate(ledger: Ledger) -> Gate:
    return open_table(
        ledger, SCHEMA, Fraction(2), KnownTable(SCHEMA, records_of(COUNTS)), SystemNoise()
    )


def noise_of(epsilon: float) -> LatticeNoise:
    return LatticeNoise.for_weight(Weight.at_least(epsilon), Fraction(1))


def request(
    name: str, *blocks: QueryBlock, epsilon: float = 0.5, raised: Raised | None = None
) -> Asked:
    rows = tuple(AskedRows(ChargedBlock(one, noise_of(epsilon)), raised) for one in blocks)
    return Asked(name, "now", rows)


def told(gate: Gate, asked: Asked, payer: Payer = ONE) -> tuple[tuple[int, ...], ...]:
    agreed = replace(asked, generation=gate.state)
    seq = gate.charge_for(Asked.read(agreed.text), payer)
    gate.complete(seq)
    found = gate.told(seq)
    assert found is not None
    return found.values


def test_it_is_charged_once_and_told_again(gate: Gate) -> None:
    first = told(gate, request("r1", BY_A))
    spent = gate.budget().spent
    assert spent == Weight.at_least(0.5).exact
    assert told(gate, request("r1", BY_A)) == first
    assert gate.budget().spent == spent
    assert told(gate, request("r2", BY_A)) != first
    assert gate.budget().spent == 2 * spent


def test_values_are_near_the_truth_and_not_the_truth(gate: Gate) -> None:
    """Of three values with noise of scale 2, all are within 40 but once in 10**8 runs."""
    (values,) = told(gate, request("r1", BY_A))
    found = np.array(values) / 2 ** noise_of(0.5).lattice_bits
    assert np.abs(found - COUNTS.sum(axis=1)).max() < 40
    assert not np.array_equal(found, COUNTS.sum(axis=1))


def test_another_payers_reference_is_another_request(gate: Gate) -> None:
    first = told(gate, request("r1", BY_A))
    assert told(gate, request("r1", BY_A), OTHER) != first
    higher = noise_of(0.5).refined_to(Weight.at_least(0.7))
    told(gate, Asked("r2", "now", (AskedRows(ChargedBlock(BY_A, higher), Raised("r1", 0)),)))
    with pytest.raises(InvalidRequest, match="was not measured for this ledger"):
        told(gate, request("r9", BY_A, epsilon=0.9, raised=Raised("r2", 0)), OTHER)


def test_other_rows_under_a_known_reference_are_refused(gate: Gate) -> None:
    told(gate, request("r1", BY_A))
    n_entries = gate.position[0]
    for other in (request("r1", EVERYTHING), request("r1", BY_A, epsilon=0.6)):
        with pytest.raises(InvalidRequest, match="under the name of this request"):
            told(gate, other)
    assert gate.position[0] == n_entries


def test_a_raise_costs_the_difference(gate: Gate) -> None:
    told(gate, request("r1", BY_A, epsilon=0.5))
    raised = Asked(
        "r2",
        "now",
        (
            AskedRows(
                ChargedBlock(BY_A, noise_of(0.5).refined_to(Weight.at_least(0.75))),
                Raised("r1", 0),
            ),
        ),
    )
    told(gate, raised)
    assert gate.budget().spent == Weight.at_least(0.75).exact
    assert gate.history.measurements[-1].supersedes == 0


def test_a_row_that_somebody_else_raised_is_measured_anew(gate: Gate) -> None:
    """It gets the noise that was asked for, for the whole price."""
    told(gate, request("r1", BY_A, epsilon=0.25))
    higher = noise_of(0.25).refined_to(Weight.at_least(0.5))
    (first,) = gate.history.measurements
    plan = gate.history.raises.planned(gate.payments()[-1].charge)
    gate.measure(
        [replace(plan[0], weight=Weight.at_least(0.3), raised_from=0)], OTHER, epsilon_cap=None
    )
    before = gate.budget().spent
    told(gate, Asked("r2", "now", (AskedRows(ChargedBlock(first.block, higher), Raised("r1", 0)),)))
    assert gate.budget().spent - before == Weight.at_least(0.5).exact
    assert gate.history.measurements[-1].supersedes is None


def of_units(
    name: str, noise: LatticeNoise, raised: Raised | None = None, *, groups_max: int = 1
) -> Asked:
    charged = ChargedUnitCount(UnitCount(BY_A, groups_max), noise)
    return Asked(name, "now", (), (AskedStatistic(charged, raised),))


def test_units_are_counted_and_a_raise_of_their_count_costs_the_difference(gate: Gate) -> None:
    told(gate, request("r1", BY_A, epsilon=0.5))
    before = gate.budget().spent
    told(gate, of_units("r2", noise_of(0.25)))
    higher = noise_of(0.25).refined_to(Weight.at_least(0.5))
    told(gate, of_units("r3", higher, Raised("r2", 0)))
    told(gate, of_units("r3", higher, Raised("r2", 0)))
    assert gate.budget().spent - before == Weight.at_least(0.5).exact
    counted = gate.history.unit_counts
    assert 0 in counted.superseded
    assert abs(counted.measurements[1].values - COUNTS.sum(axis=1)).max() < 200


def test_nothing_else_is_raised_than_what_was_measured_for_the_payer(gate: Gate) -> None:
    told(gate, request("r1", BY_A, epsilon=0.5))
    told(gate, of_units("r2", noise_of(0.25)))
    higher = noise_of(0.25).refined_to(Weight.at_least(0.75))
    hostile = [
        request("r3", EVERYTHING, epsilon=0.75, raised=Raised("r1", 0)),
        of_units("r3", higher, Raised("r1", 0)),
        of_units("r3", higher, Raised("r2", 1)),
        of_units("r3", higher, Raised("r2", -1)),
        of_units("r3", higher, Raised("r2", 0), groups_max=2),
        of_units("r3", replace(higher, scale_in_steps=2.0**60), Raised("r2", 0)),
        request("r3", BY_A, epsilon=0.75, raised=Raised("r2", 0)),
    ]
    before = gate.position
    for one in hostile:
        with pytest.raises(InvalidRequest):
            told(gate, one)
        with pytest.raises(InvalidRequest):
            gate.price_for(replace(one, generation=gate.state), ONE)
    with pytest.raises(InvalidRequest):
        told(gate, of_units("r3", higher, Raised("r2", 0)), OTHER)
    assert gate.position == before


FINE = Precision.at_least(Fraction(1, 8))
LIGHT, HEAVY = Weight.at_least(0.5), Weight.at_least(64.0)
FINEST = LatticeNoise(LIGHT, 32, rounded_up(2**32 / LIGHT.exact))
COARSE = LatticeNoise(HEAVY, 0, rounded_up(1 / HEAVY.exact))
WIDE = QueryBlock(counting([Factor(("b",), np.array([1, 2**30]))]))  # no room on that lattice
HOSTILE = [
    request("r1", QueryBlock(counting([Factor(("z",), np.array([0, 1]))]))),
    request("r1", QueryBlock(counting(), Partition(("a",), np.arange(7)))),
    Asked(
        "r1",
        "now",
        (AskedRows(ChargedBlock(BY_A, replace(noise_of(0.5), scale_in_steps=2.0**60))),),
    ),
    Asked("r1", "now", (AskedRows(ChargedBlock(BY_A, GaussianNoise.for_precision(FINE))),)),
    Asked("r1", "now", (AskedRows(ChargedBlock(WIDE, FINEST)),)),
    Asked("r1", "now", (AskedRows(ChargedBlock(BY_A, COARSE)),)),
    request("r1", BY_A, raised=Raised("never", 0)),
    request("r1", BY_A, raised=Raised("never", -1)),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_does_not_fit_is_refused_before_anything_is_charged(
    gate: Gate, hostile: Asked
) -> None:
    n_entries = gate.position[0]
    with pytest.raises((InvalidRequest, TooLarge)):
        told(gate, hostile)
    assert gate.position[0] == n_entries


def test_less_noise_than_the_weight_pays_for_cannot_be_asked_for() -> None:
    asked = request("r1", BY_A)
    honest = noise_of(0.5)
    text = asked.text.replace(honest.noise_scale.hex(), (honest.noise_scale / 2).hex())
    assert text != asked.text
    with pytest.raises(InvalidRequest, match="is damaged"):
        Asked.read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"reference":1}',
        "\0",
        '{"reference":"r","generation":"g","rows":[[]],"statistics":[]}',
    ],
)
def test_damaged_requests_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="no charge was made"):
        Asked.read(text)


def test_what_was_agreed_on_other_data_is_refused(gate: Gate) -> None:
    with pytest.raises(SourceUnavailable, match="was replaced"):
        gate.charge_for(request("r1", BY_A), ONE)


def test_budget_and_limits_hold(gate: Gate, ledger: Ledger) -> None:
    limit = Limit(Subject(SubjectKind.ANALYST, "one"), Fraction(3, 4))
    ledger.append(SCHEMA.table, lambda _: LimitSet(limit, "owner"))
    told(gate, request("r1", BY_A))
    with pytest.raises(LimitReached):
        told(gate, request("r2", BY_A))
    told(gate, request("r2", BY_A), OTHER)
    told(gate, request("r3", BY_A), OTHER)
    with pytest.raises(BudgetExhausted):
        told(gate, request("r4", BY_A, epsilon=0.6), OTHER)
    assert gate.budget().spent <= 2


def test_of_many_calls_at_once_one_charges(gate: Gate) -> None:
    start, found = threading.Barrier(8), []
    agreed = replace(request("r1", BY_A), generation=gate.state)

    def call() -> None:
        start.wait()
        found.append(gate.charge_for(agreed, ONE))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert gate.budget().spent == Weight.at_least(0.5).exact


def test_it_is_told_the_same_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "holder.ledger"
    source = KnownTable(SCHEMA, records_of(COUNTS))
    with open_ledger(file) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(2), source, SystemNoise())
        first = told(gate, request("r1", BY_A))
        waiting = replace(request("r2", EVERYTHING), generation=gate.state)
        gate.charge_for(waiting, ONE)  # and is killed before it measures
    with open_ledger(file) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(2), source, SystemNoise())
        assert told(gate, request("r1", BY_A)) == first
        second = told(gate, request("r2", EVERYTHING))
        assert told(gate, request("r2", EVERYTHING)) == second
        assert gate.budget().spent == 2 * Weight.at_least(0.5).exact
        verdict = verify(list(ledger.entries()))
        assert verdict.problem is None
        assert verdict.tables[0].spent == verdict.tables[0].recomputed == gate.budget().spent


def test_no_cell_costs_more_than_was_charged(gate: Gate) -> None:
    """Brute force over the cells: what was drawn for each row, by its own scale."""
    told(gate, request("r1", BY_A, epsilon=0.25))
    told(gate, request("r2", EVERYTHING, epsilon=0.5))
    told(gate, request("r3", QueryBlock(counting([Factor(("b",), np.array([0, 3]))])), epsilon=0.1))
    loss = np.zeros((3, 2))
    loss += 1 / gate.history.measurements[0].noise_scale
    loss += 1 / gate.history.measurements[1].noise_scale
    scale = gate.history.measurements[2].noise_scale
    row = gate.history.measurements[2].block.query.terms[0]
    loss[:, 1] += float(row.scale) / scale
    assert float(gate.budget().spent) * (1 + 1e-12) >= loss.max()
    assert loss.max() >= float(gate.budget().spent) - 4 / UNITS_PER_EPSILON
