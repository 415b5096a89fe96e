"""Points of a box that contains several errors together, however they are correlated.

How errors are correlated reveals which measurements the answers rest on. Where the history is
private, the interval of a formula is its range on a box that contains all of its parts with the
requested confidence.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inference.posterior import Posterior

Floats = NDArray[np.float64]

N_PARTS_MAX: Final = 6  # of a formula; with more, the interval is the public range


def box_errors(
    parts: Sequence[Sequence[Posterior]], confidence: float, n_points: int, rng: np.random.Generator
) -> Floats | None:
    """Errors of the parts' rows, at points of their boxes; None if there are too many parts.

    Parameters
    ----------
    parts : sequence of (sequence of Posterior)
        The rows of each linear part of a formula. Every row has a box of its own.
    confidence : float
        The probability with which all parts of a row lie in its box (Bonferroni).
    n_points : int
        The minimum number of points. Corners, and midpoints of edges and faces, are always among
        them; the others are random points inside, to sample the formula there.
    rng : numpy.random.Generator

    Returns
    -------
    (rows of all parts, points) ndarray of float64, optional
    """
    if len(parts) > N_PARTS_MAX:
        return None
    grid = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(parts)))).T
    inside = rng.uniform(-1.0, 1.0, (len(parts), max(0, n_points - grid.shape[1])))
    points = np.concatenate((grid, inside), axis=1)
    each = 1 - (1 - confidence) / len(parts)
    widths = [np.array([[row.half_width(each)] for row in rows]) for rows in parts]
    # A half-width may be infinite, of which nothing is nothing and not undefined.
    return np.concatenate(
        [
            np.where(at == 0, 0.0, width * np.where(at == 0, 1.0, at))
            for width, at in zip(widths, points, strict=True)
        ]
    )
