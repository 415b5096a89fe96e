"""Several answers at once: draws from the joint law of their errors.

Answers from one history share measurements, so their errors are dependent; the law of one answer
does not show that. The law of a formula that is not linear in them (a mean, a share, a variance) is
computed here, by simulation.

Draws are of the continuous law. They do not include that noise lies on a lattice and coefficients
are rounded: an answer's `lattice_widening` bounds the effect, and code that uses the draws adds it
(`draw_errors` says what raises add to it). The draws are double-precision variates for studying a
law: noise that protects data comes from the accountant alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cube.pace import checkpoint
from inference.error_terms import Places
from inference.posterior import Posterior

N_VARIATES_MAX = 2**18  # drawn at once: 2 MB, which fits a processor's cache
SPREAD_TOLERANCE = 1e-6  # above the rounding of a law's scales (a billionth) and its dust


def draw_errors(
    posteriors: Sequence[Posterior], history: Places, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Joint draws of ``value - truth`` of several answers.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Answers from `history`, as it is now or as it was when it was shorter.
    history : Places
        The history whose places the terms of the answers name, or one with counts beside it.
    n_draws : int
        At least 1. Draws are independent of each other.
    rng : numpy.random.Generator
        Passed by the caller, so that an interval can be repeated.

    Returns
    -------
    (len(posteriors), n_draws) ndarray of float64

    Raises
    ------
    ValueError
        If the terms of a posterior do not match its law: it is not from this history, or was
        built without terms.

    Notes
    -----
    An error is ``sum coefficient * noise(place, row)``. The noises of different measurements, and
    of different rows, are independent variables, except for a measurement that was raised to a
    larger weight. In each row its earlier noise is the later noise plus an independent jump. For
    Gaussian noise, a raise is an average with a further value: the jump is Gaussian, and its
    variance is the difference of the two variances. For Laplace noise of scale ``b1``, raised to
    scale ``b2 < b1`` [1]_, the quotient of their characteristic functions,

        (1 + b2**2 u**2) / (1 + b1**2 u**2)  =  r + (1 - r) / (1 + b1**2 u**2),   r = (b2 / b1)**2

    is the characteristic function of the jump: it is 0 with probability ``r``, else Laplace of
    scale ``b1``. In a chain of raises all jumps are independent, and the jump over several raises
    at once has the quotient of the first and the last; so only noises that some answer uses are
    drawn, and the law is still exact.

    On a lattice of step ``g`` the jump has the same form [2]_: 0 with probability
    ``(sinh(g / 2 b1) / sinh(g / 2 b2))**2``, else discrete Laplace of scale ``b1``. That is below
    ``r`` by less than ``(g / b2)**2 / 12``. Apart from that difference, a noise that is drawn as
    another plus ``k`` jumps is within ``(k + 1) g`` of one on the lattice, while a noise drawn by
    itself is within ``g``: code that compares answers from before and after a raise must widen by
    that much more.

    References
    ----------
    .. [1] F. Koufogiannis, S. Han, G. J. Pappas, "Gradual Release of Sensitive Data under
       Differential Privacy", Journal of Privacy and Confidentiality 7, 2017.
    .. [2] The law of the jump in ``accountant/proofs/refinement.md``.
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, not {n_draws}")
    parts = _parts(posteriors, history)
    _check_spread(posteriors, parts)
    errors = np.empty((len(posteriors), n_draws))
    n_at_once = max(1, N_VARIATES_MAX // max(1, parts.scale.size))
    for start in range(0, n_draws, n_at_once):
        checkpoint()
        stop = min(start + n_at_once, n_draws)
        errors[:, start:stop] = parts.coefficients @ parts.draw(stop - start, rng)
    return errors


def error_parts(
    posteriors: Sequence[Posterior], history: Places
) -> tuple[sparse.csr_array, NDArray[np.float64], NDArray[np.bool_]]:
    """Independent variables whose sums are the errors of several answers.

    Parameters
    ----------
    posteriors : sequence of Posterior
        As in `draw_errors`.
    history : Places

    Returns
    -------
    (coefficients, scales, is_gaussian)
        ``(len(posteriors), n_parts)``, ``(n_parts,)`` and ``(n_parts,)``: ``error = coefficients @
        parts``. A part is either a variable of its scale and kind, or a jump between a measurement
        and its raise. A Laplace jump is such a variable that is sometimes 0, so a sum with it is
        never wider; a Gaussian jump is such a variable itself.
    """
    parts = _parts(posteriors, history)
    return parts.coefficients, parts.scale, parts.is_gaussian


@dataclass(frozen=True, eq=False)
class _Parts:
    """Independent variables whose sums are the errors: noises, and jumps to noisier ones.

    Parameters
    ----------
    coefficients : (n_posteriors, n_parts) sparse array of float64
        ``error = coefficients @ parts``.
    scale : (n_parts,) ndarray of float64
        The scale of the Laplace law of a part where it is not 0; of a Gaussian part, the scale of
        a Laplace law of the same variance.
    zero : (n_parts,) ndarray of float64
        The probability that a part is 0; 0 for a noise, and for a Gaussian part.
    is_gaussian : (n_parts,) ndarray of bool
    """

    coefficients: sparse.csr_array
    scale: NDArray[np.float64]
    zero: NDArray[np.float64]
    is_gaussian: NDArray[np.bool_]

    @property
    def variance(self) -> NDArray[np.float64]:
        """The variance of each part, (n_parts,)."""
        return 2 * (1 - self.zero) * np.square(self.scale)

    def draw(self, n_draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent draws of the parts, (n_parts, n_draws)."""
        drawn = np.empty((self.scale.size, n_draws))
        n_gaussian = int(np.count_nonzero(self.is_gaussian))
        drawn[~self.is_gaussian] = rng.laplace(size=(self.scale.size - n_gaussian, n_draws))
        if n_gaussian:
            drawn[self.is_gaussian] = rng.normal(scale=math.sqrt(2), size=(n_gaussian, n_draws))
        drawn *= self.scale[:, np.newaxis]
        (jumps,) = np.nonzero(self.zero)
        drawn[jumps] *= rng.random((jumps.size, n_draws)) >= self.zero[jumps, np.newaxis]
        return drawn


