"""Weights of marginals and queries that meet all goals of a batch, at little cost.

For a given cost, the weights are sought at which the worst query is closest to its goal; then the
cost at which the worst query just meets it. The shares of the cost are the exponentials of free
numbers, so that nothing is constrained; the maximum over the queries is smoothed, less and less.

The problem is not convex, as noise is Laplace: a marginal's weight counts by its square and is paid
by itself, so weights tend to be large or nothing. Several starts are followed; the best is kept.
Deterministic: the same batch gives the same weights.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from cube.pace import checkpoint
from planner.batch.marginal_model import MarginalModel

SHARPNESS = (10.0, 100.0, 1000.0, 10_000.0)  # of the smoothed maximum, one after the other
N_STEPS_MAX = 300  # of each descent
N_COSTS_MAX = 12  # that are tried; without a history the second is right
CLOSE = 1e-4  # the worst query is this close to its goal, relative
FADED = (2e-3, 2e-4, 2e-5)  # relative to the largest weight; lighter blocks are not bought ..
MISSED_MAX = 1.02  # .. if the goals are met, or nearly, without them
STEEPEST = 4.0  # of the guessed change of the cost, as a power of what is missed

Floats = NDArray[np.float64]


def least_weights(model: MarginalModel, starts: Iterable[Floats]) -> Floats:
    """The weights, (n_blocks,), of least cost that were found.

    Parameters
    ----------
    model : MarginalModel
    starts : iterable of (n_blocks,) ndarray of float64
        Positive shares of the cost, one start or more.
    """
    return min((_meeting(model, start) for start in starts), key=model.cost)


def _meeting(model: MarginalModel, start: Floats) -> Floats:
    """Weights at which every goal is met, from one start."""
    logits = np.log(start / start.sum())
    cost = model.cost(model.bought + start / start.sum() / model.loads)
    tried: list[tuple[float, float]] = []
    for _ in range(N_COSTS_MAX):
        checkpoint()
        logits = _closest(model, cost, logits)
        missed = float(model.logs(_at(model, cost, logits))[0].max())
        if abs(missed) <= CLOSE:
            break
        tried.append((math.log(cost), missed))
        cost *= math.exp(min(max(_correction(tried), -STEEPEST), STEEPEST))
    return _cleared(model, _at(model, cost, logits))


def _correction(tried: list[tuple[float, float]]) -> float:
    """The change of the cost's logarithm that should meet the goals: by the last two costs."""
    cost, missed = tried[-1]
    slope = 1.0  # without a history, the deviations fall as the cost grows
    if len(tried) > 1 and tried[-2][0] != cost:
        slope = (tried[-2][1] - missed) / (cost - tried[-2][0])
    return missed / min(max(slope, 1 / STEEPEST), STEEPEST)


def _closest(model: MarginalModel, cost: float, logits: Floats) -> Floats:
    """The shares of a cost at which the worst query is closest to its goal."""
    for sharpness in SHARPNESS:
        found = minimize(
            _smoothed,
            logits,
            args=(model, cost, sharpness),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": N_STEPS_MAX, "maxcor": 30},
        )
        logits = np.asarray(found.x, dtype=np.float64)
    return logits


def _smoothed(
    logits: Floats, model: MarginalModel, cost: float, sharpness: float
) -> tuple[float, Floats]:
    """The smoothed maximum of the logarithms, and its gradient by the logits."""
    weights = _at(model, cost, logits)
    logs, slopes = model.logs(weights)
    value = float(logsumexp(sharpness * logs))
    by_weight = np.exp(sharpness * logs - value) @ slopes
    by_share = by_weight * (weights - model.bought)
    share = (weights - model.bought) * model.loads / cost
    return value / sharpness, by_share - share * by_share.sum()


def _at(model: MarginalModel, cost: float, logits: Floats) -> Floats:
    """The weights when a cost is shared like this."""
    shares = np.exp(logits - logsumexp(logits))
    return np.asarray(model.bought + cost * shares / model.loads, dtype=np.float64)


def _cleared(model: MarginalModel, weights: Floats) -> Floats:
    """The weights without blocks that hardly matter, the others raised to meet the goals again."""
    for share in FADED:
        kept = np.where(weights > share * weights.max(), weights, model.bought)
        missed = float((model.deviations(kept) / model.goals).max())
        if missed <= MISSED_MAX:
            added = (kept - model.bought) * max(1.0, missed)
            return np.asarray(model.bought + added, dtype=np.float64)
    return weights
