"""Numbers along one axis of many levels, as a ledger writes them: pieces that are polynomials.

A piece is a length and a value; or a length, and the first value with its first and second
difference, so that the numbers at places s, s + 1, s + 2, ... after it are

    value + first (p - s) + second (p - s)(p - s - 1) / 2

Written apart from the server's own (cube/pieces.py), with which it shares the form only. Nothing
here knows weights or charges. Proof: proofs/ledger.md, "Along a column of many levels".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.fields import Json
from accountant.auditor.wrong import Wrong

N_LEVELS_MAX: Final = 2**20
FIRST_MAX: Final = 2**40
SECOND_MAX: Final = 2**20
VALUE_MAX: Final = 2**62

Numbers = NDArray[np.int64]
Piece = tuple[int, int, int, int]  # where it begins, and the three numbers there


@dataclass(frozen=True, eq=False)
class Curve:
    """Numbers at the places ``0 .. size - 1``.

    Parameters
    ----------
    size : int
    pieces : tuple of Piece
        In order; each ends where the next begins, the last at `size`.
    """

    size: int
    pieces: tuple[Piece, ...]

    @cached_property
    def starts(self) -> Numbers:
        """Where each piece begins."""
        return np.array([start for start, *_ in self.pieces], dtype=np.int64)

    @cached_property
    def _numbers(self) -> Numbers:
        return np.array([numbers for _, *numbers in self.pieces], dtype=np.int64)

    def at(self, places: Numbers) -> Numbers:
        """The numbers at some places."""
        which = np.searchsorted(self.starts, places, side="right") - 1
        steps = places - self.starts[which]
        value, first, second = np.moveaxis(self._numbers[which], -1, 0)
        found: Numbers = value + first * steps + second * (steps * (steps - 1) // 2)
        return found

    def dense(self) -> Numbers:
        """The numbers at all places."""
        return self.at(np.arange(self.size, dtype=np.int64))

    def in_runs(self) -> "Curve":
        """The same numbers as flat pieces only."""
        numbers = self.dense()
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        flat = zip(starts.tolist(), numbers[starts].tolist(), strict=True)
        return Curve(self.size, tuple((start, value, 0, 0) for start, value in flat))

    def spans(self) -> Iterator[tuple[Piece, int]]:
        """Each piece, and the place after its last."""
        ends = [*(start for start, *_ in self.pieces[1:]), self.size]
        return zip(self.pieces, ends, strict=True)

    @cached_property
    def corners(self) -> Numbers:
        """The first and the last place of every piece."""
        last = [end - 1 for _, end in self.spans()]
        return np.unique(np.concatenate((self.starts, np.array(last, dtype=np.int64))))

    @property
    def is_flat(self) -> bool:
        """Whether every piece has one value."""
        return not self._numbers[:, 1:].any()

    @property
    def is_curved(self) -> bool:
        """Whether a piece has a second difference."""
        return bool(self._numbers[:, 2].any())

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest number."""
        parts = [_values(piece, end) if piece[3] else _corners(piece, end)
                 for piece, end in self.spans()]  # fmt: skip
        return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)

    def magnitude(self) -> "Curve":
        """The same without signs, cut where the sign changes.

        A piece whose magnitude is larger in between than at both ends has its largest everywhere.
        """
        return Curve(self.size, tuple(_joined(_unsigned(self.spans()))))

    def at_least_zero(self) -> "Curve":
        """1 where the number is not negative, 0 elsewhere; of a flat curve."""
        return Curve(self.size, tuple((p[0], int(p[1] >= 0), 0, 0) for p in self.pieces))


def curve_of(listed: Sequence[Json], size: int) -> Curve:
    """The curve that a ledger writes as a list of pieces; Wrong if it is none."""
    pieces: list[Piece] = []
    place = 0
    for one in listed:
        if type(one) is not list or len(one) not in (2, 4) or any(type(n) is not int for n in one):
            raise Wrong("a piece that is not two or four whole numbers")
        length, value, first, second = (*one, 0, 0)[:4]
        if length < 1 or abs(value) >= VALUE_MAX:
            raise Wrong("a piece of no length, or a number that is too large")
        if abs(first) > FIRST_MAX or abs(second) > SECOND_MAX:
            raise Wrong("a piece that is too steep")
        pieces.append((place, value, first, second))
        place += length
    if place != size or size > N_LEVELS_MAX:
        raise Wrong("pieces that do not fill their array")
    return Curve(size, tuple(pieces))


def _unsigned(spans: Iterable[tuple[Piece, int]]) -> Iterator[Piece]:
    for piece, end in spans:
        start, value, first, second = piece
        if not first and not second:
            yield start, abs(value), 0, 0
            continue
        values = _values(piece, end)
        below = values < 0
        cuts = [0, *(np.flatnonzero(below[1:] != below[:-1]) + 1).tolist(), end - start]
        for begin, stop in pairwise(cuts):
            own = np.abs(values[begin:stop])
            bend = -second if below[begin] else second
            if bend < 0:
                yield start + begin, int(own.max()), 0, 0
                continue
            slope = first + second * begin
            yield start + begin, int(own[0]), -slope if below[begin] else slope, bend


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Without a piece that goes on with the flat one before it."""
    before: Piece | None = None
    for piece in pieces:
        if before is None or before[1:] != piece[1:] or piece[2] or piece[3]:
            yield piece
        before = piece


def _values(piece: Piece, end: int) -> Numbers:
    start, value, first, second = piece
    steps = np.arange(end - start, dtype=np.int64)
    return value + first * steps + second * (steps * (steps - 1) // 2)


def _corners(piece: Piece, end: int) -> Numbers:
    start, value, first, _ = piece
    return np.array([value, value + first * (end - 1 - start)], dtype=np.int64)