def _parts(posteriors: Sequence[Posterior], history: Places) -> _Parts:
    """Decompose the noises that the posteriors use into independent parts."""
    n_terms = [one.terms.place.size for one in posteriors]
    none = [np.empty(0, dtype=np.int64)]
    place = np.concatenate(none + [one.terms.place for one in posteriors])
    row = np.concatenate(none + [one.terms.row for one in posteriors])
    coefficient = np.concatenate([np.empty(0), *(one.terms.coefficient for one in posteriors)])
    answer = np.repeat(np.arange(len(posteriors)), n_terms)

    places, which = np.unique(place, return_inverse=True)
    _check_rows(places, which, row, history)
    chain, step = _chains(places, history)
    # One number for each noise: those of one row of one chain are adjacent, the least noisy first.
    n_rows, n_steps = int(row.max(initial=0)) + 1, int(step.max(initial=0)) + 1
    number = (chain[which] * n_rows + row) * n_steps + step[which]
    number, first, noise = np.unique(number, return_index=True, return_inverse=True)
    measured = [history[int(one)] for one in places]
    scale = np.array([one.noise_scale for one in measured])[which[first]]
    is_gaussian = np.array([one.is_gaussian for one in measured], dtype=np.bool_)[which[first]]
    is_jump = np.zeros(number.size, dtype=np.bool_)
    is_jump[1:] = number[1:] // n_steps == number[:-1] // n_steps
    zero = np.zeros(number.size)
    (jumps,) = np.nonzero(is_jump)
    zero[jumps] = np.square(scale[jumps - 1] / scale[jumps])
    if zero.max(initial=0.0) > 1:
        raise ValueError("a measurement was raised to a noisier one")
    if (is_gaussian[jumps] != is_gaussian[jumps - 1]).any():
        raise ValueError("a measurement was raised to one with noise of another kind")
    scale[is_gaussian] *= np.sqrt(1 - zero[is_gaussian])
    zero[is_gaussian] = 0.0
    shape = (len(posteriors), number.size)
    of_noises = sparse.csr_array((coefficient, (answer, noise)), shape=shape)
    of_parts = of_noises @ _sums(is_jump) if jumps.size else of_noises
    return _Parts(of_parts, scale, zero, is_gaussian)


def _check_rows(
    places: NDArray[np.int64], which: NDArray[np.int64], row: NDArray[np.int64], history: Places
) -> None:
    if not all(map(history.has, places.tolist())):
        raise ValueError("the terms name places that this history does not have")
    n_rows = np.array([history[int(place)].block.n_rows for place in places], dtype=np.int64)
    if ((row < 0) | (row >= n_rows[which])).any():
        raise ValueError("the terms name rows that their measurement does not have")


def _chains(
    places: NDArray[np.int64], history: Places
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each place, ascending: its chain of raises, and how many later places of it are given.

    A chain is named by its first place.
    """
    chains: dict[int, list[int]] = {}
    for place in places.tolist():
        *_, first = (place, *history.earlier(place))
        chains.setdefault(first, []).append(place)
    chain_of, step_of = {}, {}
    for first, members in chains.items():
        if not set(members[:-1]).issubset(history.earlier(members[-1])):
            raise ValueError("a measurement was raised twice: its noises do not form a chain")
        for step, place in enumerate(reversed(members)):
            chain_of[place], step_of[place] = first, step
    return (
        np.array([chain_of[place] for place in places.tolist()], dtype=np.int64),
        np.array([step_of[place] for place in places.tolist()], dtype=np.int64),
    )


def _sums(is_jump: NDArray[np.bool_]) -> sparse.csr_array:
    """``noises = sums @ parts``: a noise is the least of its chain plus all jumps up to it."""
    places = np.arange(is_jump.size)
    start = np.maximum.accumulate(np.where(is_jump, 0, places))
    n_parts = places - start + 1
    ends = np.cumsum(n_parts)
    part = np.arange(ends[-1]) - np.repeat(ends - n_parts - start, n_parts)
    return sparse.csr_array(
        (np.ones(part.size), (np.repeat(places, n_parts), part)), shape=(places.size, places.size)
    )


def _check_spread(posteriors: Sequence[Posterior], parts: _Parts) -> None:
    """Raise ValueError if an answer's terms do not match its law."""
    found = np.sqrt(parts.coefficients.power(2) @ parts.variance)
    claimed = np.array([one.standard_deviation for one in posteriors], dtype=np.float64)
    if not np.allclose(found, claimed, rtol=SPREAD_TOLERANCE, atol=0.0):
        raise ValueError("a posterior's terms do not match its law in this history")
