"""Linear queries on groups as coefficients over the cells of a combination."""

import math
from collections.abc import Mapping

import numpy as np

from cube.query import LinearQuery, QueryBlock, Scope
from cube.refusals import TooLarge
from inference.marginals.table import spread
from local_dp.channels.channel import Floats

N_COEFFICIENTS_MAX = 2**23  # cells times rows: 64 MB


def coefficients_of(block: QueryBlock, sizes: Mapping[str, int]) -> tuple[Floats, Floats]:
    """What each row of a block sums, over the cells of the block's scope.

    Parameters
    ----------
    block : QueryBlock
    sizes : mapping
        The number of levels of each axis.

    Returns
    -------
    coefficients : (n_cells of the scope, n_rows) ndarray
        Of counts.
    constants : (n_rows,) ndarray

    Raises
    ------
    TooLarge
        If there are too many of them.
    """
    scope = block.scope
    n_cells = math.prod(sizes[name] for name in scope)
    if n_cells * block.n_rows > N_COEFFICIENTS_MAX:
        raise TooLarge(f"{block.n_rows} rows over {n_cells} cells are too many at once.")
    whole = _dense(block.query, scope, sizes)
    constants = np.full(block.n_rows, float(block.query.constant))
    if block.partition is None:
        return whole[:, np.newaxis], constants
    shape = [sizes[name] for name in scope]
    labels = spread(block.partition.labels.astype(np.float64), block.partition.axes, scope)
    labels = np.broadcast_to(labels, shape).ravel()
    return whole[:, np.newaxis] * (labels[:, np.newaxis] == np.arange(block.n_rows)), constants


def _dense(query: LinearQuery, scope: Scope, sizes: Mapping[str, int]) -> Floats:
    found = np.zeros([sizes[name] for name in scope])
    for term in query.terms:
        product: Floats = np.array(float(term.scale))
        for factor in term.factors:
            product = product * spread(factor.values.astype(np.float64), factor.axes, scope)
        found += product
    return found.ravel()
