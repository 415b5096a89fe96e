"""Purchases and their results: one measurement of the rows of each charge.

A charge that was taken over is measured in its latest turn, so that nobody can choose between
draws.

Finer noise for a row that was measured before (a raise) is on the same lattice, smaller, and made
once: see proofs/refinement.md. A raise with Gaussian noise is another value of the row, with noise
of its own: only what the two cost together is limited.
"""

from collections.abc import Callable
from dataclasses import dataclass

from accountant.auditor.bodies import Bought, Charge, Measured, TakenOver
from accountant.auditor.gaussian import (
    RowNoise,
    Terms,
    check_gaussian,
    check_row_noise,
    price_per_square,
)
from accountant.auditor.noises import UNCLAMPED_MAX, Noise, check_noise, refined_by
from accountant.auditor.prices import Price
from accountant.auditor.rows import LevelArray, Share
from accountant.auditor.statistics import Choice, Distance, Gaussian, UnitCount
from accountant.auditor.tables import Row
from accountant.auditor.unit_counts import UnitCounts
from accountant.auditor.unit_rows import ONE_ROW, UnitRows
from accountant.auditor.wrong import Wrong
from cube.measurement import PRECISION_UNITS_MAX


@dataclass(frozen=True, slots=True)
class Measurement:
    """A block that was measured; with Gaussian noise, at a precision in all of its values."""

    seq: int
    bought: Bought
    may_be_clamped: bool
    precision_units: int = 0


