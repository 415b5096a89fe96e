"""Made-up marginals, and the plain dense algebra that the clever kind is checked against."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.query import Scope
from inference.marginals.projection import meeting_sets
from inference.marginals.table import NoisyTable

Floats = NDArray[np.float64]
LEVELS = {"a": 3, "b": 2, "c": 2, "d": 4}


def shape_of(scope: Scope, sizes: dict[str, int] = LEVELS) -> tuple[int, ...]:
    return tuple(sizes[name] for name in scope)


@st.composite
def noisy_tables(draw: st.DrawFn) -> list[NoisyTable]:
    """One to five tables over up to three of four axes, of unlike variances; some of one scope."""
    scopes = draw(
        st.lists(st.sets(st.sampled_from(sorted(LEVELS)), max_size=3), min_size=1, max_size=5)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    found = []
    for names in scopes:
        scope = tuple(sorted(names))
        values = 20 + 10 * rng.standard_normal(shape_of(scope))
        found.append(NoisyTable(scope, values, float(rng.choice([0.5, 1.0, 2.0, 4.0]))))
    return found


def marginal_matrix(scope: Scope, onto: Scope, sizes: dict[str, int] = LEVELS) -> Floats:
    """Sums of the cells of `scope` to the cells of `onto`, a row each."""
    matrix: Floats = np.ones((1, 1))
    for name in scope:
        size = sizes[name]
        factor = np.eye(size) if name in onto else np.ones((1, size))
        matrix = np.asarray(np.kron(matrix, factor), dtype=np.float64)
    return matrix


def projection_matrix(tables: Sequence[NoisyTable], *, is_total_public: bool = False) -> Floats:
    """The weighted least-squares projection on all agreements, by their null space.

    With a public total, of the rest of the tables after it was taken off evenly.
    """
    starts = np.cumsum([0, *(table.values.size for table in tables)])
    rows = []
    for shared in meeting_sets(table.scope for table in tables):
        axes = tuple(sorted(shared))
        holders = [place for place, table in enumerate(tables) if shared.issubset(table.scope)]
        for first, second in pairwise(holders):
            row = np.zeros((int(np.prod(shape_of(axes))), int(starts[-1])))
            for place, sign in ((first, 1), (second, -1)):
                part = marginal_matrix(tables[place].scope, axes)
                row[:, starts[place] : starts[place + 1]] = sign * part
            rows.append(row)
    if is_total_public:
        for place in range(len(tables)):
            row = np.zeros((1, int(starts[-1])))
            row[:, starts[place] : starts[place + 1]] = 1
            rows.append(row)
    noise = np.repeat([table.variance for table in tables], [table.values.size for table in tables])
    if not rows:
        return np.eye(noise.size)
    agree = np.vstack(rows)
    weighted = agree * noise
    middle = np.linalg.pinv(weighted @ agree.T, rcond=1e-10)
    identity: Floats = np.eye(noise.size)
    projection: Floats = identity - weighted.T @ middle @ agree
    return projection


def flat(values: Sequence[Floats]) -> Floats:
    return np.concatenate([np.ravel(cells) for cells in values])
