"""The design of a collection: which attributes are asked about together.

A view is a list of combinations without a common attribute; every pair of attributes (or every
larger set, if asked) lies inside a combination of some view. A design is made of names alone, so it
costs no privacy, and hides nothing either. The same names give the same design.
"""

from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope
from cube.refusals import TooLarge

View: TypeAlias = tuple[Scope, ...]

N_TRIED = 200  # random views, of which the one that covers most is kept
N_SETS_MAX = 10_000  # that are to be covered: beyond this, a design takes more than seconds
PAIR = 2


def designed_views(names: Sequence[str], size: int, *, strength: int = PAIR) -> tuple[View, ...]:
    """Views of disjoint combinations that together cover every set of `strength` attributes.

    Parameters
    ----------
    names : sequence of str
        The attributes, distinct.
    size : int
        Of each combination, from 2 to the number of attributes.
    strength : int
        The size of the sets to be covered, from 2 to `size`.

    Returns
    -------
    tuple of tuple of scopes
        For pairs each pair exactly once, in the fewest views there can be. Larger combinations are
        searched for: a set may be covered more than once. Attributes that are left over are not in
        a view.

    Examples
    --------
    >>> for view in designed_views(("a", "b", "c", "d"), 2):
    ...     print(view)
    (('a', 'd'), ('b', 'c'))
    (('a', 'c'), ('b', 'd'))
    (('a', 'b'), ('c', 'd'))
    """
    if len(set(names)) != len(names):
        raise ValueError("an attribute is named twice")
    if not PAIR <= size <= len(names):
        raise ValueError(f"a combination has 2 to {len(names)} attributes, not {size}")
    if not PAIR <= strength <= size:
        raise ValueError(f"sets of 2 to {size} attributes can be covered, not of {strength}")
    if comb(len(names), strength) > N_SETS_MAX:
        raise TooLarge(f"A design of more than {N_SETS_MAX} sets of attributes is too large.")
    return _round_robin(names) if size == PAIR else _greedy(names, size, strength)


def _round_robin(names: Sequence[str]) -> tuple[View, ...]:
    """The circle method: one stays, the others move on; a bye where the number is odd."""
    places: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    views = []
    for _ in range(len(places) - 1):
        facing = zip(places, reversed(places), strict=True)
        met = [_scope(pair) for pair in list(facing)[: len(places) // 2] if None not in pair]
        views.append(tuple(met))
        places = [places[0], places[-1], *places[1:-1]]
    return tuple(views)


def _scope(names: Sequence[str | None]) -> Scope:
    return tuple(sorted(name for name in names if name is not None))


def _greedy(names: Sequence[str], size: int, strength: int) -> tuple[View, ...]:
    """One view after another, each the best of many random ones.

    Every view that is tried begins with a set that is not covered, so that there is progress, and
    no more rounds than sets.
    """
    # The design is public and the same for all; what is drawn here protects nothing.
    digest = sha256("\0".join([*names, str(size), str(strength)]).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    n_groups = len(names) // size
    missing = np.zeros((len(names),) * strength, dtype=bool)
    for one in combinations(range(len(names)), strength):
        missing[one] = True
    views = []
    while missing.any():
        first = np.argwhere(missing)[0]
        others = np.setdiff1d(np.arange(len(names)), first)
        tried = np.array([np.concatenate([first, rng.permutation(others)]) for _ in range(N_TRIED)])
        groups = np.sort(tried[:, : n_groups * size].reshape(N_TRIED, n_groups, size), axis=2)
        best = groups[_n_new(groups, missing, strength).argmax()]
        for inside in combinations(range(size), strength):
            missing[tuple(best[:, inside].T)] = False
        views.append(tuple(_scope([names[place] for place in group]) for group in best))
    return tuple(views)


def _n_new(
    groups: NDArray[np.int64], missing: NDArray[np.bool_], strength: int
) -> NDArray[np.int64]:
    """How many missing sets each of the tried views covers."""
    found = np.zeros(len(groups), dtype=np.int64)
    for inside in combinations(range(groups.shape[2]), strength):
        found += missing[tuple(np.moveaxis(groups[:, :, inside], 2, 0))].sum(axis=1)
    return found
