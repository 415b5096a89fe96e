"""Linear queries: exact weighted sums of the cells of a private table's cube.

    query = sum over terms of  scale * product of factors  +  constant

A factor is an array of whole numbers over the levels of a few axes; a term's factors share no axis.
A conjunction of predicates on five columns is five small factors, never a product of five domains.
Axes that a query does not mention are summed over. Everything is exact, because sensitivity and
cost are computed from these numbers.

Nothing here touches data, noise or budget.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from cube.pieces import Pieces, pieces_of
from cube.tiles import Tiles

COEFFICIENT_MAX = 2**40  # times N_RECORDS_MAX = 2**40: every exact answer stays below 2**80
N_FACTOR_CELLS_MAX = 2**22  # one factor's or partition's domain: 32 MB of int64
N_NARROW_LEVELS_MAX = 2**12  # an array over more levels of one axis is kept as pieces
N_TERMS_MAX = 256  # a sum of more aggregates than anyone writes by hand

Scope: TypeAlias = tuple[str, ...]


def read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """A copy that cannot be changed afterwards: what was charged for is what is measured."""
    locked = np.array(array, dtype=np.int64, order="C", copy=True)
    locked.flags.writeable = False
    return locked


def shape_of(numbers: NDArray[np.int64] | Pieces | Tiles) -> tuple[int, ...]:
    """The number of levels along each axis of an array, or of pieces along one."""
    return (numbers.size,) if isinstance(numbers, Pieces) else numbers.shape


def n_stored(numbers: NDArray[np.int64] | Pieces | Tiles) -> int:
    """How many numbers an array, pieces or tiles are stored in."""
    if isinstance(numbers, Tiles):
        return numbers.n_stored
    return numbers.coefficients.size if isinstance(numbers, Pieces) else numbers.size


def check_scope(axes: Scope) -> None:
    """Raise ValueError unless `axes` is sorted and without repeats."""
    if list(axes) != sorted(set(axes)):
        raise ValueError(f"axes must be sorted and distinct, got {axes}")


@dataclass(frozen=True, eq=False)
class Factor:
    """Whole numbers over the levels of one or a few axes.

    Parameters
    ----------
    axes : tuple of str
        Sorted, distinct, at least one.
    numbers : (n_levels of axes[0], n_levels of axes[1], ...) ndarray of int64, or Pieces
        One number per combination of levels; 0 and 1 for a predicate. Pieces are for one axis. An
        array over many levels of one axis is turned into them.
    """

    axes: Scope
    numbers: NDArray[np.int64] | Pieces

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if not self.axes or len(self.shape) != len(self.axes):
            raise ValueError(f"{len(self.shape)} dimensions for {len(self.axes)} axes")
        if math.prod(self.shape) > N_FACTOR_CELLS_MAX:
            raise ValueError(f"a factor over {math.prod(self.shape)} cells")
        if not isinstance(self.numbers, Pieces):
            if self.numbers.dtype != np.int64:
                raise TypeError(f"factor values are int64, not {self.numbers.dtype}")
            is_wide = len(self.axes) == 1 and self.numbers.size > N_NARROW_LEVELS_MAX
            kept = pieces_of(self.numbers) if is_wide else read_only(self.numbers)
            object.__setattr__(self, "numbers", kept)
        if self.bound > COEFFICIENT_MAX:
            raise ValueError("a coefficient beyond 2**40")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return shape_of(self.numbers)

    @property
    def values(self) -> NDArray[np.int64]:
        """The number of every combination of levels; made anew where pieces are kept."""
        return self.numbers.dense() if isinstance(self.numbers, Pieces) else self.numbers

    @property
    def content(self) -> bytes:
        """Equal for equal values over the same axes."""
        return self.numbers.content if isinstance(self.numbers, Pieces) else self.numbers.tobytes()

    @property
    def n_stored(self) -> int:
        """How many numbers are stored."""
        return n_stored(self.numbers)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest value."""
        if isinstance(self.numbers, Pieces):
            return self.numbers.ends
        return int(self.numbers.min()), int(self.numbers.max())

    @cached_property
    def bound(self) -> int:
        """The largest absolute value."""
        return max(map(abs, self.ends))

    @cached_property
    def primitive(self) -> "tuple[Factor | None, int]":
        """Split into a multiplier and values without a common divisor, the first of them positive.

        The factor is None if the values are all equal: the multiplier then says everything.
        """
        least, largest = self.ends
        if least == largest:
            return None, least
        divisor = 1 if self.bound == 1 else self._common_divisor()
        if least < 0 and self._first_nonzero() < 0:
            divisor = -divisor
        return (self if divisor == 1 else self._divided(divisor)), divisor

    def _common_divisor(self) -> int:
        if isinstance(self.numbers, Pieces):
            return self.numbers.common_divisor
        return int(np.gcd.reduce(self.numbers, axis=None))

    def _first_nonzero(self) -> int:
        if isinstance(self.numbers, Pieces):
            return self.numbers.first_nonzero
        return int(self.numbers.flat[np.flatnonzero(self.numbers)[0]])

    def _divided(self, divisor: int) -> "Factor":
        if isinstance(self.numbers, Pieces):
            return Factor(self.axes, self.numbers.divided(divisor))
        return Factor(self.axes, self.numbers // divisor)


@dataclass(frozen=True, eq=False)
class Term:
    """A rational number times a product of factors on disjoint axes.

    Kept in lowest terms: a common divisor of a factor moves into the scale, a constant factor
    is absorbed by the scale, and factors are in the order of their axes. So equal coefficients,
    however they were written, mostly give the same term.
    """

    scale: Fraction
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction):
            raise TypeError("a coefficient is exact: build it from a Fraction, not a float")
        axes = [name for factor in self.factors for name in factor.axes]
        if len(set(axes)) != len(axes):
            raise ValueError("two factors of one term share an axis")
        scale, kept = self.scale, []
        for factor in sorted(self.factors, key=lambda factor: factor.axes):
            rest, multiplier = factor.primitive
            scale = scale if multiplier == 1 else scale * multiplier
            if rest is not None:
                kept.append(rest)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "factors", tuple(kept))

    @cached_property
    def scope(self) -> Scope:
        """The axes the term touches, sorted."""
        return tuple(sorted(name for factor in self.factors for name in factor.axes))

    @property
    def bound(self) -> Fraction:
        """The largest absolute coefficient."""
        return abs(self.scale) * math.prod(factor.bound for factor in self.factors)


