"""The best that is known, where a statement cannot be paid and says that it will do.

Every answer is estimated from the history as it is, with the interval that it really has, which is
wider than the target; rows of which nothing is known are NULL. Nothing is charged. Only callers who
may see a table's history get such answers: the widths show what was asked before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.runtime import cached_property
from inference.marginals.error_law import UnknownLaw
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior, RowEstimate
from planner.level_summary import LevelSummary
from planner.workload import Answer, Part, QuantileFormula
from proxy.api.requests import SOURCE_HISTORY, SOURCE_PUBLIC
from proxy.engine.postprocessing import OuterSql
from proxy.engine.results import AnsweredAggregate, AnsweredItem, AnsweredPart
from proxy.tables.private_table import ServedTable

NOTE: Final = "{} could not be paid to its target: these are the best estimates of the history."

Flags = NDArray[np.bool_]

_UNKNOWN: Final = Posterior(0.0, UnknownLaw())
_STAND_IN: Final = Posterior(0.0, law_of_noise(np.zeros(0)))  # for what nothing is computed from


@dataclass(frozen=True, eq=False)
class BestKnownPart(AnsweredPart):
    """A part of which only some rows are known.

    Parameters
    ----------
    unknown : tuple of ndarray of bool
        For each aggregate, its rows of which nothing is known.
    """

    unknown: tuple[Flags, ...] = ()

    @cached_property
    def answers(self) -> tuple[AnsweredItem, ...]:
        """Every answer of the part, without a value where something that it needs is unknown."""
        known = AnsweredPart(self.part, self.aggregates, self.history, self.outer)
        return tuple(_hidden(item, self._lost(item.answer)) for item in known.answers)

    def values(self, aggregate: int) -> NDArray[np.float64]:
        """An aggregate's estimate in every row of the part; NaN where nothing is known."""
        return np.where(self.unknown[aggregate], np.nan, super().values(aggregate))

    def unknown_rows(self, aggregate: int) -> Flags:
        """The rows of an aggregate's blocks of which nothing is known."""
        return self.unknown[aggregate]

    def _lost(self, answer: Answer) -> Flags:
        """The rows of the part in which an answer needs something unknown."""
        lost = np.zeros(self.part.n_rows, dtype=np.bool_)
        for place in answer.uses:
            flags = self.unknown[place]
            if isinstance(answer.formula, QuantileFormula):
                groups = np.array(answer.formula.cells, dtype=np.int64)[flags]
                lost[groups // len(answer.formula.levels)] = True
            elif isinstance(answer.formula, LevelSummary):
                lost |= answer.formula.rows_of(flags, self.part.n_rows)
            else:
                lost |= flags  # a total has one row, which every row shows
        return lost


def may_fall_back(part: Part) -> bool:
    """Whether a part can be shown in part: not a test, nor counts that are to agree."""
    return part.question is None and part.consistency is None


def best_known(
    table: ServedTable, parts: Sequence[Part], outer: OuterSql, spent: Fraction
) -> list[AnsweredPart]:
    """The parts of one table as well as they are known. Charges nothing.

    Parameters
    ----------
    table : ServedTable
    parts : sequence of Part
    outer : OuterSql
    spent : Fraction
        What the statement has spent on the table before it could not be paid further.
    """
    found: list[AnsweredPart] = []
    for part in parts:
        aggregates, unknown = [], []
        for aggregate in part.aggregates:
            wanted = tuple(map(aggregate.wanted, aggregate.blocks))
            rows = [row for block in table.look(wanted) for row in block]
            unknown.append(np.array([not isinstance(row, Posterior) for row in rows], np.bool_))
            source = SOURCE_PUBLIC if aggregate.is_constant else SOURCE_HISTORY
            known = tuple(_known(row) for row in rows)
            aggregates.append(AnsweredAggregate(aggregate, known, source, spent, wanted))
            spent = Fraction(0)  # it counts once
        found.append(
            BestKnownPart(part, tuple(aggregates), table.noises, outer, unknown=tuple(unknown))
        )
    return found


def _known(row: RowEstimate) -> Posterior:
    return row if isinstance(row, Posterior) else _STAND_IN


def _hidden(item: AnsweredItem, lost: Flags) -> AnsweredItem:
    """An answer without values and intervals in some rows."""
    if not lost.any():
        return item
    if item.law is not None:
        law = item.law.hidden(lost)
        return replace(item, values=law.values, law=law)
    values = np.where(lost, np.nan, item.values)
    posteriors = tuple(
        _UNKNOWN if is_lost else one for one, is_lost in zip(item.posteriors, lost, strict=True)
    )
    return replace(item, values=values, posteriors=posteriors)
