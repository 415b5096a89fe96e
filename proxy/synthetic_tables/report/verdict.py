"""What the report says first: whether the table can be used as it is, and if not, what is worst.

Bad, if the rows contradict what was measured by more than noise explains. Fair, if they do not, but
something that a reader may rely on was not measured, or with large noise. Good is what remains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cube.query import Scope
from cube.runtime import cached_property
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.expected import PairDistance, mean_distance
from proxy.synthetic_tables.report.purchases import Purchases
from proxy.synthetic_tables.report.residuals import CheckedTable, Standing

JOINT_SHARE_BAD: Final = 0.02  # of the rows: a table of several columns beyond its limit by more
DISTANCE_GOOD: Final = 0.05  # of pairs; one that was not measured is no gap if surely below it


class Tone(StrEnum):
    """How the report begins."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Everything that the report says about the table as a whole.

    Parameters
    ----------
    record : SyntheticRecord
    checked : sequence of CheckedTable
        Those furthest outside their noise first.
    pairs : mapping of sorted scope to PairDistance
        Every pair of columns.
    bought : Purchases
    n_charges_since : int
        Charges to the private table since the synthetic one was made.
    """

    record: SyntheticRecord
    checked: Sequence[CheckedTable]
    pairs: Mapping[Scope, PairDistance]
    bought: Purchases
    n_charges_since: int = 0

    @cached_property
    def outside(self) -> list[CheckedTable]:
        """The measured tables that noise does not explain, the worst first."""
        return [one for one in self.checked if one.standing is Standing.OUTSIDE]

    @cached_property
    def near(self) -> list[CheckedTable]:
        """Those that miss their limits by little."""
        return [one for one in self.checked if one.standing is Standing.NEAR]

    @cached_property
    def contradicted(self) -> list[CheckedTable]:
        """Those outside for which the table is bad: of one column, or far outside."""
        return [
            one for one in self.outside if len(one.scope) == 1 or one.excess_share > JOINT_SHARE_BAD
        ]

    @cached_property
    def worst_columns(self) -> list[str]:
        """Columns that together are in every contradicted table, those in most of the excess first.

        If one column explains all of them, it alone is named.
        """
        left, named = list(self.contradicted), []
        while left:
            excess: dict[str, float] = {}
            for table in left:
                for name in table.scope:
                    excess[name] = excess.get(name, 0.0) + table.excess_share
            named.append(max(excess, key=lambda name: excess[name]))
            left = [table for table in left if named[-1] not in table.scope]
        return named

    @cached_property
    def not_measured(self) -> list[PairDistance]:
        """The pairs that were not measured, those expected to be furthest off first."""
        found = [one for one in self.pairs.values() if not one.is_measured]
        return sorted(found, key=lambda one: (one.share is None, -(one.share or 0.0)))

    @cached_property
    def open_pairs(self) -> list[PairDistance]:
        """Those of them that may be further off than anybody would want to overlook."""
        return [one for one in self.not_measured if one.at_most > DISTANCE_GOOD]

    @cached_property
    def not_checked(self) -> list[str]:
        """The columns of which no measured table could be held against the rows."""
        seen = {name for one in self.checked for name in one.scope}
        return [name for name, _ in self.record.columns if name not in seen]

    @cached_property
    def n_told(self) -> int:
        """How many pairs have an expected distance."""
        return sum(one.share is not None for one in self.pairs.values())

    @property
    def expected(self) -> float | None:
        """The expected distance by pairs, over all pairs for which there is an estimate."""
        return mean_distance(self.pairs)

    @property
    def furthest_pair(self) -> PairDistance | None:
        """The pair that is expected to be furthest off."""
        told = [one for one in self.pairs.values() if one.share is not None]
        return max(told, key=lambda one: one.share or 0.0, default=None)

    @property
    def is_noisy(self) -> bool:
        """Whether too many rows are expected, or were found, to be in the wrong place."""
        if self.record.evaluation is not None:
            return self.record.evaluation.estimate > DISTANCE_GOOD
        return (self.expected or 0.0) > DISTANCE_GOOD

    @property
    def has_gaps(self) -> bool:
        """Whether something that a reader may rely on was not measured."""
        missing = self.open_pairs, self.not_checked, self.record.unknown, self.record.incomplete
        return any(missing)

    @property
    def tone(self) -> Tone:
        """How the report begins."""
        if self.contradicted or not self.checked:
            return Tone.BAD
        is_fair = self.outside or self.near or self.has_gaps or self.is_noisy
        return Tone.FAIR if is_fair else Tone.GOOD
