"""Projected answers: as by brute force over whole tables, with bounded memory, a step at a time."""

import tracemalloc
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.pace import paced
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import TooSlow
from inference.marginals.error_law import cell_coefficients
from inference.marginals.projection import projected
from inference.marginals.table import NoisyTable
from local_dp.campaign import Attribute, planned_campaign
from local_dp.channels.channel import Floats
from local_dp.estimates import shares, together
from local_dp.estimates.collection import CollectionEstimates, NotCovered, coefficients_of
from local_dp.estimates.laws import answers, are_enough
from local_dp.estimates.shares import Tally
from local_dp.estimates.together import ScopedTable, TablesTogether
from tests.support.answering import answered
from tests.support.steps import Counted

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
PAIRS = tuple(combinations(SIZES, 2))
TRIPLES = (("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d"))


def collected(
    scopes: Sequence[tuple[str, ...]],
    n: int,
    *,
    sizes: dict[str, int] = SIZES,
    epsilon: int = 2,
    uneven: bool = False,
) -> CollectionEstimates:
    """Respondents with skewed attributes, each asked about one of the scopes."""
    campaign = planned_campaign(
        "c",
        [Attribute(name, tuple(range(size))) for name, size in sizes.items()],
        [(scope,) for scope in scopes],
        epsilon_units=epsilon * UNITS_PER_EPSILON,
    )
    rng = np.random.default_rng(n)
    weights = np.arange(1.0, len(scopes) + 1) if uneven else np.ones(len(scopes))
    asked = rng.choice(len(scopes), n, p=weights / weights.sum())
    rows = {name: (rng.random(n) ** 2 * size).astype(np.int64) for name, size in sizes.items()}
    tallies: dict[int, list[Tally]] = {}
    for place, scope in enumerate(scopes):
        who = asked == place
        cells = np.ravel_multi_index([rows[name][who] for name in scope], campaign.sizes(scope))
        tallies[place] = [answered(campaign.combinations[place].channel, cells, rng)]
    return CollectionEstimates(campaign, tallies, n)


def by_brute_force(
    tables: Sequence[ScopedTable], scope: tuple[str, ...], coefficients: Floats
) -> tuple[Floats, Floats, Floats]:
    """Values and moments from whole tables, a projection for each query."""
    noisy = [
        NoisyTable(one.scope, one.estimate.shares.reshape(one.shape), one.estimate.typical_variance)
        for one in tables
    ]
    holder = next(at for at, one in enumerate(tables) if set(scope) <= set(one.scope))
    widened = tables[holder].widened(scope, coefficients)
    values = projected(noisy, total=1.0)[holder].ravel() @ widened
    variances, thirds = np.zeros(len(values)), np.zeros(len(values))
    for row in range(len(values)):
        summed = widened[:, row].reshape(tables[holder].shape)
        found = cell_coefficients(noisy, holder, summed, is_total_public=True)
        for one, cells in zip(tables, found, strict=True):
            variance, third = one.estimate.moments(cells.reshape(-1, 1))
            variances[row] += variance[0]
            thirds[row] += third[0]
    return values, variances, thirds


def blocks() -> list[QueryBlock]:
    """Groups, sums within conditions, and groups that are no product."""
    rng = np.random.default_rng(5)
    some = Factor(("a", "b"), rng.integers(-3, 4, (3, 4)))
    only = Factor(("b",), np.array([1, 0, 2, 0]))
    return [
        QueryBlock(counting(), Partition(("a", "b"), np.arange(12).reshape(3, 4))),
        QueryBlock(counting(), Partition(("b",), np.arange(4))),
        QueryBlock(counting([some]), Partition(("b",), np.array([0, 1, -1, 0]))),
        QueryBlock(counting([only]), Partition(("a",), np.arange(3))),
        QueryBlock(counting(), Partition(("b", "d"), rng.integers(-1, 6, (4, 5)))),
        QueryBlock(counting([some])),
    ]


