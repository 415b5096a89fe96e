"""Estimates of the rows of a block, for all rows at once.

Rows that were counted together differ in their values alone. They are kept as arrays, and what is
asked of all of them is asked of arrays: a GROUP BY of 50,000 groups has one law, not 50,000. Each
is made into a posterior once somebody looks at it by itself.

Any other sequence of estimates will do as well: the functions here say the same of both.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cube.pace import checkpoint
from cube.runtime import cached_property
from cube.target import PosteriorMethod
from inference.error_terms import ErrorTerms
from inference.noise_law import NoiseLaw, law_by, standard_deviation
from inference.posterior import NotEstimable, Posterior, RowEstimate, ends_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
RowEstimates: TypeAlias = Sequence[RowEstimate]


@dataclass(frozen=True, eq=False)
class BlockPosteriors(Sequence[Posterior]):
    """The posterior of every row of a block.

    Parameters
    ----------
    values : (n,) ndarray of float64
        The estimate of each row, as in `Posterior`.
    laws : tuple of NoiseLaw
        The distinct laws of the rows' noise.
    law_of : (n,) ndarray of int64
        The place of each row's law among them.
    lattice_widenings : (n,) ndarray of float64
    low, high : float
        The public range, as in `Posterior`; the same for all rows.
    terms : ErrorTerms
        The noises of all rows, one row after the other.
    ends : (n + 1,) ndarray of int64
        Where the noises of each row begin, and where those of the last end.
    """

    values: Floats
    laws: tuple[NoiseLaw, ...]
    law_of: Indices
    lattice_widenings: Floats
    low: float
    high: float
    terms: ErrorTerms
    ends: Indices

    def __post_init__(self) -> None:
        n = self.values.size
        if not self.values.shape == self.law_of.shape == self.lattice_widenings.shape == (n,):
            raise ValueError("each row needs a value, a law and a widening")
        if self.ends.shape != (n + 1,) or int(self.ends[-1]) != self.terms.place.size:
            raise ValueError("each noise must belong to one row")
        if not np.isfinite(self.values).all():
            raise ValueError("an estimate must be a finite number")
        if not (np.isfinite(self.lattice_widenings) & (self.lattice_widenings >= 0)).all():
            raise ValueError("lattice_widening must not be negative")
        if not self.low <= self.high:
            raise ValueError(f"the public range [{self.low}, {self.high}] is empty")
        for array in (self.values, self.law_of, self.lattice_widenings, self.ends):
            array.flags.writeable = False

    def __len__(self) -> int:
        return self.values.size

    @overload
    def __getitem__(self, place: int) -> Posterior: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Posterior, ...]: ...

    def __getitem__(self, place: int | slice) -> Posterior | tuple[Posterior, ...]:
        return self._each[place]

    def __iter__(self) -> Iterator[Posterior]:
        return iter(self._each)

    @cached_property
    def _each(self) -> tuple[Posterior, ...]:
        """Every row by itself: made once, because callers compare them by identity."""
        terms, laws = self.terms.split(self.ends), self.laws
        return tuple(
            Posterior(value, laws[law], widening, self.low, self.high, own)
            for value, law, widening, own in zip(
                self.values.tolist(),
                self.law_of.tolist(),
                self.lattice_widenings.tolist(),
                terms,
                strict=True,
            )
        )

    def half_widths(self, confidence: float) -> Floats:
        """The half-width of each row, (n,)."""
        of_law = np.array([law.half_width(confidence) for law in self.laws])
        return np.asarray(of_law[self.law_of] + self.lattice_widenings)

    def standard_deviations(self) -> Floats:
        """The standard deviation of each row's truth about its value, (n,)."""
        of_law = [standard_deviation(law.scales, law.gaussian) for law in self.laws]
        return np.array(of_law)[self.law_of]


