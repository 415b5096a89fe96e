"""How far a table that grows is readable, and what was read of it, as its ledger records it.

The horizon is a number of levels of one axis, and moves forward only. Levels that became readable
together are a period, whose rows are known by a keyed digest: rows of a period that read otherwise
later are noticed before anything is measured. Nothing here does input or output.

Proof: proofs/growth.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from accountant.ledger.entries import HorizonAdvanced, Period
from cube.horizon import reach
from cube.query import QueryBlock
from cube.statistic import Choice, GaussianStatistic, UnitCount


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a table has grown.

    Parameters
    ----------
    axis : str
        The axis along which it grows.
    n_levels : int
        How many levels it has.
    horizon : int
        The number of its levels, from the first, that are readable.
    periods : tuple of Period
        What was read of them, in order; together they are all readable levels.
    dropped : tuple of int
        Places of measurements of rows that have changed since, ascending.
    """

    axis: str
    n_levels: int
    horizon: int = 0
    periods: tuple[Period, ...] = ()
    dropped: tuple[int, ...] = ()

    def advanced(self, body: HorizonAdvanced) -> Self:
        """The growth after the horizon moved on; ValueError if that leaves a gap, or goes back."""
        at = self.horizon
        for period in body.periods:
            if period.start != at:
                raise ValueError("a period that does not begin where the one before ends")
            at = period.end
        if at > self.n_levels:
            raise ValueError("a period beyond the last level")
        return replace(self, horizon=at, periods=(*self.periods, *body.periods))

    def accepted(self, periods: Sequence[Period], dropped: Iterable[int]) -> Self:
        """The growth once some periods have other rows; ValueError if they are no periods of it."""
        new = {(one.start, one.end): one for one in periods}
        known = {(one.start, one.end) for one in self.periods}
        if len(new) < len(periods) or not new.keys() <= known:
            raise ValueError("changes of what was never closed, or of a period twice")
        kept = tuple(new.get((one.start, one.end), one) for one in self.periods)
        return replace(self, periods=kept, dropped=tuple(sorted({*self.dropped, *dropped})))

    def check_within(
        self,
        rows: Iterable[QueryBlock],
        statistics: Iterable[GaussianStatistic | Choice | UnitCount],
    ) -> None:
        """Raise ValueError if something touches a level beyond the horizon, as any choice does."""
        blocks = list(rows)
        for statistic in statistics:
            if isinstance(statistic, Choice):
                raise ValueError("a choice is about every row, and a table that grows has no end")  # noqa: TRY004 - a wrong value
            if isinstance(statistic, UnitCount) and statistic.only_cut:
                raise ValueError("which rows of a unit are left out changes as a table grows")
            blocks.append(statistic.block)
        for block in blocks:
            reached = reach(block, self.axis)
            if (self.n_levels if reached is None else reached) > self.horizon:
                raise ValueError("rows beyond the horizon")