@pytest.mark.parametrize("block", blocks(), ids=range(6))
@pytest.mark.parametrize("scopes", [PAIRS, TRIPLES, (*PAIRS, *TRIPLES, ("b",))], ids=len)
@pytest.mark.parametrize("at_once", [1, 2**20])
def test_answers_are_those_of_whole_tables(
    block: QueryBlock,
    scopes: Sequence[tuple[str, ...]],
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows one at a time or all at once, of tables of different size and numbers of answers."""
    monkeypatch.setattr(together, "N_PROJECTED_AT_ONCE", at_once)
    for module in (together, shares):
        monkeypatch.setattr(module, "N_ENTRIES_AT_ONCE", at_once)
    estimates = collected(scopes, 3000, uneven=True)
    coefficients, _ = coefficients_of(block, SIZES)
    tables = [one for one in estimates.tables.values() if set(one.scope).intersection(block.scope)]
    found = TablesTogether(block.scope, tables)
    values, variances, thirds = by_brute_force(tables, block.scope, coefficients)
    assert found.values(coefficients) == pytest.approx(values, rel=1e-9, abs=1e-12)
    assert found.moments(coefficients)[0] == pytest.approx(variances, rel=1e-9)
    assert found.moments(coefficients)[1] == pytest.approx(thirds, rel=1e-9)


@pytest.mark.parametrize("n", [60, 2000, 20_000])
def test_an_answer_is_projected_where_the_normal_law_is_near_and_alone_elsewhere(n: int) -> None:
    estimates = collected(PAIRS, n)
    block = blocks()[0]
    coefficients, _ = coefficients_of(block, SIZES)
    tables = [one for one in estimates.tables.values() if {"a", "b"}.intersection(one.scope)]
    values, variances, thirds = by_brute_force(tables, block.scope, coefficients)
    enough = are_enough(variances, thirds)
    assert enough.any() == (n > 60)
    assert enough.all() == (n == 20_000)
    (own,) = (one for one in tables if one.scope == ("a", "b"))
    alone = answers(own.estimate, coefficients, scale=n)
    for place, one in enumerate(estimates.answer(block)):
        expected = n * values[place] if enough[place] else alone[place].value
        assert one.value == pytest.approx(expected, rel=1e-9)
        width = n * variances[place] ** 0.5 if enough[place] else alone[place].law.gaussian
        assert one.law.gaussian == pytest.approx(width, rel=1e-9)


def wide(n_attributes: int) -> tuple[CollectionEstimates, QueryBlock]:
    """All pairs of attributes of 20 levels, and the groups of two of them."""
    sizes = {f"a{number:02}": 20 for number in range(n_attributes)}
    estimates = collected(tuple(combinations(sizes, 2)), 2000, sizes=sizes, epsilon=1)
    groups = Partition(("a00", "a01"), np.arange(400).reshape(20, 20))
    return estimates, QueryBlock(counting(), groups)


def peak_of(n_attributes: int) -> int:
    estimates, block = wide(n_attributes)
    _ = estimates.tables, [one.shares for one in estimates.estimates.values()]
    tracemalloc.start()
    try:
        estimates.answer(block)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_tables() -> None:
    """9 tables and 33: whole matrices of cells by rows would be 1.3 MB for each of them."""
    few, many = peak_of(6), peak_of(18)
    assert many < few + 4 * 2**20


def test_work_ends_between_two_tables_and_two_rows() -> None:
    """There is a step for each of the 17 tables, and one for each of the 400 rows at least."""
    estimates, block = wide(10)
    pace = Counted(10**6)
    with paced(pace):
        estimates.answer(block)
    n_steps = 10**6 - pace.n_left
    assert n_steps > 417
    for n_allowed in (0, 200, n_steps - 1):
        with paced(Counted(n_allowed)), pytest.raises(TooSlow):
            estimates.answer(block)


def test_places_of_tables_that_have_all_attributes_are_counted() -> None:
    """What drawing tables would take is known before any is made."""
    estimates = collected((("a", "b"), ("a", "b", "c"), ("b", "d")), 500)
    channels = [one.channel for one in estimates.campaign.combinations]
    assert estimates.n_places(("a", "b")) == sum(one.n_tallies for one in channels[:2])
    assert estimates.n_places(("d",)) == channels[2].n_tallies
    with pytest.raises(NotCovered):
        estimates.n_places(("c", "d"))
