"""How accurate each answer is to be: as the statement says, or else a default for its kind.

A count's default is its table's half-width, in records. A sum's default is a fraction of itself, or
what its measure's owner declared; it costs at most a stated multiple of what counts cost, since it
is never asked for at less than a floor that follows from public bounds. Nothing here measures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from cube.axis import MeasureAxis
from cube.query import LinearQuery
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from inference.scaling import coefficient_range
from planner.workload import RequestedTarget

DEFAULT_RELATIVE: Final = 0.05  # of a sum, where nobody says
AT_LEAST_RECORDS: Final = 2  # times the half-width of counts: records of the largest value

_UNDECLARED: Final = SumTarget(relative=DEFAULT_RELATIVE)


@dataclass(frozen=True, slots=True)
class AnswerTarget:
    """The target of one linear answer, in its own unit.

    Parameters
    ----------
    half_width : float
        What is asked for first.
    relative : float, optional
        The half-width that is wanted in the end, as a fraction of the answer.
    floor : float
        With `relative`, the half-width that is narrow enough for any answer.
    """

    half_width: float
    relative: float | None = None
    floor: float = 0.0

    @property
    def is_searched(self) -> bool:
        """Whether noisy values decide when the answer is narrow enough."""
        return self.relative is not None and self.half_width > self.floor


@dataclass(frozen=True, slots=True)
class TargetRules:
    """The targets of the answers of one SELECT.

    Parameters
    ----------
    requested : RequestedTarget
        What the statement asks for.
    default : AccuracyTarget
        The default for counts.
    sums : mapping
        The declared defaults for sums, by the measure's name.
    schema : Schema
        The public bounds.
    """

    requested: RequestedTarget
    default: AccuracyTarget
    sums: Mapping[str, SumTarget]
    schema: Schema

    @property
    def names_width(self) -> bool:
        """Whether the statement says how narrow its answers are to be."""
        return self.requested.half_width is not None or self.requested.relative is not None

    @property
    def count_width(self) -> float:
        """The half-width of a count, as far as it is known before any answer."""
        if self.requested.half_width is not None:
            return self.requested.half_width
        return self.default.half_width

    @property
    def requested_floor(self) -> float:
        """With a requested `relative`, the half-width that is narrow enough for any answer."""
        asked = self.requested
        if asked.relative is None:
            return 0.0
        if asked.at_least is None:
            return self.default.half_width
        return asked.relative * asked.at_least

    def of_answer(self, query: LinearQuery) -> AnswerTarget:
        """The target of a linear answer."""
        if self.requested.half_width is not None:
            return AnswerTarget(self.requested.half_width)
        if self.requested.relative is not None:
            return self._relative(query, self.requested.relative, self.requested_floor)
        summed = summed_columns(query)
        if not summed:
            return AnswerTarget(self.default.half_width)
        declared, width = self._declared(summed)
        floor = width * float(query.bound)
        if declared.relative is None:
            return AnswerTarget(floor)
        return self._relative(query, declared.relative, floor)

    @property
    def _undeclared_floor(self) -> float:
        """The narrowest half-width of sums where nobody declares one, in records."""
        return DEFAULT_RELATIVE * AT_LEAST_RECORDS * self.default.half_width

    def _relative(self, query: LinearQuery, relative: float, floor: float) -> AnswerTarget:
        largest = float(query.bound) * self.schema.n_records_max
        # Nothing is wider that may be enough: for an answer of T, it is r * T / (1 + r).
        first = relative / (1 + relative) * largest
        return AnswerTarget(max(floor, first), relative, floor)

    def _declared(self, columns: Sequence[str]) -> tuple[SumTarget, float]:
        """The strictest default of some summed columns, with its floor in records."""
        targets = [self.sums.get(name, _UNDECLARED) for name in columns]
        widths = [self._floor(name, one) for name, one in zip(columns, targets, strict=True)]
        strictest = widths.index(min(widths))
        return targets[strictest], widths[strictest]

    def _floor(self, name: str, target: SumTarget) -> float:
        """The narrowest half-width of a column's sums, in records of the largest value."""
        if target.relative is not None and target.at_least is None:
            return target.relative / DEFAULT_RELATIVE * self._undeclared_floor
        (axis,) = (axis for axis in self.schema.axes if axis.name == name)
        if not isinstance(axis, MeasureAxis):
            raise TypeError(f"{name} has a target for sums, and is no measure")
        return target.width / float(max(-Fraction(axis.low), Fraction(axis.high)))


def summed_columns(query: LinearQuery) -> list[str]:
    """The columns whose values a query sums: those of a factor that weighs records differently.

    Factors are in lowest terms, so that a condition weighs records by 0 and 1.
    """
    names = (
        name
        for term in query.terms
        for factor in term.factors
        if factor.bound > 1
        for name in factor.axes
    )
    return list(dict.fromkeys(names))


def counts_records(query: LinearQuery) -> bool:
    """Whether a query is a count, of which no true value is below 0."""
    is_sum = bool(summed_columns(query)) or bool(query.constant)
    return not is_sum and coefficient_range(query)[0] >= 0
