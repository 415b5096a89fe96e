"""Posteriors of a query that is a multiple of a measured row, from the estimates of that row.

Scales are simplified: they are rounded up, so that equal noise has equal numbers and laws are
shared, and dust (scales as small as rounding) is removed. Both can only widen an interval.

Noise has two kinds. Its scale is that of Laplace noise of the same variance, whatever its kind.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cube.measurement import Measurement
from cube.query import LinearQuery, QueryBlock
from inference.block_estimates import BlockPosteriors, RowEstimates, unknown
from inference.blue import Reading
from inference.error_terms import ErrorTerms
from inference.noise_law import NoiseLaw, law_of_noise, standard_deviation
from inference.posterior import Posterior

SCALE_BITS = 30  # scales are rounded up to this many bits: a billionth wider, and laws are shared
SCALE_MIN = 1e-13  # relative to the largest; less is rounding and needs no term of its own
SUM_MARGIN = 2.0**-40  # relative: above the rounding of a sum of variances
# The scale of Laplace noise that is nowhere more peaked than Gaussian noise of deviation 1.
LAPLACE_OVER_DEVIATION = math.sqrt(math.pi / 2)
EXPONENTIAL_MAX = 746.0  # exceeded with a probability below 2**-1074, the smallest float


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

    def law(self, scales: NDArray[np.float64], gaussian: float = 0.0) -> NoiseLaw:
        """The law of the multiple's noise, from the noise in the measured row's estimate.

        Parameters
        ----------
        scales : (n,) ndarray of float64
            The scales of the Laplace noises.
        gaussian : float
            The standard deviation of all Gaussian noises together.
        """
        size = abs(self.multiplier)
        if gaussian:
            gaussian = float(rounded_up(np.array(size * gaussian * (1 + SUM_MARGIN))))
        return law_of_noise(rounded_up(size * scales), gaussian=gaussian)

    def law_of(self, scales: NDArray[np.float64], is_gaussian: NDArray[np.bool_]) -> NoiseLaw:
        """The same, from the scale and kind of each noise, (n,) and (n,)."""
        if not is_gaussian.any():
            return self.law(scales)
        return self.law(scales[~is_gaussian], standard_deviation(scales[is_gaussian]))

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

    def posteriors(  # noqa: PLR0913, PLR0917 - the arrays of `BlockPosteriors`
        self,
        values: NDArray[np.float64],
        laws: Sequence[NoiseLaw],
        law_of: NDArray[np.int64],
        widenings: NDArray[np.float64],
        terms: ErrorTerms,
        ends: NDArray[np.int64],
    ) -> BlockPosteriors:
        """The posteriors of all rows of a block; see `posterior`, and `BlockPosteriors`."""
        return BlockPosteriors(
            values=self.multiplier * values + self._constant,
            laws=tuple(laws),
            law_of=law_of,
            lattice_widenings=abs(self.multiplier) * widenings,
            low=self._low,
            high=self._high,
            terms=terms.times(self.multiplier),
            ends=ends,
        )

    def of_own(self, measurement: Measurement, place: int) -> BlockPosteriors:
        """From a measurement of the very same rows, at its place in the history."""
        law = self.law_of(np.array([measurement.noise_scale]), np.array([measurement.is_gaussian]))
        n_rows = measurement.block.n_rows
        rows = np.arange(n_rows)
        return self.posteriors(
            measurement.values,
            [law],
            np.zeros(n_rows, dtype=np.int64),
            np.full(n_rows, measurement.lattice_widening),
            ErrorTerms(np.full(n_rows, place), rows, np.ones(n_rows)),
            np.arange(n_rows + 1),
        )

    def constant(self) -> Posterior:
        """The posterior of a query without coefficients: its constant."""
        return Posterior(value=self._constant, law=law_of_noise(np.empty(0)))


def without_dust(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scales of Laplace noises without dust; its sum is added to the largest scale.

    >>> without_dust(np.array([1e-15, 2.0, 0.0, 1.0]))
    array([2., 1.])
    """
    return split_dust(scales, np.zeros(scales.size, dtype=np.bool_))[1]