class Purchases:
    """The charges and measurements of one table.

    Parameters
    ----------
    unit : UnitRows
        The most rows of one unit: what a row costs counts this many times.

    Attributes
    ----------
    pending : dict of int to Charge
        Charges without a measurement, by their numbers.
    measurements : list of Measurement
        Of the present generation, in the order of purchase; raises name them by their places.
    earlier : list of Measurement
        Of all earlier generations.
    completed : list of int
        The numbers of the measurement entries, ascending.
    unit_counts : UnitCounts
        The counts of units, which are no rows.
    """

    def __init__(self, unit: UnitRows = ONE_ROW) -> None:
        self._unit = unit
        self.pending: dict[int, Charge] = {}
        self.measurements: list[Measurement] = []
        self.earlier: list[Measurement] = []
        self.completed: list[int] = []
        self.unit_counts = UnitCounts(unit.n_rows)
        self._raised: set[int] = set()
        self._turns: dict[int, int] = {}
        self._n_levels: dict[str, int] = {}

    def charge(self, seq: int, charge: Charge) -> tuple[Row, ...]:
        """The rows paid for, with the weights that were added; Wrong if they are not valid."""
        if not (charge.bought or charge.statistics):
            raise Wrong("a charge for nothing")
        rows = [self._row(bought, charge.terms) for bought in charge.bought]
        for statistic in charge.statistics:
            for array in statistic.arrays:
                self._check_levels(array)
            if isinstance(statistic, Gaussian):
                check_gaussian(statistic.noise, statistic.sensitivity)
            elif not isinstance(statistic, UnitCount):
                rows.append(self._cost_of(statistic))
        counts = [one for one in charge.statistics if isinstance(one, UnitCount)]
        if counts:
            self.unit_counts.charge(seq, counts)
        self.pending[seq] = charge
        return tuple(rows)

    def drop(self, is_of: Callable[[Share], bool]) -> None:
        """Forget measurements of rows that have changed, and give up charges that wait for them."""
        for place, one in enumerate(self.measurements):
            if is_of(one.bought.block.share):
                self._raised.add(place)  # nothing is raised from it any more
        self.pending = {
            seq: charge
            for seq, charge in self.pending.items()
            if not charge.statistics and not any(is_of(one.block.share) for one in charge.bought)
        }

    def begin_anew(self) -> None:
        """Go on with other data: nothing is raised from before, and what waits is given up."""
        self.earlier += self.measurements
        self.measurements, self._raised, self.pending, self._turns = [], set(), {}, {}
        self.unit_counts.begin_anew()

    def take_over(self, seq: int, body: TakenOver) -> None:
        """Begin a new turn to measure a charge; Wrong if the charge is not pending."""
        if body.charge not in self.pending:
            raise Wrong(f"{body.charge} taken over, which is not a pending charge")
        self._turns[body.charge] = seq

    def measure(self, seq: int, body: Measured) -> None:
        """Apply the measurement of one charge; Wrong if it does not fit the charge."""
        charge = self.pending.get(body.charge)
        if charge is None:
            raise Wrong(f"a measurement under {body.charge}, which is not a pending charge")
        if body.turn != self._turns.pop(body.charge, 0):
            raise Wrong("a measurement of a turn that was taken over")
        if [len(values) for values in body.values] != [one.block.n_rows for one in charge.bought]:
            raise Wrong("a measurement without exactly one value for each charged row")
        self._measure_statistics(charge, body)
        del self.pending[body.charge]
        self.completed.append(seq)
        for bought, values in zip(charge.bought, body.values, strict=True):
            may_be_clamped = any(abs(value) > UNCLAMPED_MAX for value in values)
            precision = self._precision(bought)
            self.measurements.append(Measurement(seq, bought, may_be_clamped, precision))

    def _measure_statistics(self, charge: Charge, body: Measured) -> None:
        """Apply the released numbers of a charge's statistics."""
        if len(body.released) != sum(one.n_released for one in charge.statistics):
            raise Wrong("a measurement without exactly one number for each statistic, or row of it")
        place = 0
        for statistic in charge.statistics:
            numbers = body.released[place : place + statistic.n_released]
            place += statistic.n_released
            if isinstance(statistic, UnitCount):
                self.unit_counts.measure(statistic, numbers)
            else:
                for number in numbers:
                    statistic.check(number)

    def _row(self, bought: Bought, terms: Terms | None) -> Row:
        for array in bought.block.share.arrays:
            self._check_levels(array)
        earlier = self._raised_measurement(bought)
        noise = bought.noise
        if isinstance(noise, RowNoise):
            return Row(bought.block.share, self._price_of_another(bought, noise, terms))
        check_noise(noise)
        if earlier is None:
            return Row(bought.block.share, self._price(noise.weight_units))
        before = earlier.bought.noise
        if not isinstance(before, Noise):
            raise Wrong("a measurement raised with noise of another kind")
        added = refined_by(noise, before, may_be_clamped=earlier.may_be_clamped)
        return Row(bought.block.share, self._price(added))

    def _cost_of(self, statistic: Distance | Choice) -> Row:
        """The cost of a statistic for each cell, as a row."""
        if isinstance(statistic, Distance):
            check_noise(statistic.noise)
        return Row(statistic.share, self._price(statistic.weight_units))

    def _price(self, weight_units: int) -> Price:
        """What a weight costs a cell."""
        return Price(self._unit.times * weight_units)

    def _price_of_another(self, bought: Bought, noise: RowNoise, terms: Terms | None) -> Price:
        """The price of a value with Gaussian noise, the first of its row or a further one."""
        check_row_noise(noise)
        if self._precision(bought) > PRECISION_UNITS_MAX:
            raise Wrong(f"a measurement raised to a precision of {self._precision(bought)} units")
        if terms is None:
            raise Wrong("Gaussian noise without terms")
        return price_per_square(noise, terms, self._unit.times_squared(bought.block))

    def _precision(self, bought: Bought) -> int:
        """The precision of the row so far, with this value of it; 0 for Laplace noise."""
        if not isinstance(bought.noise, RowNoise):
            return 0
        place = bought.raised_from
        before = 0 if place is None else self.measurements[place].precision_units
        return before + bought.noise.precision_units

    def _raised_measurement(self, bought: Bought) -> Measurement | None:
        place = bought.raised_from
        if place is None:
            return None
        if place >= len(self.measurements):
            raise Wrong("a measurement raised that was never made")
        if place in self._raised:
            raise Wrong("a measurement raised twice")
        earlier = self.measurements[place]
        if earlier.bought.block is not bought.block:
            raise Wrong("a measurement raised for other rows than it is of")
        if type(earlier.bought.noise) is not type(bought.noise):
            raise Wrong("a measurement raised with noise of another kind")
        self._raised.add(place)
        return earlier

    def _check_levels(self, array: LevelArray) -> None:
        for axis, n_levels in zip(array.axes, array.shape, strict=True):
            if self._n_levels.setdefault(axis, n_levels) != n_levels:
                raise Wrong(f"{axis} has {self._n_levels[axis]} levels before and {n_levels} here")
