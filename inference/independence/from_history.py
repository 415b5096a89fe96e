"""A noisy table that was answered from the history, as the test takes it: counts and their noise.

Cells that were answered from shared measurements err together, and their draws do too. What is
read off here is noisy values, weights and scales; the history is not changed.
"""

import math
from collections.abc import Sequence

import numpy as np

from inference.history import History
from inference.independence.cell_noise import Floats, SampledCells
from inference.joint import draw_errors
from inference.posterior import Posterior


def table_from_history(
    cells: Sequence[Posterior], history: History, shape: tuple[int, ...]
) -> tuple[Floats, SampledCells]:
    """The noisy counts and the joint law of their noise.

    Parameters
    ----------
    cells : sequence of Posterior
        The answers for the cells of a table, the last axis fastest; from `history`, as it is now or
        as it was when it was shorter.
    history : History
        What their terms name places of. It may grow while the noise is in use.
    shape : tuple of int
        The table's.

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
