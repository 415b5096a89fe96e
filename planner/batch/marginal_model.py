"""A batch in numbers: the variance of each query, and the cost, as functions of blocks' weights.

Two kinds of blocks may be measured: marginals, on the scopes of the queries and on unions of them;
and queries themselves. What all marginals together say of a query has a variance in closed form
(`interactions.py`); what the query's own rows say beside that is combined with it as two
independent estimates are. So the variance is never less than that of the best estimate from
everything, and equal to it where only marginals are measured.

Numbers only. Nothing here knows SQL, budgets or noisy values.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST = 1e-100  # in place of nothing, under logarithms and fractions; its square is a number


@dataclass(frozen=True, eq=False)
class MarginalModel:
    """The numbers.

    Parameters
    ----------
    parts : (m, n_interactions) ndarray of float64
        What each query has of each interaction; see `interactions`.
    is_read : (m,) ndarray of bool
        Whether marginals say anything of the query at all.
    informed : (n_interactions, n_marginals) ndarray of float64
        What the squared weight of a marginal adds to the precision of an interaction.
    own : (m,) ndarray of int64
        The block that is the query itself; it may be a marginal.
    loads : (n_blocks,) ndarray of float64
        What a unit of a block's weight costs a cell, at most.
    bought : (n_blocks,) ndarray of float64
        The weight that each block has already.
    goals : (m,) ndarray of float64
        The standard deviation that each query may have.
    """

    parts: Floats
    is_read: NDArray[np.bool_]
    informed: Floats
    own: NDArray[np.int64]
    loads: Floats
    bought: Floats
    goals: Floats

    @property
    def n_marginals(self) -> int:
        """The number of blocks that are marginals; they come first."""
        return self.informed.shape[1]

    def fitted(self, deviations: Floats, missed: Floats) -> "MarginalModel":
        """The model whose goals are those at which each query would have met its target.

        Parameters
        ----------
        deviations : (m,) ndarray of float64
            By this model.
        missed : (m,) ndarray of float64
            The half-width that was forecast then, relative to the target. A query for which it is
            infinite is not read from marginals, whatever the model says.
        """
        is_lost = ~np.isfinite(missed)
        goals = np.where(is_lost, self.goals, deviations / np.where(is_lost, 1.0, missed))
        return replace(self, goals=goals, is_read=self.is_read & ~is_lost)

    def cost(self, weights: Floats) -> float:
        """What raising every block to its weight adds to any cell, at most."""
        return float((np.maximum(weights - self.bought, 0.0) * self.loads).sum())

    def deviations(self, weights: Floats) -> Floats:
        """The standard deviation of each query, (m,); enormous where nothing is known."""
        precision, _ = self._precision(weights)
        return np.asarray(1.0 / np.sqrt(np.maximum(precision, LEAST)), dtype=np.float64)

    def logs(self, weights: Floats) -> tuple[Floats, Floats]:
        """The logarithm of each query's deviation over its goal, (m,), and its derivatives.

        The derivatives, (m, n_blocks), are by the weights.
        """
        precision, by_square = self._precision(weights)
        precision = np.maximum(precision, LEAST)
        logs = -0.5 * np.log(precision) - np.log(self.goals)
        return logs, -by_square * weights / precision[:, np.newaxis]

    def _precision(self, weights: Floats) -> tuple[Floats, Floats]:
        """One over each query's variance, and its derivatives by the squares of the weights."""
        squares = np.square(weights)
        known = np.maximum(self.informed @ squares[: self.n_marginals], LEAST)
        by_square = np.zeros((self.goals.size, weights.size))
        variance = np.maximum(self.parts @ (1.0 / known), LEAST)
        precision = np.where(self.is_read, 1.0 / variance, 0.0)
        slopes = (self.parts / np.square(known)) @ self.informed
        by_square[:, : self.n_marginals] = np.square(precision)[:, np.newaxis] * slopes
        (rows,) = np.nonzero((self.own >= self.n_marginals) | ~self.is_read)
        blocks = self.own[rows]
        precision[rows] += squares[blocks] / 2
        by_square[rows, blocks] += 0.5
        return precision, by_square
