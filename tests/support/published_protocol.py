"""The published protocol (RRBA, blocks), as printed, for tests that convict it. Never to be served.

And what is right of it, its tables of fakes that follow earlier answers, with a floor: served are
equal fakes, which are more precise.

After each block its table becomes the raw estimate, min-max normalised if a cell is negative, which
sets its smallest cell to 0; the answer is the mean of the last two raw estimates.
"""

from fractions import Fraction

import numpy as np

from local_dp.channels.channel import Floats
from local_dp.channels.randomised_response import WEIGHTS_MAX

CELL_GONE = 1e-12


def last_two_blocks(
    truth: Floats, keep: Fraction, n_answers: int, n_in_block: int, rng: np.random.Generator
) -> tuple[Floats, bool]:
    """The protocol's answer, and whether a table with a zero was ever sent."""
    p = float(keep)
    table = np.full(truth.size, 1 / truth.size)
    raw: list[Floats] = []
    proved = False
    for _ in range(n_answers // n_in_block):
        cells = rng.choice(truth.size, n_in_block, p=truth)
        fakes = rng.choice(truth.size, n_in_block, p=table)
        answers = np.where(rng.random(n_in_block) < p, cells, fakes)
        observed = np.bincount(answers, minlength=truth.size) / n_in_block
        estimate = (observed - (1 - p) * table) / p
        raw.append(estimate)
        if estimate.min() < 0:
            estimate = (estimate - estimate.min()) / np.ptp(estimate)
        table = np.maximum(estimate, 0)
        table /= table.sum()  # it could not be drawn from otherwise
        proved |= bool(table.min() < CELL_GONE)
    return (raw[-1] + raw[-2]) / 2, proved


def floored_weights(shares: Floats, floor: Fraction) -> tuple[int, ...]:
    """A fake-answer table that follows estimated shares, but for a floor below every cell.

    About ``(1 - floor) shares + floor / K``, in whole weights; no cell is below ``floor / K``, so
    the keep-probability for that constant suits every such table. Shares may be any numbers:
    negative ones count as 0. The smaller its floor, the less often may the truth be told at the
    same epsilon, so a uniform table is usually better.
    """
    if not 0 < floor <= 1:
        raise ValueError(f"a floor is above 0 and at most 1, not {floor}")
    total = WEIGHTS_MAX - len(shares)
    usable = np.maximum(shares, 0.0)
    if not usable.sum() > 0:
        usable = np.ones(len(shares))
    least = -(-floor.numerator * total // (floor.denominator * len(shares)))
    above = max(0, total - least * len(shares))
    return tuple(least + int(above * float(part)) for part in usable / usable.sum())