def split_dust(
    scales: NDArray[np.float64], is_gaussian: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Noises without dust.

    Parameters
    ----------
    scales : (n,) ndarray of float64
    is_gaussian : (n,) ndarray of bool
        Whether each noise is Gaussian.

    Returns
    -------
    (places, scales, gaussian)
        Which noises are not dust; the scales of the Laplace ones among them; the standard deviation
        of all Gaussian ones together, which needs no dust removed. What the dust adds is included.

    Notes
    -----
    This never narrows an interval. Of two sums of identically distributed symmetric log-concave
    variables, the one whose scales majorize the other's is less peaked [1]_: the sum of Laplace
    dust is added to the largest scale. Where all of one kind is dust, it is added to the other:
    proofs in ``noise_law/gaussian.md``.

    References
    ----------
    .. [1] F. Proschan, "Peakedness of distributions of convex combinations", Annals of
       Mathematical Statistics 36, 1965.
    """
    matters, is_laplace = scales > SCALE_MIN * scales.max(initial=0.0), ~is_gaussian
    (places,) = matters.nonzero()
    kept: NDArray[np.float64] = scales[matters & is_laplace]
    dust = scales[~matters & is_laplace].sum()
    deviation = standard_deviation(scales[is_gaussian])
    if kept.size:
        if not (matters & is_gaussian).any():
            dust, deviation = dust + LAPLACE_OVER_DEVIATION * deviation, 0.0
        kept[kept.argmax()] += dust
    else:
        deviation = math.hypot(deviation, math.sqrt(2 * EXPONENTIAL_MAX) * dust)
    return places, kept, deviation


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
        ends = [1, 1]
        for factor in term.factors:
            products = [end * value for end in ends for value in factor.ends]
            ends = [min(products), max(products)]
        first, last = ends if term.scale >= 0 else ends[::-1]
        low, high = low + term.scale * first, high + term.scale * last
    return low, high


def posteriors_of(reading: Reading, scaling: Scaling) -> RowEstimates:
    """The posterior of each row that the groups add up to."""
    n_rows, size = reading.is_covered.size, np.abs(reading.coefficient)
    values = _summed(reading.row, reading.coefficient * reading.value, n_rows)
    widenings = _summed(reading.row, size * reading.lattice_widening, n_rows)
    order = np.argsort(reading.row, kind="stable")
    ends = np.searchsorted(reading.row[order], np.arange(n_rows + 1))
    scales, is_gaussian = (size * reading.noise_scale)[order], reading.is_gaussian[order]
    terms = ErrorTerms(
        reading.noise_place[order], reading.noise_row[order], reading.coefficient[order]
    )
    laws: list[NoiseLaw] = []
    of_noises: dict[bytes, int] = {}  # rows with the same noises have the same law
    law_of = []
    for start, end in pairwise(ends.tolist()):
        name = scales[start:end].tobytes() + is_gaussian[start:end].tobytes()
        if name not in of_noises:
            of_noises[name] = len(laws)
            laws.append(scaling.law_of(scales[start:end], is_gaussian[start:end]))
        law_of.append(of_noises[name])
    found = scaling.posteriors(
        values, laws, np.array(law_of, dtype=np.int64), widenings, terms, ends
    )
    if reading.is_covered.all():
        return found
    (nothing,) = unknown("no counted groups add up to this answer", 1)
    return tuple(
        row if is_covered else nothing
        for row, is_covered in zip(found, reading.is_covered.tolist(), strict=True)
    )


def _summed(
    row: NDArray[np.int64], numbers: NDArray[np.float64], n_rows: int
) -> NDArray[np.float64]:
    """The sum of the numbers of each row, (n_rows,)."""
    return np.bincount(row, numbers, n_rows).astype(np.float64)
