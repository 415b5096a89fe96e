"""A noisy table answered from the history, in the form that the test needs: counts and noise.

Cells that are answered from shared measurements have dependent errors, and so are their draws.
Only noisy values, weights and scales are read here; the history is not changed.
"""

import math
from collections.abc import Sequence

import numpy as np

from inference.independence.cell_noise import Floats, SampledCells
from inference.joint import draw_errors
from inference.noise_places import Places
from inference.posterior import Posterior


def table_from_history(
    cells: Sequence[Posterior], history: Places, shape: tuple[int, ...]
) -> tuple[Floats, SampledCells]:
    """The noisy counts and the joint law of their noise.

    Parameters
    ----------
    cells : sequence of Posterior
        The answers for the cells of a table, the last axis fastest; from `history`, as it is now or
        as it was when it was shorter.
    history : Places
        The history whose places the terms of the answers name. It may grow while the noise is in
        use.
    shape : tuple of int
        The shape of the table.

    Returns
    -------
    (noisy, noise)
        The values in the table's shape, and the law of their errors.

    Raises
    ------
    ValueError
        If the cells do not fill the table, or an answer has no noise.
    """
    if len(cells) != math.prod(shape):
        raise ValueError(f"{len(cells)} answers do not fill a table of {shape}")
    answers = tuple(cells)

    def errors(n_tables: int, generator: np.random.Generator) -> Floats:
        return draw_errors(answers, history, n_tables, generator).T.reshape(n_tables, *shape)

    values = np.array([cell.value for cell in answers], dtype=np.float64)
    spread = np.array([cell.standard_deviation for cell in answers], dtype=np.float64)
    return values.reshape(shape), SampledCells(spread.reshape(shape), errors)