@dataclass(frozen=True, eq=False)
class LinearQuery:
    """``sum_j coefficient_j x_j + constant`` over the cells ``x`` of the cube.

    Parameters
    ----------
    terms : tuple of Term
        Their sum is the coefficient vector. Terms that vanish are dropped.
    constant : Fraction
        Added to the answer and to both ends of its interval; free of privacy cost.
    """

    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not isinstance(self.constant, Fraction):
            raise TypeError("a constant is exact: build it from a Fraction, not a float")
        if len(self.terms) > N_TERMS_MAX:
            raise ValueError(f"more than {N_TERMS_MAX} terms")
        kept = tuple(term for term in self.terms if term.scale != 0)
        object.__setattr__(self, "terms", kept)

    @cached_property
    def scope(self) -> Scope:
        """The axes the query touches, sorted."""
        return tuple(sorted({name for term in self.terms for name in term.scope}))

    @property
    def is_constant(self) -> bool:
        """Whether no cell has a coefficient, so that the answer is public."""
        return not self.terms

    @cached_property
    def bound(self) -> Fraction:
        """An upper bound on every absolute coefficient (exact when there is one term)."""
        return sum((term.bound for term in self.terms), Fraction(0))

    def __add__(self, other: "LinearQuery") -> "LinearQuery":
        return LinearQuery(self.terms + other.terms, self.constant + other.constant)

    def scaled(self, factor: Fraction) -> "LinearQuery":
        """The query times an exact number."""
        terms = tuple(Term(term.scale * factor, term.factors) for term in self.terms)
        return LinearQuery(terms, self.constant * factor)

    def primitive(self) -> "tuple[LinearQuery, Fraction]":
        """Split into ``multiplier * row``, where ``row`` has whole coefficients and no constant.

        Queries that are multiples of one another share their row, so that ``2 * COUNT(*)`` is
        answered from what was measured for ``COUNT(*)``.
        """
        if self.is_constant:
            return LinearQuery(()), Fraction(1)
        divisor = reduce(rational_gcd, (abs(term.scale) for term in self.terms))
        if self.terms[0].scale < 0:
            divisor = -divisor
        row = LinearQuery(self.terms) if self.constant else self
        return (row if divisor == 1 else row.scaled(1 / divisor)), divisor


def rational_gcd(a: Fraction, b: Fraction) -> Fraction:
    """The largest rational of which both are whole multiples.

    >>> rational_gcd(Fraction(1, 2), Fraction(3, 4))
    Fraction(1, 4)
    """
    common = math.lcm(a.denominator, b.denominator)
    return Fraction(math.gcd(int(a * common), int(b * common)), common)


def counting(factors: Iterable[Factor] = ()) -> LinearQuery:
    """The number of records in the product of some factors: one term of scale 1."""
    return LinearQuery((Term(Fraction(1), tuple(factors)),))
