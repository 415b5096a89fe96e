"""A workspace: the part of the history that lives on a few axes, ready to estimate from.

It holds the atoms of its rows and the online best linear unbiased estimator over them. Rows that
would pass a limit on size are left out, which widens intervals and biases nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.measurement import Measurement
from cube.query import Scope
from inference.atoms import N_ENTRIES_MAX, Atoms
from inference.blue import OnlineBlue

N_ATOMS_MAX = 4096  # with N_VALUES_MAX: matrices of at most 128 MB and answers in milliseconds
N_VALUES_MAX = 4096


@dataclass(frozen=True, eq=False)
class LinearEstimates:
    """How rows of a block follow from noisy values.

    Parameters
    ----------
    coefficients : (n_rows, n_values) ndarray of float64
        Estimate = coefficients @ noisy values.
    is_estimable : (n_rows,) ndarray of bool
        Rows that the history determines.
    residual : (n_rows,) ndarray of float64
        Largest error of any cell's coefficient; times the number of records it bounds the bias.
    """

    coefficients: NDArray[np.float64]
    is_estimable: NDArray[np.bool_]
    residual: NDArray[np.float64]


class Workspace:
    """The rows of the history whose scope lies within some axes."""

    def __init__(self, axes: Scope, sizes: tuple[int, ...]) -> None:
        self.axes = axes
        self._atoms = Atoms.undivided(axes, sizes)
        self._blue = OnlineBlue(self._atoms.sizes)
        self.values: NDArray[np.float64] = np.empty(0)
        """The noisy values in use, (n_values,)."""
        self.noise_scales: NDArray[np.float64] = np.empty(0)
        """The Laplace scale of each, (n_values,)."""
        self.lattice_steps: NDArray[np.float64] = np.empty(0)
        """The lattice step of each, (n_values,)."""

    @property
    def n_bytes(self) -> int:
        """The memory that its matrices hold."""
        return self._blue.n_bytes

    def add(self, measurements: Sequence[Measurement]) -> None:
        """Take measurements in, but for those that would pass a limit."""
        if not measurements or self._take(measurements):
            return
        if len(measurements) == 1:
            return  # left out
        half = len(measurements) // 2
        self.add(measurements[:half])
        self.add(measurements[half:])

    def _take(self, measurements: Sequence[Measurement]) -> bool:
        """Take all of them in at once, or none if together they pass a limit."""
        n_values = self.values.size + sum(one.block.n_rows for one in measurements)
        if n_values > N_VALUES_MAX:
            return False
        refinement = self._atoms.refined([one.block for one in measurements])
        if refinement is None or refinement[0].n_atoms > N_ATOMS_MAX:
            return False
        atoms, parents, rows = refinement
        if atoms.n_atoms > self._atoms.n_atoms:
            self._blue.split(parents, atoms.sizes)
        self._atoms = atoms
        scales = _for_each_row(measurements, [one.noise_scale for one in measurements])
        steps = _for_each_row(measurements, [one.lattice_step for one in measurements])
        self._blue.add(rows, 1.0 / scales)
        self.values = np.concatenate((self.values, *(one.values for one in measurements)))
        self.noise_scales = np.concatenate((self.noise_scales, scales))
        self.lattice_steps = np.concatenate((self.lattice_steps, steps))
        return True

    def estimate(self, block: QueryBlock) -> LinearEstimates | None:
        """The best linear unbiased estimate of each row of a block.

        None if the block is too fine to lay out beside this history.
        """
        if block.n_rows * self.values.size > N_ENTRIES_MAX:
            return None
        rows = self._atoms.rows(block)
        if rows is None:
            return None
        combination = self._blue.combine(rows.coefficients)
        return LinearEstimates(
            coefficients=combination.coefficients,
            is_estimable=combination.estimable & rows.is_constant,
            residual=combination.residual,
        )

    def refresh(self) -> None:
        """Recompute the estimator's factorisation from its rows."""
        self._blue.refresh()


def _for_each_row(
    measurements: Sequence[Measurement], numbers: Sequence[float]
) -> NDArray[np.float64]:
    return np.repeat(np.array(numbers), [one.block.n_rows for one in measurements])
