"""The likeliest shares: nowhere negative, adding up to 1, without the noise of inversion at 0.

By iterated Bayes, which is expectation maximisation: each step makes the counts likelier. Shares at
the border come out as 0 where inversion gives negative numbers. They are biased there, so there is
no interval for them; intervals come from `inversion`.

Of unary encoding, bits are counted one by one, so that only the likelihood of each bit by itself is
known; the product of these is maximised, exactly and without iteration.

The argument is in `proofs/estimates.md`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from local_dp.channels.channel import Floats
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.inversion import TableEstimate

STEPS_ENOUGH = 1e-12  # the sum of all changes at which iteration ends
N_STEPS_MAX = 100_000
WORK_MAX = 1e7  # steps times places: two seconds or so; `last_change` says how far it came
N_HALVINGS = 200

Map: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class LikelyShares:
    """Shares of greatest likelihood, up to where iteration ended.

    Parameters
    ----------
    shares : (n_cells,) ndarray
    last_change : float
        The sum of absolute changes in the last step; 0 where there was no iteration.
    """

    shares: Floats
    last_change: float


def likeliest(estimate: TableEstimate) -> LikelyShares:
    """The shares of greatest likelihood of a combination's answers.

    Raises
    ------
    ValueError
        If answers by unary encoding are to be put together with those of another channel.
    """
    channels = [block.channel for block in estimate.blocks]
    first = channels[0]
    if isinstance(first, UnaryEncoding) and len(channels) == 1:
        only = estimate.blocks[0]
        return LikelyShares(_by_bits(first, only.counts, only.n_answers), 0.0)
    if any(isinstance(channel, UnaryEncoding) for channel in channels):
        raise ValueError("bits are not put together with the answers of another channel")
    return iterated_bayes(
        estimate.n_cells,
        [
            (block.counts / estimate.n_answers, block.channel.rates, block.channel.adjoint)
            for block in estimate.blocks
        ],
    )


def iterated_bayes(n_cells: int, observed: Sequence[tuple[Floats, Map, Map]]) -> LikelyShares:
    """Shares ``x`` that maximise ``sum o log (x Q)``, by expectation maximisation.

    Parameters
    ----------
    n_cells : int
    observed : sequence of (rates, map, adjoint)
        Of each channel: the answers' part of all answers at each place; the map from shares to
        rates ``x Q``; and its adjoint ``Q v``. All parts add up to 1.

    Notes
    -----
    ``x_a <- x_a sum_b Q_ab o_b / (x Q)_b``, from equal shares: a share that begins at 0 would stay
    there. The likelihood never falls (Dempster, Laird and Rubin, 1977); it is concave, so there is
    one maximum to reach.
    """
    shares = np.full(n_cells, 1 / n_cells)
    change, n_places = np.inf, n_cells + sum(rates.size for rates, _, _ in observed)
    for _ in range(int(min(N_STEPS_MAX, max(100, WORK_MAX / n_places)))):
        factors = np.zeros(n_cells)
        for rates, forward, adjoint in observed:
            factors += adjoint(rates / forward(shares))
        moved = shares * factors
        change = float(np.abs(moved - shares).sum())
        shares = moved
        if change < STEPS_ENOUGH:
            break
    return LikelyShares(shares, change)


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
