"""Points of a box: where several errors lie together, whatever they have to do with each other.

What errors have in common shows what the answers rest on. Where that is not to be shown, the
interval of a formula is its range on a box in which all of its parts lie with the confidence.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from inference.posterior import Posterior

Floats = NDArray[np.float64]

N_PARTS_MAX: Final = 6  # of a formula; with more, nothing is said but the public range


def box_errors(
    parts: Sequence[Sequence[Posterior]], confidence: float, n_points: int, rng: np.random.Generator
) -> Floats | None:
    """Errors of the parts' rows, on points of their boxes; None if there are too many parts.

    Parameters
    ----------
    parts : sequence of (sequence of Posterior)
        For each linear part of a formula, its rows. Every row has a box of its own.
    confidence : float
        With which all parts of a row lie in its box (Bonferroni).
    n_points : int
        At the least; corners, and middles of edges and faces, are always among them. The others
        lie anywhere inside, to find what a formula does there.
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
    return np.concatenate(
        [
            np.array([row.half_width(each) for row in rows])[:, None] * points[place]
            for place, rows in enumerate(parts)
        ]
    )
