"""What the intervals of a hierarchy leave of a query: a sum of whole groups, and a row beside it.

A range whose ends lie within groups of the finest partition is the whole groups between them, and
what is left at both ends. On a product of ranges the rest is a frame. The whole part is read from
the hierarchy; the rest is a row of its own, which hardly any other query's rest meets.

Nothing here knows noise, values or budgets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from cube.block import QueryBlock
from cube.classes import AxisClasses, first_places
from cube.grid import Grid
from cube.pieces import Pieces, runs_of
from cube.query import Factor, LinearQuery, Term

N_CUT_MAX = 8  # groups along one axis; a query that cuts more is no sum of a few ranges


@dataclass(frozen=True, slots=True)
class Divided:
    """A row of whole numbers as ``whole + multiplier * rest``.

    Parameters
    ----------
    whole : QueryBlock
        Constant on every group.
    rest : QueryBlock, optional
        In lowest terms; None if the query is whole groups.
    multiplier : float
        Of the rest.
    """

    whole: QueryBlock
    rest: QueryBlock | None = None
    multiplier: float = 1.0


def divided_at(leaves: Grid, block: QueryBlock) -> Divided | None:
    """A block's whole groups of a partition, and the rest of it.

    None if no whole group is in it, or too many groups are cut for the rest to be narrow. A block
    of several rows, or of a sum of products, is divided only if it cuts none.
    """
    factors = _along_single_axes(block)
    if factors is None:
        return Divided(block) if leaves.refined([block]) is leaves else None
    inner = [_whole_of(leaves.classes[leaves.position[one.axes[0]]], one) for one in factors]
    found = [one for one in inner if one is not None]
    if len(found) < len(inner):
        return None
    if all(one is own for one, own in zip(found, factors, strict=True)):
        return Divided(block)
    scale = block.query.terms[0].scale
    rest = QueryBlock(LinearQuery(_frame(scale, factors, found)))
    row, multiplier = rest.primitive
    whole = QueryBlock(LinearQuery((Term(scale, tuple(found)),)))
    return Divided(whole, row, float(multiplier))


def is_divided_at(leaves: Grid, block: QueryBlock) -> bool:
    """Whether `divided_at` gives anything: the factors that many rows share are looked at once."""
    factors = _along_single_axes(block)
    if factors is None:
        return leaves.refined([block]) is leaves
    return all(
        _has_whole(leaves.classes[leaves.position[factor.axes[0]]], factor) for factor in factors
    )


# By the digest of the classes. Weak, as a factor may hold megabytes.
_HAVE_WHOLE: WeakKeyDictionary[Factor, dict[bytes, bool]] = WeakKeyDictionary()


def _has_whole(classes: AxisClasses, factor: Factor) -> bool:
    known = _HAVE_WHOLE.setdefault(factor, {})
    if classes.digest not in known:
        known[classes.digest] = _whole_of(classes, factor) is not None
    return known[classes.digest]


def _along_single_axes(block: QueryBlock) -> tuple[Factor, ...] | None:
    """The factors of a row that is one product of arrays along an axis each; None if it is not."""
    terms = block.query.terms
    if block.partition is not None or len(terms) != 1 or block.query.constant:
        return None
    factors = terms[0].factors
    return factors if all(len(one.axes) == 1 for one in factors) else None


def _whole_of(classes: AxisClasses, factor: Factor) -> Factor | None:
    """A factor on the classes within which it is constant, and 0 on others; None if that is none.

    The factor itself if it cuts no class.
    """
    numbers = factor.numbers if isinstance(factor.numbers, Pieces) else runs_of(factor.numbers)
    if numbers.degree or classes.degree:
        return None
    if classes.n_classes == classes.n_levels:
        return factor  # levels are not cut
    starts = np.union1d(classes.starts, numbers.starts)  # within these runs nothing changes
    which, values = classes.at(starts), numbers.at(starts)
    is_cut = np.zeros(classes.n_classes, dtype=np.bool_)
    is_cut[which[values != values[first_places(which)][which]]] = True
    n_cut = int(is_cut.sum())
    if n_cut == 0 or n_cut > N_CUT_MAX:
        return None if n_cut else factor
    kept = np.where(is_cut[which], 0, values)
    lengths = np.diff(starts, append=classes.n_levels)
    return Factor(factor.axes, np.repeat(kept, lengths)) if kept.any() else None


def _frame(scale: Fraction, outer: Sequence[Factor], inner: Sequence[Factor]) -> tuple[Term, ...]:
    """The product of outer factors less that of inner ones, as products that share no cell."""
    terms = []
    for place, (whole, part) in enumerate(zip(outer, inner, strict=True)):
        if part is whole:
            continue
        edge = Factor(whole.axes, whole.values - part.values)
        terms.append(Term(scale, (*inner[:place], edge, *outer[place + 1 :])))
    return tuple(terms)
