"""What a table was charged for a random history, against every cell by itself, and the auditor.

Rows of both kinds of noise are bought and raised, some together; statistics with Gaussian noise are
bought; a server stops between a charge and its measurement, and another opens the ledger. The
definition, written down here: no cell has paid less than

    sum of weight * |coefficient|  +  sum, over every value drawn, of order * precision * square

and the table pays for the dearest cell, and once for the terms and rho of its statistics.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.auditor.noise import Terms, cost_units
from accountant.auditor.verify import verify
from accountant.cost.history_cost import CostState
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import QueryBlock
from cube.schema import Schema
from tests.accountant.cost.test_wide_axes import N_CITIES, N_LEVELS
from tests.accountant.cost.test_wide_axes import block as wide_block
from tests.accountant.cost.test_wide_axes import cells as wide_cells
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples
from tests.support.fakes import KnownTable
from tests.support.gaussian import RHO, TERMS, with_gaussian_noise

ANN = Payer("ann")
Sizes: TypeAlias = NDArray[np.object_]  # the magnitude of a coefficient, for every cell
SizesOf: TypeAlias = Callable[[QueryBlock], Sizes]

SMALL = Schema(
    table="cube",
    axes=tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES)),
    n_records_max=30,
)
WIDE = Schema(
    table="cube",
    axes=(
        IntegerAxis(name="amount", low=0, high=N_LEVELS - 1),
        IntegerAxis(name="city", low=0, high=N_CITIES - 1),
    ),
    n_records_max=30,
)


def sizes_of(block: QueryBlock) -> Sizes:
    """Each cell is in one row of a block at most."""
    rows = dense_rows(block)
    return np.array([int(sum(map(abs, column))) for column in zip(*rows, strict=True)], object)


@dataclass(frozen=True)
class Step:
    """Something that happens: rows bought, or raised, or a statistic; perhaps the server stops."""

    block: QueryBlock
    bits: int
    is_gaussian: bool
    is_raise: bool
    is_statistic: bool
    is_stopped: bool


def steps(some: st.SearchStrategy[QueryBlock]) -> st.SearchStrategy[list[Step]]:
    happens = st.integers(0, 3).map(lambda drawn: drawn == 0)
    one = st.builds(Step, some, st.integers(0, 9), st.booleans(), st.booleans(), happens, happens)
    return st.lists(one, min_size=2, max_size=7)


@dataclass
class History:
    """A table as it is bought from, and what every cell has paid by the definition."""

    schema: Schema
    sizes_of: SizesOf
    path: Path
    paid: Any = 0
    rho_units: int = 0
    has_gaussian: bool = False
    is_exact: bool = True
    n_paid: int = 0  # blocks, raises among them
    best: list[tuple[int, PlannedMeasurement]] = field(default_factory=list)  # what may be raised

    def opened(self, ledger: Ledger) -> Gate:
        """The gate, once what waited is measured."""
        records = np.zeros((3, len(self.schema.axes)), dtype=np.int64)
        source = KnownTable(self.schema, records)
        return open_table(ledger, self.schema, Fraction(10**40), source, SystemNoise())

    def live_through(self, wanted: Sequence[Step]) -> None:
        """Everything that happens, and after each step what was charged."""
        left = list(wanted)
        while left:
            with open_ledger(self.path) as ledger:
                gate = self.opened(ledger)
                self.compare(gate)
                while left:
                    step = left.pop(0)
                    payment = self.charge(gate, step)
                    self.compare(gate)
                    if step.is_stopped:
                        break
                    gate.complete(payment)
        with open_ledger(self.path) as ledger:
            gate = self.opened(ledger)
            self.compare(gate)
            assert not gate.history.pending
            self.audit(gate, ledger)

    def charge(self, gate: Gate, step: Step) -> int:
        """The number of the charge for a step."""
        if step.is_statistic:
            asked = with_gaussian_noise(step.block)
            self.rho_units += RHO.units
            self.has_gaussian = True
            return gate.charge([], ANN, epsilon_cap=None, statistics=asked).seq
        plan = self.planned(step, len(gate.measurements()))
        price = gate.price(plan)
        self.is_exact = self.is_exact and price.exact
        return gate.charge(plan, ANN, epsilon_cap=price.epsilon).seq

    def planned(self, step: Step, n_measured: int) -> list[PlannedMeasurement]:
        """One row of a kind, or a raise beside it of what was measured first."""
        plan = [row(step.block, step.bits, is_gaussian=step.is_gaussian)]
        if step.is_raise and self.best:
            place, before = self.best.pop(0)
            more = type(before.weight)(before.weight.units * 2 + step.bits)
            plan.append(PlannedMeasurement(before.block, more, place, before.terms))
            self.pay(plan[-1], more.units - before.weight.units)
        self.pay(plan[0], plan[0].weight.units)
        self.best += enumerate(plan, start=n_measured)
        return plan

    def pay(self, planned: PlannedMeasurement, units: int) -> None:
        """Add to every cell what so many units of a weight or precision cost it."""
        sizes = self.sizes_of(planned.block)
        self.n_paid += 1
        if planned.is_gaussian:
            self.has_gaussian = True
            rate = TERMS.order * Fraction(units, 2**100) * UNITS_PER_EPSILON
            cost = {size: math.ceil(rate * size**2) for size in set(sizes.ravel().tolist())}
            self.paid = self.paid + np.vectorize(cost.__getitem__, otypes=[object])(sizes)
        else:
            self.paid = self.paid + sizes * units

    def due(self) -> int:
        """What the dearest cell and the Gaussian noise beside have cost."""
        rows = int(np.max(self.paid))
        beside = cost_units(Terms(TERMS.delta, TERMS.order), self.rho_units)
        return rows + (beside if self.has_gaussian else 0)

    def compare(self, gate: Gate) -> None:
        """What was charged is what is due, or, where it is a bound, no less."""
        spent = gate.history.units_spent
        assert spent == self.due() if self.is_exact else spent >= self.due()

    def audit(self, gate: Gate, ledger: Ledger) -> None:
        """The auditor finds nothing wrong, and no less than is due, but for rounding.

        Of a polynomial it looks at the ends of pieces, where a row may round up by a unit less.
        """
        verdict = verify(ledger.entries())
        assert verdict.problem is None
        (found,) = verdict.tables
        due, spent = Fraction(self.due(), UNITS_PER_EPSILON), gate.budget().spent
        assert found.spent == spent
        assert found.recomputed >= due - Fraction(self.n_paid, UNITS_PER_EPSILON)
        if found.exact and self.is_exact:
            assert found.recomputed == due == spent


def row(block: QueryBlock, bits: int, *, is_gaussian: bool) -> PlannedMeasurement:
    """A row at a weight or precision that depends on a number of bits."""
    if is_gaussian:
        return PlannedMeasurement(block, Precision(3 * 2 ** (75 + bits) + 1), terms=TERMS)
    return PlannedMeasurement(block, Weight(5 * 2 ** (24 + bits) + 1))


NARROW = blocks(whole=True).filter(lambda block: not block.query.is_constant)
OF_PIECES = st.integers(0, 2**32).flatmap(
    lambda seed: st.booleans().map(
        lambda concave: wide_block(np.random.default_rng(seed), concave=concave)
    )
)


@settings(deadline=None, max_examples=examples(25))
@given(steps(NARROW))
def test_what_is_charged_on_a_small_cube_is_what_the_dearest_cell_costs(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Step]
) -> None:
    history = History(SMALL, sizes_of, tmp_path_factory.mktemp("small") / "ledger")
    history.live_through(wanted)
    assert history.is_exact


@settings(deadline=None, max_examples=examples(12))
@given(steps(OF_PIECES))
def test_where_coefficients_are_polynomials_no_cell_has_paid_less(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[Step]
) -> None:
    path = tmp_path_factory.mktemp("wide") / "ledger"
    History(WIDE, wide_cells, path).live_through(wanted)


def test_where_tables_are_too_small_for_the_maximum_no_cell_has_paid_less(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elimination in tables of six cells: boxes and bounds take its place."""
    monkeypatch.setattr(CostState.__init__, "__defaults__", (6, 1, None))
    n_bounds = 0

    @settings(deadline=None, max_examples=25)
    @given(steps(NARROW))
    def check(wanted: list[Step]) -> None:
        nonlocal n_bounds
        history = History(SMALL, sizes_of, tmp_path_factory.mktemp("bounds") / "ledger")
        history.live_through(wanted)
        n_bounds += not history.is_exact

    check()
    assert n_bounds
