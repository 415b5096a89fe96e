"""From estimates of a measured row to posteriors of the query that is a multiple of it.

Scales are simplified: they are rounded up, so that equal noise has equal numbers and laws are
shared, and dust (scales as small as rounding) is removed. Both can only widen an interval.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.measurement import Measurement
from cube.query import LinearQuery
from inference.blue.partition_reader import Reading
from inference.noise_law.error_terms import ErrorTerms
from inference.noise_law.law import NoiseLaw, law_of_noise
from inference.posterior import NotEstimable, Posterior, RowEstimate

SCALE_BITS = 30  # scales are rounded up to this many bits: a billionth wider, and laws are shared
SCALE_MIN = 1e-13  # relative to the largest; less is rounding and needs no term of its own


class Scaling:
    """From estimates of a measured row to posteriors of the query that is a multiple of it."""

    def __init__(self, block: QueryBlock, n_records_max: int) -> None:
        _, multiplier = block.primitive
        self.multiplier = float(multiplier)
        self._constant = float(block.query.constant)
        low, high = coefficient_range(block.query)
        zero = Fraction(0)
        # The answer lies in this range, as no table has more records than the public maximum.
        self._low = float(min(low, zero) * n_records_max + block.query.constant)
        self._high = float(max(high, zero) * n_records_max + block.query.constant)

    def law(self, scales: NDArray[np.float64]) -> NoiseLaw:
        """The law of the multiple's noise, from the scales in the measured row's estimate."""
        return law_of_noise(rounded_up(abs(self.multiplier) * scales))

    def posterior(
        self, value: float, law: NoiseLaw, widening: float, terms: ErrorTerms
    ) -> Posterior:
        """The posterior of one row.

        Parameters
        ----------
        value : float
            The estimate of the measured row.
        law : NoiseLaw
            The law of the multiple; rows with the same noise share it.
        widening : float
            A certain bound on all other errors in `value`.
        terms : ErrorTerms
            The noises in `value`.
        """
        return Posterior(
            value=self.multiplier * value + self._constant,
            law=law,
            lattice_widening=abs(self.multiplier) * widening,
            low=self._low,
            high=self._high,
            terms=terms.times(self.multiplier),
        )

    def of_own(self, measurement: Measurement, place: int) -> tuple[Posterior, ...]:
        """From a measurement of the very same rows, at its place in the history."""
        law = self.law(np.array([measurement.noise_scale]))
        places, one = np.array([place]), np.ones(1)
        every = np.arange(measurement.block.n_rows)[:, np.newaxis]
        step = measurement.lattice_step
        return tuple(
            self.posterior(float(value), law, step, ErrorTerms(places, row, one))
            for value, row in zip(measurement.values, every, strict=True)
        )

    def constant(self) -> Posterior:
        """The posterior of a query without coefficients: its constant."""
        return Posterior(value=self._constant, law=law_of_noise(np.empty(0)))


def without_dust(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scales without dust; the sum of the dust is added to the largest scale.

    >>> without_dust(np.array([1e-15, 2.0, 0.0, 1.0]))
    array([2., 1.])
    """
    return split_dust(scales)[1]


def split_dust(scales: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The places of the scales that are not dust, and the result of `without_dust`.

    This never narrows an interval: of two sums of identically distributed symmetric log-concave
    variables, the one whose scales majorize the other's is less peaked (Proschan, "Peakedness of
    distributions of convex combinations", Annals of Mathematical Statistics 36, 1965).
    """
    matters = scales > SCALE_MIN * scales.max(initial=0.0)
    (places,) = matters.nonzero()
    kept: NDArray[np.float64] = scales[places]
    if kept.size:
        kept[kept.argmax()] += scales[~matters].sum()
    return places, kept


def rounded_up(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scales rounded up to a few bits, so that equal noise has equal numbers.

    A larger scale makes ``|X|`` stochastically larger (its law is symmetric and unimodal), so the
    rounding can only widen an interval.
    """
    mantissa, exponent = np.frexp(scales)
    rounded = np.ldexp(np.ceil(np.ldexp(mantissa, SCALE_BITS)), exponent - SCALE_BITS)
    return np.asarray(rounded, dtype=np.float64)


def coefficient_range(query: LinearQuery) -> tuple[Fraction, Fraction]:
    """Bounds on the coefficients of a query's cells, by interval arithmetic on its factors."""
    low = high = Fraction(0)
    for term in query.terms:
        ends = [term.scale, term.scale]
        for factor in term.factors:
            products = [end * value for end in ends for value in factor.ends]
            ends = [min(products), max(products)]
        low, high = low + ends[0], high + ends[1]
    return low, high


def posteriors_of(reading: Reading, scaling: Scaling) -> tuple[RowEstimate, ...]:
    """The posterior of each row that the groups add up to."""
    n_rows, size = reading.is_covered.size, np.abs(reading.coefficient)
    values = np.bincount(reading.row, reading.coefficient * reading.value, n_rows)
    widenings = np.bincount(reading.row, size * reading.lattice_step, n_rows)
    order = np.argsort(reading.row, kind="stable")
    ends = np.searchsorted(reading.row[order], np.arange(n_rows + 1)).tolist()
    scales = (size * reading.noise_scale)[order]
    places, rows = reading.noise_place[order], reading.noise_row[order]
    coefficients = reading.coefficient[order]
    result: list[RowEstimate] = []
    for row, is_covered in enumerate(reading.is_covered):
        if not is_covered:
            result.append(NotEstimable("no counted groups add up to it"))
            continue
        used = slice(ends[row], ends[row + 1])
        terms = ErrorTerms(places[used], rows[used], coefficients[used])
        law = scaling.law(scales[used])
        result.append(scaling.posterior(float(values[row]), law, float(widenings[row]), terms))
    return tuple(result)
