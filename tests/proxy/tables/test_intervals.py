"""Ranges and boxes of more cells than are counted at once: what they cost, and what they say."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger, open_reader
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from cube.axis import IntegerAxis
from cube.measurement import UNITS_PER_EPSILON
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.posterior import Posterior
from planner.measuring.candidates import Strategy
from planner.measuring.weights import GaussianOffer
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise

TARGET = AccuracyTarget(half_width=1000.0, confidence=0.95)
LINE, PLANE = (100_000,), (300, 200)
Ends = tuple[tuple[int, int], ...]


def drawn(sizes: Sequence[int], n: int, seed: int) -> list[Ends]:
    """Ranges of every column, by their first and last levels."""
    rng = np.random.default_rng(seed)
    ends = [np.sort(rng.integers(0, size, size=(n, 2)), axis=1).tolist() for size in sizes]
    return [tuple((first, last) for first, last in one) for one in zip(*ends, strict=True)]


def block_of(sizes: Sequence[int], ends: Ends) -> QueryBlock:
    """The count of a product of ranges."""
    factors = []
    for name, size, (first, last) in zip("xy", sizes, ends, strict=False):
        places = np.arange(size)
        held = ((first <= places) & (places <= last)).astype(np.int64)
        factors.append(Factor((name,), held))
    return QueryBlock(counting(factors)).primitive[0]


def records_of(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Some records, more of them at low levels."""
    rng = np.random.default_rng(7)
    return np.stack([(size * rng.random(5_000) ** 2).astype(np.int64) for size in sizes], axis=1)


def truth(records: NDArray[np.int64], ends: Ends) -> int:
    """How many records lie in a product of ranges."""
    first, last = np.array(ends).T
    return int(((first <= records) & (records <= last)).all(axis=1).sum())


@contextmanager
def table_of(
    folder: Path,
    sizes: Sequence[int],
    noise: NoiseSource,
    strategy: Strategy = Strategy.AUTO,
    gaussian: GaussianOffer | None = None,
) -> Iterator[ServedTable]:
    """A table of integer columns with so many levels."""
    axes = tuple(
        IntegerAxis(name=name, low=0, high=size - 1)
        for name, size in zip("xy", sizes, strict=False)
    )
    schema = Schema(table="t", axes=axes, n_records_max=100_000)
    folder.mkdir(exist_ok=True)
    with open_ledger(folder / "t.ledger") as ledger:
        source = KnownTable(schema, records_of(sizes))
        gate = open_table(ledger, schema, Fraction(10), source, noise)
        yield ServedTable(schema, TARGET, gate, strategy, gaussian=gaussian)


def answered(table: ServedTable, block: QueryBlock) -> Posterior:
    """The answer to a row, bought if need be."""
    ((row,),) = table.acquire([Wanted(block, TARGET)], Payer("me"), None).known
    assert isinstance(row, Posterior)
    return row


def is_hierarchy(block: QueryBlock) -> bool:
    """Whether a block counts intervals."""
    return block.n_rows > 1


@pytest.mark.parametrize(
    ("sizes", "strategy", "n"), [(LINE, Strategy.AUTO, 30), (PLANE, Strategy.DYADIC, 8)]
)
def test_without_noise_every_answer_is_the_count(
    tmp_path: Path, sizes: tuple[int, ...], strategy: Strategy, n: int
) -> None:
    records = records_of(sizes)
    with table_of(tmp_path, sizes, NoNoise(), strategy) as table:
        for ends in drawn(sizes, n, seed=1):
            row = answered(table, block_of(sizes, ends))
            assert row.value == pytest.approx(truth(records, ends), abs=1e-6)
            assert row.half_width(TARGET.confidence) <= TARGET.half_width
        assert any(is_hierarchy(one.block) for one in table.gate.measurements())


@pytest.mark.parametrize(
    ("sizes", "strategy", "n"), [(LINE, Strategy.AUTO, 30), (PLANE, Strategy.DYADIC, 8)]
)
def test_the_auditor_agrees(
    tmp_path: Path, sizes: tuple[int, ...], strategy: Strategy, n: int
) -> None:
    with table_of(tmp_path, sizes, SystemNoise(), strategy) as table:
        for ends in drawn(sizes, n, seed=2):
            answered(table, block_of(sizes, ends))
        spent = table.budget().spent
        assert any(is_hierarchy(one.block) for one in table.gate.measurements())
    verdict = verify(open_reader(str(tmp_path / "t.ledger")).entries_after(0))
    assert verdict.problem is None
    (audited,) = verdict.tables
    assert audited.spent == spent


def test_many_ranges_cost_much_less_than_one_by_one(tmp_path: Path) -> None:
    spent = {}
    for strategy in (Strategy.AUTO, Strategy.QUERY):
        with table_of(tmp_path / strategy, LINE, NoNoise(), strategy) as table:
            for ends in drawn(LINE, 80, seed=2):
                answered(table, block_of(LINE, ends))
            spent[strategy] = table.budget().spent
    assert spent[Strategy.AUTO] < Fraction(9, 10) * spent[Strategy.QUERY]


def test_what_is_charged_is_the_largest_cost_of_a_level(tmp_path: Path) -> None:
    with table_of(tmp_path, LINE, NoNoise()) as table:
        for ends in drawn(LINE, 40, seed=3):
            answered(table, block_of(LINE, ends))
        cost = np.zeros(LINE, dtype=np.int64)
        replaced = {one.supersedes for one in table.gate.measurements()}
        for place, one in enumerate(table.gate.measurements()):
            if place in replaced:
                continue
            if is_hierarchy(one.block):
                cost += one.weight.units
            else:
                (term,) = one.block.query.terms
                (factor,) = term.factors
                cost += one.weight.units * np.abs(factor.values)
        assert table.budget().spent == Fraction(int(cost.max()), UNITS_PER_EPSILON)


def test_with_a_delta_intervals_and_rests_may_be_gaussian(tmp_path: Path) -> None:
    offer = GaussianOffer(Fraction(1, 10**9), Fraction(1), is_declared=True)
    records = records_of(LINE)
    with table_of(tmp_path, LINE, NoNoise(), Strategy.DYADIC, offer) as table:
        for ends in drawn(LINE, 10, seed=4):
            row = answered(table, block_of(LINE, ends))
            assert row.value == pytest.approx(truth(records, ends), abs=1e-6)
            assert row.half_width(TARGET.confidence) <= TARGET.half_width
        kinds = {(is_hierarchy(one.block), one.is_gaussian) for one in table.gate.measurements()}
        assert (True, True) in kinds
