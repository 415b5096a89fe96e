"""Estimates the likeliest shares: nowhere negative, and adding up to 1.

Shares at the border come out as 0 where inversion gives negative numbers. They are biased there, so
there is no interval for them; intervals come from `inversion`.

Of randomised response they are exact, without iteration. Of local hashing, and of several channels
together, they are found by iterated Bayes, which is expectation maximisation: each step makes the
counts likelier, and says how much likelier the likeliest can be at most. Of unary encoding, bits
are counted one by one, so that only the likelihood of each bit by itself is known; the product of
these is maximised, exactly and without iteration.

The argument is in `proofs/estimates.md`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from local_dp.channels import Floats, RandomisedResponse, UnaryEncoding
from local_dp.estimates.shares import TableEstimate

GAP_ENOUGH = 1e-6  # shares are then within sqrt(2e-6), a 700th, of their standard errors
N_STEPS_MAX = 20_000  # two seconds of the smallest channel
N_STEPS_MIN = 9  # of the largest channel, some seconds
STEPS_IN_ROUND = 3
LEAST_AHEAD = 0.01  # of a share: none may become 0, where it would stay
WORK_MAX = 1e7  # steps times places: two seconds or so; `gap` says how far it came
N_HALVINGS = 200

Map: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class LikelyShares:
    """Shares of greatest likelihood, up to where iteration ended.

    Parameters
    ----------
    shares : (n_cells,) ndarray
    gap : float
        By how much the logarithm of the likelihood of all answers may at most be below its
        greatest, however the answers fell; 0 where there was no iteration.
    """

    shares: Floats
    gap: float


def likeliest(estimate: TableEstimate) -> LikelyShares:
    """The shares of greatest likelihood of a combination's answers.

    Raises
    ------
    ValueError
        If answers by unary encoding are to be put together with those of another channel.
    TooSlow
        If the statement's time is over.
    """
    channels = [block.channel for block in estimate.blocks]
    first, only = channels[0], estimate.blocks[0]
    if isinstance(first, RandomisedResponse) and len(channels) == 1:
        return LikelyShares(_filled_up(first, only.rates), 0.0)
    if isinstance(first, UnaryEncoding) and len(channels) == 1:
        return LikelyShares(_by_bits(first, only.counts, only.n_answers), 0.0)
    if any(isinstance(channel, UnaryEncoding) for channel in channels):
        raise ValueError(
            "answers by unary encoding cannot be combined with answers by another channel"
        )
    return iterated_bayes(
        estimate.n_cells,
        estimate.n_answers,
        [
            (block.counts / estimate.n_answers, block.channel.rates, block.channel.adjoint)
            for block in estimate.blocks
        ],
    )


def iterated_bayes(
    n_cells: int, n_answers: int, observed: Sequence[tuple[Floats, Map, Map]]
) -> LikelyShares:
    """Shares ``x`` that maximise ``sum o log (x Q)``, by expectation maximisation.

    Parameters
    ----------
    n_cells, n_answers : int
    observed : sequence of (rates, map, adjoint)
        Of each channel: the answers' part of all answers at each place; the map from shares to
        rates ``x Q``; and its adjoint ``Q v``. All parts add up to 1.

    Notes
    -----
    ``x_a <- x_a f_a`` with ``f_a = sum_b Q_ab o_b / (x Q)_b``, from equal shares: a share that
    begins at 0 would stay there. The likelihood never falls (Dempster, Laird and Rubin, 1977); it
    is concave, so there is one maximum to reach, and no shares are likelier than ``x`` by more than
    ``max f - 1`` an answer. Two steps show where they lead, and a third begins there, unless that
    is less likely (Varadhan and Roland, 2008): tens of steps instead of thousands.
    """

    def moved(shares: Floats) -> tuple[Floats, float, float]:
        """One step; before it, the gap and the logarithm of the likelihood of an answer."""
        checkpoint()
        factors, likelihood = np.zeros(n_cells), 0.0
        for rates, forward, adjoint in observed:
            expected = forward(shares)
            factors += adjoint(rates / expected)
            likelihood += float(rates @ np.log(expected))
        gap = n_answers * max(0.0, float(factors.max()) - 1)
        return shares * factors, gap, likelihood

    shares = np.full(n_cells, 1 / n_cells)
    gap, n_places = np.inf, n_cells + sum(rates.size for rates, _, _ in observed)
    n_steps = min(N_STEPS_MAX, max(N_STEPS_MIN, WORK_MAX / n_places))
    for _ in range(int(n_steps / STEPS_IN_ROUND)):
        once, gap, _ = moved(shares)
        if gap <= GAP_ENOUGH:
            return LikelyShares(once, gap)
        twice, gap, likelihood = moved(once)
        if gap <= GAP_ENOUGH:
            return LikelyShares(twice, gap)
        shares, gap_ahead, likelihood_ahead = moved(_ahead(shares, once, twice))
        if likelihood_ahead >= likelihood:
            gap = gap_ahead
        else:
            shares = twice
    return LikelyShares(shares, gap)


def _ahead(start: Floats, once: Floats, twice: Floats) -> Floats:
    """Where two steps lead, if each is shorter than the one before by the same factor."""
    first, change = once - start, twice - 2 * once + start
    bend = float(np.linalg.norm(change))
    length = max(1.0, float(np.linalg.norm(first)) / bend) if bend else 1.0
    found = np.maximum(start + 2 * length * first + length**2 * change, LEAST_AHEAD * twice)
    return np.asarray(found / found.sum())


def _filled_up(channel: RandomisedResponse, rates: Floats) -> Floats:
    """Maximise ``sum o log r`` with ``r = p x + (1 - p) T``, exactly.

    Where a share is not 0, the derivative ``p o / r`` is one number, and nowhere is it larger: so
    ``r`` is ``o`` over a constant, but not below ``(1 - p) T``. Cells whose answers are most above
    those of fakes come first; as many of them have a share as let the rates add up to 1.
    """
    keep = float(channel.keep)
    fakes = channel.rates(np.zeros(channel.n_cells))
    excess = rates / fakes
    order = np.argsort(-excess, kind="stable")
    constants = np.cumsum(rates[order]) / (keep + np.cumsum(fakes[order]))
    n_kept = int(np.flatnonzero(excess[order] > constants)[-1]) + 1
    found = np.maximum(rates / constants[n_kept - 1] - fakes, 0.0)
    return np.asarray(found / found.sum())


def _by_bits(channel: UnaryEncoding, counts: NDArray[np.int64], n_answers: int) -> Floats:
    """Maximise ``sum o log r + (n - o) log (1 - r)`` with ``r = q + (1/2 - q) x``.

    Where a share is not 0, the derivative ``(o - n r) / (r (1 - r))`` is one number for all cells;
    the shares that it gives fall as it grows, so that it is found by halving.
    """
    noise = float(channel.noise)
    ones = np.asarray(counts, dtype=np.float64)

    def shares_at(slope: float) -> Floats:
        middle = slope + n_answers
        root = np.sqrt(np.maximum(middle**2 - 4 * slope * ones, 0.0))
        rates = 2 * ones / (middle + root) if middle > 0 else (middle - root) / (2 * slope)
        return np.asarray(np.maximum((rates - noise) / (0.5 - noise), 0.0))

    low, high = -1.0 * n_answers, 1.0 * n_answers
    while shares_at(low).sum() < 1:
        low *= 2
    while shares_at(high).sum() > 1:
        high *= 2
    for _ in range(N_HALVINGS):
        between = (low + high) / 2
        if shares_at(between).sum() > 1:
            low = between
        else:
            high = between
    found = shares_at(high)
    return np.asarray(found / found.sum())