def posteriors_by(
    rows: Sequence[Posterior], method: PosteriorMethod, generator: np.random.Generator
) -> Sequence[Posterior]:
    """The same posteriors, with laws computed by another method: each distinct law once."""
    if method is PosteriorMethod.EXACT:
        return rows
    made: dict[tuple[bytes, float], NoiseLaw] = {}

    def again(law: NoiseLaw) -> NoiseLaw:
        key = law.scales.tobytes(), law.gaussian
        if key not in made:
            checkpoint()
            made[key] = law_by(law, method, generator)
        return made[key]

    if isinstance(rows, BlockPosteriors):
        return replace(rows, laws=tuple(map(again, rows.laws)))
    return tuple(replace(row, law=again(row.law)) for row in rows)


def widest(rows: RowEstimates, confidence: float) -> float:
    """The largest half-width among rows; infinite if any of them is not estimable."""
    return float(half_widths(rows, confidence).max(initial=0.0))


def narrowest(first: RowEstimates, second: RowEstimates, confidence: float) -> RowEstimates:
    """Row by row, the narrower of two estimates; the first if neither is."""
    if len(first) != len(second):
        raise ValueError(
            f"the estimates have different numbers of rows: {len(first)} and {len(second)}"
        )
    widths, other_widths = half_widths(first, confidence), half_widths(second, confidence)
    is_first = widths <= other_widths
    if is_first.all():
        return first
    if not is_first.any():
        return second
    return tuple(
        one if is_narrower else other
        for one, other, is_narrower in zip(first, second, is_first.tolist(), strict=True)
    )


def half_widths(rows: RowEstimates, confidence: float) -> Floats:
    """The half-width of each row, (n,); infinite if it is not estimable.

    Rows that were counted together share a law, which is asked once.
    """
    if isinstance(rows, BlockPosteriors):
        return rows.half_widths(confidence)
    found: list[float] = []
    law, of_law = None, 0.0
    for row in rows:
        if isinstance(row, NotEstimable):
            found.append(math.inf)
            continue
        if row.law is not law:
            law, of_law = row.law, row.law.half_width(confidence)
        found.append(of_law + row.lattice_widening)
    return np.array(found)


def intervals(
    rows: Sequence[Posterior], confidence: float, shown: Floats | None = None
) -> tuple[Floats, Floats]:
    """The ends of each row's interval, (n,) each, as `Posterior.interval` has them.

    Parameters
    ----------
    rows : sequence of Posterior
    confidence : float
    shown : (n,) ndarray of float64, optional
        What is shown in place of the rows' values: the possible values that are nearest to them.
        The truth is as near to these, so intervals about them cover it as often.
    """
    if isinstance(rows, BlockPosteriors):
        low: ArrayLike = rows.low
        high: ArrayLike = rows.high
    else:
        low, high = [row.low for row in rows], [row.high for row in rows]
    about = values(rows) if shown is None else shown
    return ends_about(about, half_widths(rows, confidence), low, high)


def values(rows: Sequence[Posterior]) -> Floats:
    """The value of each row, (n,)."""
    if isinstance(rows, BlockPosteriors):
        return rows.values
    return np.array([row.value for row in rows], dtype=np.float64)


def standard_deviations(rows: RowEstimates) -> Floats:
    """The standard deviation of each row, (n,); infinite if it is not estimable."""
    if isinstance(rows, BlockPosteriors):
        return rows.standard_deviations()
    return np.array(
        [row.standard_deviation if isinstance(row, Posterior) else math.inf for row in rows]
    )


def unknown(reason: str, n_rows: int) -> RowEstimates:
    """Rows that the history does not determine."""
    return (NotEstimable(reason),) * n_rows


def all_known(blocks: Iterable[RowEstimates]) -> Sequence[Posterior] | None:
    """The rows of blocks, one after the other; None if some row is not estimable."""
    listed = list(blocks)
    if len(listed) == 1 and isinstance(listed[0], BlockPosteriors):
        return listed[0]
    rows = [row for block in listed for row in block]
    known = tuple(row for row in rows if isinstance(row, Posterior))
    return known if len(known) == len(rows) else None


def n_terms(rows: RowEstimates) -> int:
    """The number of noises that the rows consist of."""
    if isinstance(rows, BlockPosteriors):
        return rows.terms.place.size
    return sum(row.terms.place.size for row in rows if isinstance(row, Posterior))
