"""The published protocol (RRBA, blocks), as printed, for tests that convict it. Never to be served.

After each block its table becomes the raw estimate, min-max normalised if a cell is negative, which
sets its smallest cell to 0; the answer is the mean of the last two raw estimates.
"""

from fractions import Fraction

import numpy as np

from local_dp.channels.channel import Floats

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
