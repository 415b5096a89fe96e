"""Statistics that were paid for, and are no rows: noisy distances, and choices among candidates.

What one unit of weight costs a cell: a distance, what the rows that it is about cost it, for one
record moves a sum of magnitudes by no more than it moves the rows; a choice, the same everywhere,
for it was made so that no record moves a score by more than one unit of it. That the server drew
by that law is a promise of its code (proofs/choices.md); no ledger shows it.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from accountant.auditor.fields import Json, fields_of, list_of, one_of, whole
from accountant.auditor.noises import Noise, noise_of
from accountant.auditor.rows import BlockReader, LevelArray, Share, Term
from accountant.auditor.wrong import Wrong
from cube.measurement import WEIGHT_UNITS_MAX
from cube.statistic import N_CANDIDATES_MAX, N_PARENTS_MAX, REFERENCE_MAX

SCORES: Final = ("R", "I", "F")
EVERYWHERE: Final = Share((Term(1, ()),), None)


@dataclass(frozen=True, slots=True)
class Distance:
    """A noisy distance of rows from public numbers."""

    share: Share
    noise: Noise

    @property
    def weight_units(self) -> int:
        """What was paid for each unit of its share."""
        return self.noise.weight_units

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """Everything it says of levels."""
        return self.share.arrays

    def check(self, released: int) -> None:
        """Any number may be released."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among candidates."""

    weight_units: int
    n_candidates: int
    views: tuple[LevelArray, ...]

    @property
    def share(self) -> Share:
        """One unit for every cell."""
        return EVERYWHERE

    @property
    def arrays(self) -> tuple[LevelArray, ...]:
        """Everything it says of levels."""
        return self.views

    def check(self, released: int) -> None:
        """Wrong unless there is a candidate in this place."""
        if not 0 <= released < self.n_candidates:
            raise Wrong("a candidate chosen that is not there")


Statistic: TypeAlias = Distance | Choice


def statistic_of(value: Json, blocks: BlockReader) -> Statistic:
    """A statistic as a charge writes it; Wrong if it is none."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "distance":
        return _distance(value, blocks)
    if kind == "choice":
        return _choice(value, blocks)
    raise Wrong(f"there is no statistic called {kind!r}")


def _distance(value: Json, blocks: BlockReader) -> Distance:
    of_noise = ("lattice_bits", "noise_scale", "weight_units")
    fields = fields_of(value, ("kind", "block", "reference", *of_noise))
    block = blocks.block(fields["block"])
    reference = list_of(fields, "reference", int)
    if len(reference) != block.n_rows or any(abs(one) > REFERENCE_MAX for one in reference):
        raise Wrong("a distance from numbers that are not one for each row")
    return Distance(block.share, noise_of(fields))


def _choice(value: Json, blocks: BlockReader) -> Choice:
    fields = fields_of(value, ("kind", "score", "views", "candidates", "weight_units"))
    one_of(fields, "score", SCORES)
    units = whole(fields, "weight_units", 1)
    if units > WEIGHT_UNITS_MAX:
        raise Wrong(f"a weight of {units} units")
    views = tuple(blocks.labels(one) for one in list_of(fields, "views", dict))
    if any(len(view.axes) != 1 or view.inside is not None for view in views):
        raise Wrong("a view that is not of every level of one axis")
    candidates = list_of(fields, "candidates", list)
    if not 0 < len(candidates) <= N_CANDIDATES_MAX:
        raise Wrong(f"a choice among {len(candidates)}")
    for candidate in candidates:
        _check_candidate(candidate, views)
    if len({tuple(candidate) for candidate in candidates}) != len(candidates):
        raise Wrong("a candidate named twice")
    return Choice(units, len(candidates), views)


def _check_candidate(candidate: list[Json], views: tuple[LevelArray, ...]) -> None:
    if any(type(place) is not int or not 0 <= place < len(views) for place in candidate):
        raise Wrong("a candidate of views that are not there")
    parents = candidate[1:]
    if not 0 < len(parents) <= N_PARENTS_MAX or parents != sorted(set(parents)):
        raise Wrong("a candidate whose parents are not in order")
    if len({views[place].axes for place in candidate}) != len(candidate):
        raise Wrong("a candidate that sees an axis twice")
