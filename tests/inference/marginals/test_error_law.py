"""The law of a reconciled cell's error: against dense algebra, closed variances and simulation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.query import Scope
from inference.marginals.error_law import CellError, MeasuredTable, cell_error
from inference.marginals.projection import projected, standard_errors
from tests.support.examples import examples
from tests.support.noisy_tables import (
    Floats,
    flat,
    marginal_matrix,
    noisy_tables,
    projection_matrix,
    shape_of,
)


@st.composite
def measured_tables(draw: st.DrawFn) -> list[MeasuredTable]:
    found = draw(noisy_tables())
    scales = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=5, max_size=5))
    summed = draw(st.lists(st.sampled_from([1, 2, 7]), min_size=5, max_size=5))
    return [
        MeasuredTable(table.scope, table.values, scale, n, scale / 64)
        for table, scale, n in zip(found, scales, summed, strict=False)
    ]


def dense_scales(tables: Sequence[MeasuredTable], scope: Scope, *, is_total_public: bool) -> Floats:
    """The scales of the first cell of `scope`, from the projection written out as a matrix."""
    noisy = [table.noisy for table in tables]
    matrix = projection_matrix(noisy, is_total_public=is_total_public)
    place = min(
        (at for at, one in enumerate(tables) if set(scope).issubset(one.scope)),
        key=lambda at: tables[at].values.size,
    )
    starts = np.cumsum([0, *(table.values.size for table in tables)])
    cell = marginal_matrix(tables[place].scope, scope)[0]
    row = cell @ matrix[starts[place] : starts[place + 1]]
    parts = []
    for at, table in enumerate(tables):
        own = np.abs(row[starts[at] : starts[at + 1]]) * table.scale
        parts.append(np.repeat(own, table.n_summed))
    return np.concatenate(parts)


def large(scales: Floats) -> Floats:
    return np.sort(scales[scales > 1e-7])


@settings(max_examples=examples(60))
@given(measured_tables(), st.booleans())
def test_the_scales_are_those_of_the_projection_written_out(
    tables: list[MeasuredTable], is_total_public: bool
) -> None:
    for table in tables:
        found = cell_error(tables, table.scope, total=50.0 if is_total_public else None)
        expected = dense_scales(tables, table.scope, is_total_public=is_total_public)
        assert large(found.law.scales) == pytest.approx(large(expected), abs=1e-9)


@settings(max_examples=examples(60))
@given(measured_tables(), st.booleans())
def test_the_variance_is_that_of_the_closed_form(
    tables: list[MeasuredTable], is_total_public: bool
) -> None:
    total = 50.0 if is_total_public else None
    scopes = [table.scope for table in tables]
    expected = standard_errors([table.noisy for table in tables], scopes, total=total)
    found = [cell_error(tables, scope, total=total).standard_error for scope in scopes]
    assert found == pytest.approx(expected, abs=1e-7)


def test_every_cell_of_a_table_has_one_error_law_and_the_interval_covers() -> None:
    scopes: tuple[Scope, ...] = (("a", "b"), ("b", "c"), ("a",))
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 50, shape_of(("a", "b", "c"))).astype(np.float64)
    sums = {("a", "b"): truth.sum(2), ("b", "c"): truth.sum(0), ("a",): truth.sum((1, 2))}
    scales = (4.0, 7.0, 2.0)
    empty = [
        MeasuredTable(one, sums[one] * 0, scale) for one, scale in zip(scopes, scales, strict=True)
    ]
    widths = [cell_error(empty, one).half_width(0.9) for one in scopes]
    n_runs, held = 4000, [np.zeros(sums[one].shape) for one in scopes]
    for _ in range(n_runs):
        noisy = [
            MeasuredTable(one, sums[one] + rng.laplace(scale=scale, size=sums[one].shape), scale)
            for one, scale in zip(scopes, scales, strict=True)
        ]
        for place, values in enumerate(projected([table.noisy for table in noisy])):
            held[place] += np.abs(values - sums[scopes[place]]) <= widths[place]
    # Of 4000 runs, the share that a .9 interval covers has a standard deviation of .0047.
    assert (np.abs(flat(held) / n_runs - 0.9) < 0.02).all()


def test_one_table_alone_has_the_law_of_its_own_noise() -> None:
    table = MeasuredTable(("a",), np.zeros(3), 2.0, lattice_step=0.25)
    found = cell_error([table], ("a",))
    assert found.law.scales.tolist() == [2.0]
    assert found.half_width(0.95) == pytest.approx(2 * np.log(20) + 0.25)
    assert cell_error([table], ()).law.scales.tolist() == [2.0, 2.0, 2.0]


def test_a_public_total_is_known_exactly() -> None:
    table = MeasuredTable(("a",), np.zeros(3), 2.0)
    assert cell_error([table], (), total=9.0).half_width(0.95) == pytest.approx(0, abs=1e-9)
    free, tied = cell_error([table], ("a",)), cell_error([table], ("a",), total=9.0)
    assert tied.standard_error == pytest.approx(free.standard_error * np.sqrt(2 / 3))


def test_sums_keep_count_of_what_was_added() -> None:
    table = MeasuredTable(("a", "b"), np.arange(6.0).reshape(3, 2), 2.0, lattice_step=0.5)
    summed = table.onto(("a",))
    assert summed.values.tolist() == [1.0, 5.0, 9.0]
    assert (summed.n_summed, summed.scale, summed.lattice_step) == (2, 2.0, 0.5)
    assert summed.noisy.variance == 2 * table.noisy.variance
    assert cell_error([summed], ("a",)).half_width(0.9) == pytest.approx(
        cell_error([table], ("a",)).half_width(0.9)
    )


def test_what_no_table_covers_has_no_error_and_noise_has_a_size() -> None:
    table = MeasuredTable(("a",), np.zeros(3), 2.0)
    with pytest.raises(ValueError, match="no table covers"):
        cell_error([table], ("b",))
    for bad in (0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="needs noise"):
            MeasuredTable(("a",), np.zeros(3), bad)
    assert isinstance(cell_error([table], ("a",)), CellError)


@settings(max_examples=examples(60))
@given(measured_tables(), st.booleans(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_tables_with_gaussian_noise_make_the_gaussian_part(
    tables: list[MeasuredTable], is_total_public: bool, kinds: list[bool]
) -> None:
    mixed = [replace(one, is_gaussian=kind) for one, kind in zip(tables, kinds, strict=False)]
    total = 50.0 if is_total_public else None
    for table in mixed:
        found, pure = (cell_error(some, table.scope, total=total) for some in (mixed, tables))
        assert found.standard_error == pytest.approx(pure.standard_error, rel=1e-9, abs=1e-9)
        assert found.lattice_widening == pure.lattice_widening
        expected = dense_scales(mixed, table.scope, is_total_public=is_total_public)
        sizes = [one.values.size * one.n_summed for one in mixed]
        is_gaussian = np.repeat([one.is_gaussian for one in mixed], sizes)
        assert large(found.law.scales) == pytest.approx(large(expected[~is_gaussian]), abs=1e-9)
        variance = 2 * float(np.square(expected[is_gaussian]).sum())
        assert found.law.gaussian == pytest.approx(np.sqrt(variance), abs=1e-7)


def test_an_interval_of_tables_with_both_kinds_of_noise_covers() -> None:
    table = MeasuredTable(("a",), np.zeros(3), 2.0)
    other = MeasuredTable((), np.array(0.0), 1.0, is_gaussian=True)
    rng = np.random.default_rng(7)
    widths = [cell_error([table, other], scope).half_width(0.9) for scope in (("a",), ())]
    n_runs, held = 4000, np.zeros(2)
    for _ in range(n_runs):
        noisy = [
            replace(table, values=rng.laplace(scale=2.0, size=3)),
            replace(other, values=np.array(rng.normal(scale=np.sqrt(2)))),
        ]
        cells, total = projected([one.noisy for one in noisy])
        held += [abs(cells[0]) <= widths[0], abs(float(total)) <= widths[1]]
    # Of 4000 runs, the share that a .9 interval covers has a standard deviation of .0047.
    assert (np.abs(held / n_runs - 0.9) < 0.02).all()
