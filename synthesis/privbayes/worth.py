"""What parents are worth in a noisy table: whether a law is nearer to the truth with them.

Of one table, and of tables that are drawn like it; how these are drawn is the caller's.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from scipy.stats import gamma

from cube.query import Scope
from synthesis.networks.score import mutual_information
from synthesis.tables import Floats

FALSE_ODDS: Final = 0.02  # that a table of independent columns gets a parent, of all its columns

Draw: TypeAlias = Callable[[Floats], Floats]


def parents_worth(shares: Floats, drawn: Draw, odds: float) -> float:
    """What parents tell of a column in a table, less what noise costs, in nats.

    Parameters
    ----------
    shares : (n_classes of child, n_classes of parent, ...) ndarray of float64
        Not negative, with sum 1.
    drawn : callable
        Shares of tables of a law in the shape of `shares`, noisy in the same way: (n_tables, ...).
    odds : float
        Of taking a parent that tells nothing for one that does.

    Returns
    -------
    float
        Positive if each of the parents is worth having beside the others.

    Notes
    -----
    Distance is Kullback and Leibler's. A law without parents is too far by their information `I`;
    one with them, by what noise does to it. To second order that is the mean `m` of the information
    in tables of independent columns. The table shows ``I + m`` on average, so what parents are
    worth is ``found - 2 m``: for noise that is only of counts, Akaike's criterion.

    That is right on average over tables, not for the best of many candidates, which is the one that
    noise favours. So a parent also has to tell, given the others, more than chance reaches at these
    odds; and twice its mean, so that it pays for its own noise. Chance is told by tables in which
    the child does not depend on this parent given the others.

    Information by chance is nearly a sum of squares, with a weight each. Its law is approximated by
    the gamma law of its mean and variance (Satterthwaite), with no more degrees of freedom than the
    table has: fewer draws than odds have zeros say little about a tail.
    """
    axes = tuple(range(1, shares.ndim))
    by_chance = _information(drawn(_independent(shares, axes)))
    if len(axes) == 1:
        beyond = _beyond_chance(shares, 1, by_chance, odds)
    else:
        beyond = min(
            _beyond_chance(shares, axis, _gain(drawn(_independent(shares, (axis,))), axis), odds)
            for axis in axes
        )
    if beyond <= 0:
        return beyond
    return float(_information(shares[np.newaxis])[0] - 2 * by_chance.mean())


def n_simulations(parents: Scope) -> int:
    """How often tables are drawn for these parents."""
    return 1 if len(parents) == 1 else 1 + len(parents)


def _beyond_chance(shares: Floats, axis: int, by_chance: Floats, odds: float) -> float:
    """What a parent tells, given the others, less what it has to."""
    n_free = (shares.shape[0] - 1) * (shares.shape[axis] - 1) * shares.size
    n_free //= shares.shape[0] * shares.shape[axis]
    mean, variance = float(by_chance.mean()), float(by_chance.var())
    reached = 0.0
    if mean > 0 and variance > 0:
        half_freedom = min(mean**2 / variance, n_free / 2)
        reached = float(gamma.isf(odds, half_freedom, scale=mean / half_freedom))
    return float(_gain(shares[np.newaxis], axis)[0] - max(reached, 2 * mean))


def _independent(shares: Floats, axes: tuple[int, ...]) -> Floats:
    """The law in which the child does not depend on some parents, given the others."""
    own, parents = shares.sum(axis=axes, keepdims=True), shares.sum(axis=0, keepdims=True)
    given = own.sum(axis=0, keepdims=True)
    law = parents * np.divide(own, given, out=np.zeros_like(own), where=given > 0)
    return np.asarray(law / law.sum())


def _information(tables: Floats) -> Floats:
    return mutual_information(tables, 0)


def _gain(tables: Floats, axis: int) -> Floats:
    """What a parent adds to the information of the others, in each of several tables."""
    return _information(tables) - _information(tables.sum(axis=axis + 1))
