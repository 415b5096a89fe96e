"""Whole numbers along one axis, as pieces; on each piece they are a polynomial of the place.

    value at place p  =  a + b p + c p (p - 1) / 2        with whole a, b and c for each piece

A condition on an ordered column is a few pieces of constant value; the levels of a measure, low,
low + step, ..., are one piece with b = 1 after the common divisor is taken out; their squares are
one piece with c = 2. So what is asked of a column of half a million levels is a few numbers, and is
kept as such. Nothing here knows queries, columns or data.

The pieces are a function of the values alone: equal values have equal pieces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cube.runtime import cached_property

N_FLAT_LEAST = 4  # levels of equal value in a row that are a piece of their own
N_CURVED_LEAST = 8  # levels that a polynomial must describe to be worth its three coefficients
N_CURVES_MAX = 2**10  # polynomials of one array; values with more of them are not smooth
SLOPE_MAX = 2**40  # with BEND_MAX: every coefficient at place 0 stays below 2**62
BEND_MAX = 2**20
SIZE_MAX = 2**22
CURVED_SIZE_MAX = 2**20  # levels of an axis; a longer array only has runs

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Whole numbers at the places ``0 .. size - 1``, made by `pieces_of` or `decoded_pieces`.

    Parameters
    ----------
    size : int
        The number of places.
    starts : (n_pieces,) ndarray of int64
        Where each piece begins; the first at 0, and increasing.
    coefficients : (n_pieces, 3) ndarray of int64
        The numbers a, b and c of each piece.
    """

    size: int
    starts: Whole
    coefficients: Whole

    def __post_init__(self) -> None:
        if not 0 < self.size <= SIZE_MAX:
            raise ValueError(f"the number of places must be from 1 to {SIZE_MAX}, not {self.size}")
        if self.coefficients.shape != (self.starts.size, 3):
            raise ValueError("each piece needs three coefficients")
        rises = (self.starts[1:] > self.starts[:-1]).all()
        if self.starts[0] != 0 or self.starts[-1] >= self.size or not rises:
            raise ValueError("pieces must begin at 0 and be ascending")
        self.starts.flags.writeable = False
        self.coefficients.flags.writeable = False

    @property
    def n_pieces(self) -> int:
        """The number of pieces."""
        return self.starts.size

    @cached_property
    def lengths(self) -> Whole:
        """The number of places of each piece."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def degree(self) -> int:
        """The highest power that occurs: 0 if every piece is constant, at most 2."""
        if self.coefficients[:, 2].any():
            return 2
        return int(self.coefficients[:, 1].any())

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest value."""
        places = np.concatenate(list(self._extremes()))
        values = self.at(places)
        return int(values.min()), int(values.max())

    def _extremes(self) -> Iterator[Whole]:
        """Places among which are those of the least and the largest value of each piece."""
        last = self.starts + self.lengths - 1
        yield self.starts
        yield last
        b, c = self.coefficients[:, 1], self.coefficients[:, 2]
        curved = np.flatnonzero(c)
        turn = -(b[curved] // c[curved])  # the step from p to p + 1 is b + c p
        for place in (turn - 1, turn, turn + 1):
            yield np.clip(place, self.starts[curved], last[curved])

    @property
    def n_bytes(self) -> int:
        """The memory that they take."""
        return self.starts.nbytes + self.coefficients.nbytes

    @property
    def content(self) -> bytes:
        """Equal for equal values of one size."""
        return self.starts.tobytes() + self.coefficients.tobytes()

    def at(self, places: Whole) -> Whole:
        """The values at some places."""
        which = self.starts.searchsorted(places, side="right") - 1
        if not self.degree:
            constants: Whole = self.coefficients[which, 0]
            return constants
        return evaluated(self.coefficients[which], places)

    def dense(self) -> Whole:
        """The values at all places."""
        if self.degree == 0:
            return np.repeat(self.coefficients[:, 0], self.lengths)
        return np.concatenate(
            [
                evaluated(piece, np.arange(start, start + length, dtype=np.int64))
                for piece, start, length in self
            ]
        )

    def __iter__(self) -> Iterator[tuple[Whole, int, int]]:
        """The coefficients, the first place and the length of each piece."""
        yield from zip(self.coefficients, self.starts.tolist(), self.lengths.tolist(), strict=True)

    def divided(self, divisor: int) -> "Pieces":
        """Every value divided by a number that divides them all."""
        return Pieces(self.size, self.starts, self.coefficients // divisor)

    @cached_property
    def common_divisor(self) -> int:
        """The greatest number that divides every value; 0 if all are 0.

        It divides all values of a piece exactly if it divides the first one and the first and
        second differences there.
        """
        return int(np.gcd.reduce(self.differences, axis=None))

    @cached_property
    def differences(self) -> Whole:
        """The value, first and second difference at the start of each piece, (n_pieces, 3).

        The differences of a piece that is too short to have them are 0.
        """
        b, c = self.coefficients[:, 1], self.coefficients[:, 2]
        return np.stack((self.at(self.starts), b + c * self.starts, c), axis=1)

    @cached_property
    def first_nonzero(self) -> int:
        """The first value that is not 0; 0 if there is none."""
        for piece, start, length in self:
            # A polynomial of degree 2 that is not 0 has at most two zeros.
            values = evaluated(piece, np.arange(start, start + min(length, 3), dtype=np.int64))
            if values.any():
                return int(values[np.flatnonzero(values)[0]])
        return 0


_FIRST: Whole = np.zeros(1, dtype=np.int64)


def magnitudes(pieces: Pieces) -> tuple[Pieces, bool]:
    """Absolute values on pieces, none of them concave; and whether the values are exact.

    A polynomial is cut where its sign changes. Where its magnitude is concave then, it is replaced
    by the largest magnitude, which is nowhere below it.
    """
    starts: list[int] = []
    coefficients: list[Whole] = []
    exact = True
    for piece, start, length in pieces:
        for begin, end, sign in _signed(piece, start, length):
            own = sign * piece
            if own[2] < 0:
                exact = False
                largest = evaluated(own, np.arange(begin, end, dtype=np.int64)).max()
                own = np.array([largest, 0, 0], dtype=np.int64)
            starts.append(begin)
            coefficients.append(own)
    return Pieces(pieces.size, np.array(starts, dtype=np.int64), np.array(coefficients)), exact


def _signed(piece: Whole, start: int, length: int) -> Iterator[tuple[int, int, int]]:
    """Parts of a piece without a change of sign: first place, place after the last, and sign."""
    value, slope, bend = piece.tolist()
    if not slope and not bend:
        yield start, start + length, -1 if value < 0 else 1
        return
    is_negative = evaluated(piece, np.arange(start, start + length, dtype=np.int64)) < 0
    cuts = np.flatnonzero(is_negative[1:] != is_negative[:-1]) + 1
    for begin, end in pairwise([0, *cuts.tolist(), length]):
        yield start + begin, start + end, -1 if is_negative[begin] else 1


def evaluated(coefficients: Whole, places: Whole) -> Whole:
    """The value of one polynomial for each place.

    Sums may pass 2**63 on the way and come back: the arithmetic is modulo 2**64, and the values
    themselves are far smaller.
    """
    a, b, c = coefficients[..., 0], coefficients[..., 1], coefficients[..., 2]
    return np.asarray(a + b * places + c * (places * (places - 1) // 2), dtype=np.int64)


def pieces_at(starts: Whole, differences: Whole, size: int) -> Pieces:
    """Pieces from the value and the differences at the start of each."""
    value, first, second = differences[:, 0], differences[:, 1], differences[:, 2]
    b = first - second * starts
    a = value - b * starts - second * (starts * (starts - 1) // 2)
    return Pieces(size, starts, np.stack((a, b, second), axis=1))


def runs_of(values: Whole) -> Pieces:
    """The runs of equal values of a vector, as constant pieces."""
    starts = np.concatenate((_FIRST, np.flatnonzero(values[1:] != values[:-1]) + 1))
    return constant_pieces(starts, values[starts], values.size)


def constant_pieces(starts: Whole, values: Whole, size: int) -> Pieces:
    """Pieces of one value each."""
    coefficients = np.zeros((starts.size, 3), dtype=np.int64)
    coefficients[:, 0] = values
    return Pieces(size, starts, coefficients)


def decoded_pieces(listed: Sequence[Sequence[int]], size: int) -> Pieces:
    """Pieces as ``[length, value]`` or ``[length, value, first difference, second difference]``.

    Raises
    ------
    ValueError, TypeError
        If they are no pieces of a vector of this size, or with differences that are too large.
    """
    four = [(*one, 0, 0) if len(one) == 2 else one for one in listed]  # noqa: PLR2004 - a constant
    found = np.array(four, dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 4:  # noqa: PLR2004 - a length and three differences
        raise ValueError("a piece must be a length and a value, optionally with two differences")
    lengths, differences = found[:, 0], found[:, 1:]
    if (lengths <= 0).any() or int(lengths.sum()) != size:
        raise ValueError("the lengths of the pieces must fill the array")
    largest = np.abs(differences).max(axis=0)
    is_long = size > CURVED_SIZE_MAX and bool(largest[1:].any())
    if largest[1] > SLOPE_MAX or largest[2] > BEND_MAX or is_long:
        raise ValueError("the differences of a piece are too large")
    return pieces_at(np.cumsum(lengths) - lengths, differences, size)


def constant_runs(starts: Whole, values: Whole, size: int) -> Pieces:
    """The runs of values that may be equal next to each other."""
    changes = np.concatenate(([True], values[1:] != values[:-1]))
    return constant_pieces(starts[changes], values[changes], size)


def pieces_of(values: Whole) -> Pieces:
    """The pieces of a vector.

    Notes
    -----
    Runs of at least `N_FLAT_LEAST` equal values are pieces. What lies between them is followed from
    left to right: a stretch of at least `N_CURVED_LEAST` values with third differences of 0 is a
    piece, as long as it is; every other run of equal values is a piece again.
    """
    in_runs = runs_of(values)
    if in_runs.n_pieces < N_CURVED_LEAST or values.size > CURVED_SIZE_MAX:
        return in_runs
    curves = list(_curves(values, in_runs))
    if not curves or len(curves) > N_CURVES_MAX:
        return in_runs
    runs = in_runs.starts
    first, last = np.array(curves, dtype=np.int64).T
    before = np.searchsorted(first, runs, side="right") - 1
    covered = (before >= 0) & (runs <= last[before])
    # A run that a curve ends within goes on after it.
    left = last + 1
    rest = left[(left < values.size) & ~np.isin(left, first)]
    flat = np.union1d(runs[~covered], rest)
    starts = np.concatenate((first, flat))
    order = np.argsort(starts, kind="stable")
    slopes = values[first + 1] - values[first]
    bends = values[first + 2] - values[first + 1] - slopes
    nothing = np.zeros(flat.size, dtype=np.int64)
    found = np.stack(
        (
            values[starts],
            np.concatenate((slopes, nothing)),
            np.concatenate((bends, nothing)),
        ),
        axis=1,
    )
    return pieces_at(starts[order], found[order], values.size)


def _curves(values: Whole, runs: Pieces) -> Iterator[tuple[int, int]]:
    """The first and last places of the stretches on which the values are a polynomial."""
    long = runs.lengths >= N_FLAT_LEAST
    begins, ends = runs.starts[long], (runs.starts + runs.lengths)[long]
    third = np.diff(values, n=3)
    second = np.diff(values, n=2)
    is_smooth = (third == 0) & (np.abs(second[:-1]) <= BEND_MAX)
    is_smooth &= np.abs(values[1:-2] - values[:-3]) <= SLOPE_MAX
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        # What touches more than one place of a long run is no curve, whatever its differences say.
        is_smooth[max(0, begin - 2) : end - 1] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_smooth, [False])).astype(np.int8)))
    reached = 0
    for start, stop in edges.reshape(-1, 2).tolist():
        begin, last = max(start, reached), stop + 2  # the last of these differences is at stop - 1
        if last - begin + 1 >= N_CURVED_LEAST:
            yield begin, last
            reached = last + 1
