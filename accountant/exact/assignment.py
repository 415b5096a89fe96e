"""The best assignment of a binary child's values to combinations of its parents, exactly.

Part of the score F (scores.py): the least number of records by which a table falls short of one in
which the parents determine the child and both its values are equally likely. A two-sided knapsack,
solved by dynamic programming over the reachable states, without those that another state dominates
or a bound excludes. The states left are at most as many as records, and mostly a few.

Whole numbers throughout. Its arguments and results are private.
Proof: proofs/choices.md, "The score F is exact".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

PRICE_UNITS: Final = 2**16  # of one record in the bound; 2**40 records times 2**18 stay below 2**62


def least_lack(by_value: NDArray[np.int64], n_records: int) -> int:
    """The minimum over assignments of ``(n - 2 K0)+ + (n - 2 K1)+``.

    Parameters
    ----------
    by_value : (2, n_combinations) ndarray of int64
        The records of each combination whose child is 0, and those whose child is 1. ``K_x`` is
        the sum of ``by_value[x]`` over the combinations that are assigned `x`.
    n_records : int
        At least their sum.
    """
    # Floats for the order alone: any order gives the minimum
    order = np.argsort(by_value[1] / np.maximum(by_value.sum(axis=0), 1), kind="stable")
    by_value = by_value[:, order]
    zero, one = by_value
    # A first bound: assign 0 to the combinations with the largest share of 0, for every number
    prefixes = np.stack(
        [np.append(0, np.cumsum(zero)), int(one.sum()) - np.append(0, np.cumsum(one))]
    )
    lacks = _lack(prefixes, n_records)
    cut = int(lacks.argmin())
    best = int(lacks[cut])
    start = np.zeros((2, 1), dtype=np.int64)
    prices = max(
        (_prices(by_value, place) for place in (cut - 1, cut, None)),
        key=lambda prices: int(_bounds(start, by_value, prices, n_records)[0]),
    )
    # The clearest combinations first: assigning them otherwise is excluded at once
    clarity = np.abs(zero * prices[0] - one * prices[1])
    by_value = by_value[:, np.argsort(-clarity, kind="stable")]
    reached = start
    for place in range(by_value.shape[1]):
        rest = by_value[:, place + 1 :]
        reached = _with(reached, by_value[:, place])
        reached = reached[:, _bounds(reached, rest, prices, n_records) < best]
        reached = _undominated(reached)
    return min(best, int(_lack(reached, n_records).min(initial=best)))


def _lack(sums: NDArray[np.int64], n_records: int) -> NDArray[np.int64]:
    lacks: NDArray[np.int64] = np.maximum(n_records - 2 * sums, 0).sum(axis=0)
    return lacks


def _prices(by_value: NDArray[np.int64], place: int | None) -> tuple[int, int]:
    """Prices of a record of either value at which one combination is worth the same to both."""
    if place is None or not 0 <= place < by_value.shape[1]:
        return PRICE_UNITS, PRICE_UNITS
    zero, one = (int(count) for count in by_value[:, place])
    largest = max(zero, one, 1)
    return PRICE_UNITS * one // largest, PRICE_UNITS * zero // largest


def _bounds(
    reached: NDArray[np.int64], rest: NDArray[np.int64], prices: tuple[int, int], n_records: int
) -> NDArray[np.int64]:
    """The least lack of each state, however the rest is assigned."""
    priced = rest * np.array(prices)[:, np.newaxis]
    still = 2 * int(priced.max(axis=0).sum())
    lacks = prices[0] * (n_records - 2 * reached[0]) + prices[1] * (n_records - 2 * reached[1])
    bounds: NDArray[np.int64] = -((still - lacks) // PRICE_UNITS)
    return bounds


def _with(reached: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states reached with one more combination, assigned either way."""
    zero, one = reached.copy(), reached.copy()
    zero[0] += counts[0]
    one[1] += counts[1]
    return np.concatenate((zero, one), axis=1)


def _undominated(reached: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states that no other state matches in both values; one of those that are equal."""
    order = np.lexsort((-reached[1], -reached[0]))
    ones = reached[1, order]
    best_before = np.append(-1, np.maximum.accumulate(ones)[:-1])
    return reached[:, order[ones > best_before]]
