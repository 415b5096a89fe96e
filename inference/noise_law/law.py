"""The law of the noise in an estimate: of ``X = sum_k b_k L_k + sigma Z``.

The ``L_k`` are standard Laplace, ``Z`` is standard normal, all independent. An estimate ``A y``
misses its truth by ``X`` with ``b_k = |A_k|`` times the scale of row ``k``, and ``sigma**2`` the
sum of the variances of the terms with Gaussian noise. Whatever the method, a law knows its tails to
a stated error, and that error never reduces the coverage of an interval.

The method is a contour integral with a proved bound; the others are checks of it
(`paper_methods.py`). The tail ``Pr(X > z)`` is an inverse Laplace transform of the moment
generating function ``M``. All its singularities are real, so the path of integration is bent into a
hyperbola that avoids them and passes near the saddle point, and the midpoint rule on it converges
geometrically whatever the scales are. The proof of every inequality used below is in
``contour.md``, next to this file. One set of nodes serves all ``z >= z_min``: nodes are kept for
each power of two. It draws no sample, and nothing in it depends on how many scales are equal.

`AskedLaw` is the widest law that an error may have, given one of its half-widths: for analysts who
may see the accuracy that they asked for, but not the accuracy that was reached, as a better
accuracy would show what was measured before.

Nothing here knows rows, weights or queries: scales in, probabilities out.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcinv, erfinv, k0e

from cube.target import PosteriorMethod
from inference.noise_law.laplace_sum import (
    LEAST_SCALE,
    check_bound,
    check_confidence,
    check_deviation,
    check_tolerance,
    chernoff_half_width,
    log_moment,
    positive_scales,
    standard_deviation,
    tail_root,
)
from inference.noise_law.paper_methods import ConvolutionLaw, MonteCarloLaw, PaperConvolutionLaw

ANGLE = math.radians(20.0)  # of the contour; at most 30 degrees for the truncation bound
ANGLE_RIGHT = math.radians(39.0)  # the strip of the discretisation bound, towards the poles 1/b
ANGLE_LEFT = math.radians(1.5)  # the strip of the discretisation bound, towards the pole at 0
SIN = math.sin(ANGLE)
COS = math.cos(ANGLE)
CROSSING = 1 + SIN  # the contour meets the real axis at focus * CROSSING
FIRST_NEGATIVE = 1.4  # beyond this parameter Re s**2 < 0 on the contour, for ANGLE
STEP_MAX = 0.5  # even where a negligible tail would allow a wider step
SADDLE_AT = 1.5  # nodes for z >= z_min pass the saddle of this times z_min, mid-octave

N_POWER_SUMS = 16
POWER_SUM_RADIUS = (
    0.35  # scales with b |s| below it: 0.35**34 / 17 is under 1e-16 of the first term
)
GROUP = 16  # factors multiplied before one logarithm is taken
BLOCK = 4096  # scales combined with all nodes at once: bounds the memory
LOG_RANGE = 600.0  # natural logarithm a product of GROUP factors may reach before it overflows
UNIT_ROUNDOFF = 2.0**-53

N_HALF_WIDTHS_KEPT = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """A midpoint rule for the tail at every ``z >= z_min``, in units of the largest scale.

    ``tail(z) = Re sum(weights * exp(-points * z))`` to within `error`.
    """

    z_min: float
    points: NDArray[np.complex128]
    weights: NDArray[np.complex128]
    error: float

    def tail_and_density(self, z: float) -> tuple[float, float]:
        terms = self.weights * np.exp(self.points * -z)
        return float(terms.sum().real), float((terms * self.points).sum().real)


class ContourLaw:
    """The law of ``X = sum_k b_k L_k + sigma Z`` by contour inversion.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``; zeros are dropped.
    gaussian : float
        The deviation ``sigma`` of the Gaussian part; 0 for none. It, or a scale, must be positive.
    tolerance : float
        Bound on the error of the quadrature in each tail probability. `tail_error` adds the
        rounding of the sums, which grows with the number of scales.

    Notes
    -----
    Computes ``(1 / 2 pi i) int exp(-s z) M(s) / s ds`` with
    ``M(s) = exp((s sigma)**2 / 2) prod_k 1 / (1 - (s b_k)**2)``: the transform of Xiao & Xiong 2012
    (Lemma 4.1) continued to the complex plane, times the transform of the Gaussian part.

    Examples
    --------
    >>> law = ContourLaw(np.array([3.0, 1.0]))
    >>> round(law.tail(5.0), 12)  # (9 exp(-5/3) - exp(-5)) / 16
    0.105821404909
    """

    def __init__(
        self, scales: NDArray[np.float64], *, gaussian: float = 0.0, tolerance: float = 1e-12
    ) -> None:
        self.scales = positive_scales(scales)
        check_deviation(gaussian)
        self.gaussian = gaussian
        if self.scales.size == 0 and gaussian == 0:
            raise ValueError("a contour needs at least one positive scale")
        check_tolerance(tolerance)
        self._tolerance = tolerance
        # The unit of length; a Gaussian part counts with the scale of Laplace noise as wide.
        self._largest = max(float(self.scales.max(initial=0.0)), gaussian / math.sqrt(2))
        self._unit = np.sort(self.scales / self._largest)[::-1]
        self._unit_gaussian = gaussian / self._largest
        self._half_gaussian = self._unit_gaussian**2 / 2  # factor of s**2 in log M
        self._squares = np.square(self._unit)
        self._sum_of_squares = float(self._squares.sum())
        self._focus_max = 0.5 / max(float(self._unit.max(initial=0.0)), LEAST_SCALE)
        self._nodes: dict[int, _Nodes] = {}
        self._half_widths: dict[float, float] = {}
        self._zero_beyond: float | None = None

    @property
    def tail_error(self) -> float:
        """Proved bound on ``|tail(z) - Pr(X > z)|``, for every ``z``."""
        return self._tolerance + (32 * self.scales.size + 4096) * UNIT_ROUNDOFF

    def tail(self, z: float) -> float:
        """``Pr(X > z)``, to within `tail_error`."""
        check_bound(z)
        if z < 0:
            return 1.0 - self.tail(-z)
        unit_z = z / self._largest
        if unit_z <= self._tolerance:
            return 0.5  # the density is at most 1/2 per unit of the largest scale
        if unit_z >= self._negligible_beyond():
            return 0.0
        tail, _ = self._nodes_for(unit_z).tail_and_density(unit_z)
        return min(max(tail, 0.0), 0.5)

    def half_width(self, confidence: float) -> float:
        """The smallest ``h`` with ``Pr(|X| > h) <= 1 - confidence``, rounded up by the error."""
        check_confidence(confidence)
        known = self._half_widths.get(confidence)
        if known is not None:
            return known
        half_width = self._largest * self._unit_half_width((1 - confidence) / 2)
        if len(self._half_widths) >= N_HALF_WIDTHS_KEPT:
            self._half_widths.clear()  # callers choose the confidences: the cache stays bounded
        self._half_widths[confidence] = half_width
        return half_width

    def _negligible_beyond(self) -> float:
        """Where the tail falls below the tolerance, in units of the largest scale."""
        if self._zero_beyond is None:
            self._zero_beyond = self._chernoff(math.log(self._tolerance))
        return self._zero_beyond

    def _chernoff(self, log_probability: float) -> float:
        return chernoff_half_width(self._unit, log_probability, self._unit_gaussian)

    def _nodes_for(self, z: float) -> _Nodes:
        octave = math.frexp(z)[1] - 1
        nodes = self._nodes.get(octave)
        if nodes is None:
            nodes = self._nodes[octave] = self._build_nodes(math.ldexp(1.0, octave))
        return nodes

    def _unit_half_width(self, probability: float) -> float:
        """Smallest ``z`` found with tail at most `probability`, reduced by the error first."""
        if probability <= 2 * self.tail_error:
            return self._chernoff(math.log(probability))
        deviation = standard_deviation(self._unit, self._unit_gaussian)
        start = max(deviation * -NormalDist().inv_cdf(probability), 2 * self._tolerance)
        nodes = self._nodes_for(start)
        while nodes.tail_and_density(nodes.z_min)[0] <= probability - nodes.error:
            # The answer lies below the range of these nodes: rare, as X is log-concave.
            if nodes.z_min <= self._tolerance:
                return nodes.z_min
            nodes = self._nodes_for(nodes.z_min / 2)
        return tail_root(
            nodes.tail_and_density,
            probability - nodes.error,
            low=nodes.z_min,
            start=start,
        )

    def _build_nodes(self, z_min: float) -> _Nodes:
        focus = self._focus(SADDLE_AT * z_min)
        step = self._step(z_min, focus)
        parameters, truncation = self._parameters(z_min, focus, step)
        sinh, cosh = np.sinh(parameters), np.cosh(parameters)
        points = focus * _complex(1 + SIN * cosh, COS * sinh)
        log_moments, log_errors = self._log_moments(points)
        slopes = focus * _complex(COS * cosh, -SIN * sinh)  # ds/du over i
        moments: NDArray[np.complex128] = np.exp(log_moments)
        weights = (step / math.pi) * moments * slopes / points
        sizes = np.abs(weights) * np.exp(points.real * -z_min)
        # Rounding, to first order: the exponent s z, the logarithms, the nodes, the sum itself.
        relative = 4 / SIN * np.maximum(1.0, z_min * points.real) + log_errors + points.size + 64
        rounding = UNIT_ROUNDOFF * float((sizes * relative).sum())
        error = self._tolerance / 2 + truncation + rounding
        if not error <= self.tail_error:
            raise ArithmeticError(f"the contour error {error} exceeds the stated {self.tail_error}")
        return _Nodes(z_min=z_min, points=points, weights=weights, error=error)

    def _focus(self, z: float) -> float:
        """Half the distance of the foci: the contour crosses near the saddle of ``M exp(-sz)/s``.

        Every focus up to half the first pole satisfies the bounds, so three Newton steps from the
        normal approximation, which lies to the right of the saddle, are enough.
        """
        highest = CROSSING * self._focus_max
        of_gaussian = 2 * self._half_gaussian
        variance = 2 * self._sum_of_squares + of_gaussian
        crossing = (z + math.sqrt(z * z + 4 * variance)) / (2 * variance)
        for _ in range(3):
            crossing = min(crossing, highest)
            remainders = 1 / (1 - self._squares * crossing**2)
            ratios = self._squares * remainders
            slope = crossing * (2 * float(ratios.sum()) + of_gaussian) - z - 1 / crossing
            curvature = float((2 * ratios * (2 * remainders - 1)).sum()) + 1 / crossing**2
            curvature += of_gaussian
            if crossing == highest and slope <= 0:
                break
            crossing = max(crossing - slope / curvature, crossing / 2)
        return min(crossing / CROSSING, self._focus_max)

    def _step(self, z: float, focus: float) -> float:
        """The widest step whose two discretisation terms are each a quarter of the tolerance."""
        steps = [STEP_MAX]
        for angle in (ANGLE_RIGHT, ANGLE_LEFT):
            sine = math.sin(angle)
            log_bound = (
                self._log_moment(focus * math.sqrt(_real_square_max(sine)))
                + math.log(float(k0e(z * focus * sine)))
                - z * focus * (1 + sine)
                - math.log(math.pi)
            )
            excess = log_bound - math.log(self._tolerance / 4)
            steps.append(2 * math.pi * abs(angle - ANGLE) / float(np.logaddexp(0.0, excess)))
        return min(steps)

    def _log_moment(self, tilt: float) -> float:
        return log_moment(self._unit, tilt, self._unit_gaussian)

    def _parameters(self, z: float, focus: float, step: float) -> tuple[NDArray[np.float64], float]:
        """The nodes' parameters ``u > 0``, and the bound on all that lies beyond the last."""
        count = 64
        while True:
            parameters = (np.arange(count, dtype=np.float64) + 0.5) * step
            sinh, cosh = np.sinh(parameters), np.cosh(parameters)
            # -Re s**2. There, |M| <= (1 - Re s**2) ** -(sum of squares), times the Gaussian factor.
            negative = (1 - 2 * SIN**2) * cosh**2 - 2 * SIN * cosh - 2 + SIN**2
            negative = focus**2 * np.maximum(negative, 0.0)
            decay = self._sum_of_squares * np.log1p(negative) + self._half_gaussian * negative
            log_beyond = -decay - z * focus * (1 + SIN * cosh)
            log_beyond -= np.log(math.pi * z * focus * SIN * sinh)
            enough = (log_beyond <= math.log(self._tolerance / 4)) & (parameters > FIRST_NEGATIVE)
            last = int(enough.argmax())
            if enough[last]:
                return parameters[: last + 1], math.exp(float(log_beyond[last]))
            count *= 2

    def _log_moments(
        self, points: NDArray[np.complex128]
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """``log M`` at the points, and its absolute error in units of roundoff."""
        squares = points * points
        sizes = np.abs(squares)
        radius = POWER_SUM_RADIUS / math.sqrt(float(sizes[-1]))  # the last point is the farthest
        n_factors = int(np.searchsorted(-self._unit, -radius, side="right"))
        power_sums = _power_sums(self._squares[n_factors:])
        series = np.zeros_like(squares)
        for power_sum in power_sums[::-1]:
            series = (series + power_sum) * squares
        series = series + self._half_gaussian * squares
        errors = 64 * (power_sums[0] + self._half_gaussian) * sizes + 32.0 * n_factors
        group = max(1, min(GROUP, int(LOG_RANGE / math.log1p(float(sizes[-1])))))
        for first in range(0, n_factors, BLOCK):
            factors = self._squares[first : min(first + BLOCK, n_factors)]
            padded = np.zeros(-(-factors.size // group) * group)  # a scale of 0 is a factor of 1
            padded[: factors.size] = factors
            terms = 1 - padded.reshape(-1, group, 1) * squares
            logs = np.log(np.multiply.reduce(terms, axis=1))
            series = series - logs.sum(axis=0)
            errors = errors + 4 * np.abs(logs).sum(axis=0)
        return series, errors


def _complex(real: NDArray[np.float64], imag: NDArray[np.float64]) -> NDArray[np.complex128]:
    array = np.empty(real.shape, dtype=np.complex128)
    array.real, array.imag = real, imag
    return array


def _real_square_max(sine: float) -> float:
    """The largest ``Re s**2`` on the hyperbola of this angle, over focus squared."""
    if 2 * sine <= 1:
        return (1 + sine) ** 2
    return 2 - sine**2 + sine**2 / (1 - 2 * sine**2)


def _power_sums(squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of ``-sum_k log(1 - y b_k**2)`` in y, y**2, ...: ``sum_k b_k**(2j) / j``."""
    orders = np.arange(1.0, N_POWER_SUMS + 1)
    powers = np.multiply.accumulate(np.broadcast_to(squares, (N_POWER_SUMS, squares.size)), axis=0)
    sums: NDArray[np.float64] = powers.sum(axis=1)
    return sums / orders


SCALE_OF_DEVIATION: Final = math.sqrt(0.5)  # a Laplace variable's scale over standard deviation


class AskedLaw:
    """An upper bound on a law of noise, of either kind, whose half-width is at most a given one.

    Parameters
    ----------
    half_width : float
    confidence : float
        The confidence of that half-width, between 0 and 1.

    Notes
    -----
    Let ``S(t) = Pr(|X| > t)`` for a sum ``X`` of independent Laplace and Gaussian variables. Its
    density is symmetric and log-concave, so ``log S`` is concave on ``t >= 0``, with ``S(0) = 1``;
    and ``S`` is convex there, since the density decreases. Let ``S(h) <= a``. Then

        t >= h:   log S(t) <= (t / h) log S(h),   that is   S(t) <= a ** (t / h)
        t <= h:   S(t) <= 1 - (1 - a) t / h

    The first is a Laplace variable's tail: no such law has a wider interval of a higher confidence.
    At a lower confidence the half-width is `half_width`, which is wide enough. Both together bound
    the variance, ``2 * integral of t S(t)``.

    Examples
    --------
    >>> law = AskedLaw(10.0, 0.9)
    >>> law.half_width(0.5), law.half_width(0.9), round(law.half_width(0.99), 9)
    (10.0, 10.0, 20.0)
    """

    __slots__ = ("_alpha", "_confidence", "_half_width", "gaussian", "scales", "tail_error")

    def __init__(self, half_width: float, confidence: float) -> None:
        if not (0 <= half_width < math.inf and 0 < confidence < 1):
            raise ValueError(f"there is no half-width {half_width} with confidence {confidence}")
        self._half_width = half_width
        self._confidence = confidence
        self._alpha = 1 - confidence
        self.scales: NDArray[np.float64] = np.array([SCALE_OF_DEVIATION * self._deviation()])
        self.scales.flags.writeable = False
        self.gaussian = 0.0
        self.tail_error = 0.5  # `tail` is a bound, not a probability

    def tail(self, z: float) -> float:
        """A bound on ``Pr(X > z)``, from above for positive ``z``."""
        if z < 0:
            return 1 - self.tail(-z)
        share = z / self._half_width if self._half_width else math.inf
        if share <= 1:
            return (1 - self._confidence * share) / 2
        return 0.5 * math.exp(share * math.log(self._alpha)) if share < math.inf else 0.0

    def half_width(self, confidence: float) -> float:
        """A half-width at a confidence, never too small."""
        if confidence <= self._confidence:
            return self._half_width
        return self._half_width * math.log1p(-confidence) / math.log(self._alpha)

    def _deviation(self) -> float:
        """A bound on the standard deviation."""
        inside = (1 + 2 * self._alpha) / 3
        per_scale = -1 / math.log(self._alpha)  # of the Laplace tail, in half-widths
        beyond = 2 * self._alpha * (per_scale + per_scale**2)
        return self._half_width * math.sqrt(inside + beyond)


N_LAWS_KEPT = 256  # a GROUP BY needs the same law for every row; a law of 1000 scales is 50 kB


class NoiseLaw(Protocol):
    """The law of a symmetric sum of Laplace variables and one Gaussian."""

    @property
    def scales(self) -> NDArray[np.float64]:
        """The positive scales of the Laplace variables, (n,)."""

    @property
    def gaussian(self) -> float:
        """The deviation of the Gaussian part; 0 where there is none."""

    @property
    def tail_error(self) -> float:
        """Bound on ``|tail(z) - Pr(X > z)|`` over all ``z``."""

    def tail(self, z: float) -> float:
        """``Pr(X > z)`` for any real ``z``."""

    def half_width(self, confidence: float) -> float:
        """Smallest ``h`` with ``Pr(|X| > h) <= 1 - confidence``; never too small, for any error."""


class LawMethod(StrEnum):
    """How the law of a sum of two or more terms is computed."""

    CONTOUR = "contour"
    CONVOLUTION = "convolution"
    PAPER_CONVOLUTION = "paper_convolution"
    MONTE_CARLO = "monte_carlo"


class SingleLaplaceLaw:
    """The law of one Laplace variable in closed form; of scale 0, a point mass at 0."""

    __slots__ = ("gaussian", "scales", "tail_error")

    def __init__(self, scale: float) -> None:
        if not 0 <= scale < math.inf:
            raise ValueError(f"scales must be finite and not negative, not {scale}")
        self.scales = np.array([scale] if scale else [], dtype=np.float64)
        self.scales.flags.writeable = False
        self.gaussian = 0.0
        self.tail_error = 2.0**-52 if scale else 0.0  # one exponential, rounded

    def tail(self, z: float) -> float:
        """``Pr(X > z)``."""
        check_bound(z)
        if z < 0:
            # The point mass lies beyond z; the Laplace law follows by symmetry.
            return 1.0 - self.tail(-z) if self.scales.size else 1.0
        return math.exp(-z / float(self.scales[0])) / 2 if self.scales.size else 0.0

    def half_width(self, confidence: float) -> float:
        """``b log(1 / (1 - confidence))``, rounded up."""
        check_confidence(confidence)
        if not self.scales.size:
            return 0.0
        return -float(self.scales[0]) * math.log1p(-confidence) * (1 + 2.0**-50)


class SingleGaussianLaw:
    """The law of one Gaussian variable in closed form."""

    __slots__ = ("gaussian", "scales", "tail_error")

    def __init__(self, deviation: float) -> None:
        check_deviation(deviation)
        if deviation == 0:
            raise ValueError("a Gaussian law needs a positive deviation")
        self.scales = np.empty(0)
        self.scales.flags.writeable = False
        self.gaussian = deviation
        self.tail_error = 2.0**-50  # one error function, rounded

    def tail(self, z: float) -> float:
        """``Pr(X > z)``."""
        check_bound(z)
        return math.erfc(z / (self.gaussian * math.sqrt(2))) / 2

    def half_width(self, confidence: float) -> float:
        """The normal quantile, rounded up by far more than its error."""
        check_confidence(confidence)
        # Each is accurate on its side: 1 - confidence is exact from 1/2 on.
        quantile = erfinv(confidence) if confidence < 0.5 else erfcinv(1 - confidence)  # noqa: PLR2004
        return self.gaussian * math.sqrt(2) * float(quantile) * (1 + 2.0**-40)


def law_of_noise(  # noqa: PLR0913 - each method has its one knob, all keyword-only
    scales: NDArray[np.float64],
    method: LawMethod = LawMethod.CONTOUR,
    *,
    gaussian: float = 0.0,
    tolerance: float = 1e-12,
    generator: np.random.Generator | None = None,
    n_draws: int = 10_000,
    grid_step: float = 1.0,
) -> NoiseLaw:
    """The law of ``X = sum_k b_k L_k + sigma Z``.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The ``b_k``, in units of the answer. Zeros are dropped. Of one variable, or none, the closed
        form is used whatever the method.
    method : LawMethod
        The contour is exact for all practical purposes, and the fastest; the others serve for
        comparison. The paper's convolution is of Laplace variables alone.
    gaussian : float
        The deviation ``sigma`` of the Gaussian part, in units of the answer; 0 for none.
    tolerance : float
        The numerical error to aim for in a tail probability; for the paper's convolution, the mass
        that may be cut off.
    generator, n_draws
        For Monte Carlo; there is no default generator, the caller passes one.
    grid_step : float
        For the paper's convolution, in units of the answer.

    Returns
    -------
    NoiseLaw
        Its `tail_error` is the error that is reached. Laws by contour are shared between calls
        with the same Gaussian part and the same scales in any order; use does not change them.

    Examples
    --------
    Ten equally noisy rows summed: the 95 % half-width is far from ten times that of one row.

    >>> one, ten = law_of_noise(np.ones(1)), law_of_noise(np.ones(10))
    >>> round(one.half_width(0.95), 3), round(ten.half_width(0.95), 3)
    (2.996, 8.861)
    """
    positive = positive_scales(scales)
    check_deviation(gaussian)
    if positive.size <= 1 and gaussian == 0:
        return SingleLaplaceLaw(float(positive.sum()))
    if positive.size == 0:
        return SingleGaussianLaw(gaussian)
    match method:
        case LawMethod.CONTOUR:
            return _contour_law(np.sort(positive).tobytes(), gaussian, tolerance)
        case LawMethod.CONVOLUTION:
            return ConvolutionLaw(positive, gaussian=gaussian, tolerance=tolerance)
        case LawMethod.PAPER_CONVOLUTION:
            if gaussian:
                raise ValueError("the paper's convolution covers Laplace variables only")
            return PaperConvolutionLaw(positive, grid_step=grid_step, lost_mass=tolerance)
        case LawMethod.MONTE_CARLO:
            if generator is None:
                raise ValueError(
                    "Monte Carlo needs a generator, such as numpy.random.default_rng(...)"
                )
            return MonteCarloLaw(positive, gaussian=gaussian, generator=generator, n_draws=n_draws)


N_DRAWS: Final = 100_000  # of a law by simulation: its tails err by at most .006
N_DRAWN_MAX: Final = 2**24  # draws times scales, of one law: a fifth of a second
N_DRAWS_LEAST: Final = 1000


def law_by(law: NoiseLaw, method: PosteriorMethod, generator: np.random.Generator) -> NoiseLaw:
    """The same law, computed by another method.

    Of one variable, or none, the closed form stays. So does the bound on a law, where the law
    itself is not known.
    """
    if method is PosteriorMethod.EXACT or not isinstance(law, ContourLaw):
        return law
    if method is PosteriorMethod.CONVOLUTION:
        return law_of_noise(law.scales, LawMethod.CONVOLUTION, gaussian=law.gaussian)
    n_draws = max(N_DRAWS_LEAST, min(N_DRAWS, N_DRAWN_MAX // max(law.scales.size, 1)))
    return law_of_noise(
        law.scales,
        LawMethod.MONTE_CARLO,
        gaussian=law.gaussian,
        generator=generator,
        n_draws=n_draws,
    )


def law_of_noises(scales: NDArray[np.float64], is_gaussian: NDArray[np.bool_]) -> NoiseLaw:
    """The law of a sum of independent Laplace and Gaussian noises.

    Parameters
    ----------
    scales : (n,) ndarray of float64
        The scale of each noise; for Gaussian noise, that of Laplace noise with the same variance.
    is_gaussian : (n,) ndarray of bool
    """
    deviation = standard_deviation(scales[is_gaussian])
    return law_of_noise(scales[~is_gaussian], gaussian=deviation)


@lru_cache(maxsize=N_LAWS_KEPT)
def _contour_law(sorted_scales: bytes, gaussian: float, tolerance: float) -> ContourLaw:
    scales = np.frombuffer(sorted_scales, dtype=np.float64)
    return ContourLaw(scales, gaussian=gaussian, tolerance=tolerance)
