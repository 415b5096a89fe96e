"""Requests for marginals, and their results.

Values only: `proxy/marginals/make.py` computes them, and nothing here knows a gate or a client.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from cube.axis import MeasureAxis
from cube.query import N_GROUPS_MAX, Scope
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnknownName
from cube.schema import Schema
from planner.sql import listed, suggestion
from planner.workload import Consistency, RequestedTarget

N_SETS_MAX = 256
N_ROWS_MAX = 1_000_000  # of the result
BUDGET_MAX = 1024  # beyond it the noise is about a thousandth of a record: practically none

_DEFAULT = RequestedTarget()


@dataclass(frozen=True, slots=True)
class MarginalSet:
    """The columns of one marginal, in the order in which they are shown; none for the total.

    Parameters
    ----------
    importance : float
        How much the error of this marginal matters when a budget is divided.
    """

    columns: tuple[str, ...]
    importance: float = 1.0

    @property
    def scope(self) -> Scope:
        """The columns as a scope."""
        return tuple(sorted(self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalsRequest:
    """A request for tables of counts.

    Parameters
    ----------
    target : RequestedTarget
        The target for every cell; with `budget`, only its confidence and its cap count.
    budget : Fraction, optional
        Epsilon to be divided among the tables; 0 to use only what the history knows. None to buy
        what the target needs.
    public_total : int, optional
        The number of records, where it is public.
    """

    table: str
    sets: tuple[MarginalSet, ...]
    target: RequestedTarget = _DEFAULT
    budget: Fraction | None = None
    consistency: Consistency = Consistency.EXACT
    public_total: int | None = None

    def check(self, schema: Schema) -> None:
        """Refuse values that are out of range, and columns that the schema does not have.

        Raises
        ------
        InvalidRequest, InvalidTarget, UnknownName, TooLarge
        """
        if not 1 <= len(self.sets) <= N_SETS_MAX:
            raise InvalidRequest(
                f"The request has {len(self.sets)} sets of columns; 1 to {N_SETS_MAX} are allowed.",
                hint="Write them like sex,race;age.",
            )
        _check_numbers(self)
        n_rows = 0
        for one in self.sets:
            for column in one.columns:
                _check_column(column, schema)
            if len(set(one.columns)) < len(one.columns):
                raise InvalidRequest(
                    f"A set names a column twice: {listed(one.columns)}.", hint="Name it once."
                )
            n_cells = math.prod(schema.sizes(one.scope))
            if n_cells > N_GROUPS_MAX:
                raise TooLarge(
                    f"The table of {listed(one.columns)} has {n_cells} cells; {N_GROUPS_MAX} are "
                    "allowed.",
                    hint="Name fewer columns.",
                )
            n_rows += n_cells
        if len({one.scope for one in self.sets}) < len(self.sets):
            raise InvalidRequest("Two sets have the same columns.", hint="Name each set once.")
        if n_rows > N_ROWS_MAX:
            raise TooLarge(
                f"The tables have {n_rows} cells together; {N_ROWS_MAX} are allowed.",
                hint="Ask for some of them at a time.",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MadeMarginals:
    """Tables of counts, in one long table, and facts about them.

    Parameters
    ----------
    data : pyarrow.Table
        One row for each cell of each set; see `proxy.marginals.reconcile`.
    epsilon_spent : Fraction
        How much they added to the table's cost.
    confidence : float
        The confidence of each interval.
    misfit, residual : float, optional
        As in `inference.marginals.table.Reconciled`; None if nothing was reconciled.
    notes : tuple of str
        Sentences for people.
    """

    data: pa.Table
    consistency: Consistency
    epsilon_spent: Fraction
    confidence: float
    misfit: float | None
    residual: float | None
    notes: tuple[str, ...]


def _check_numbers(request: MarginalsRequest) -> None:
    if request.budget is not None and not 0 <= request.budget <= BUDGET_MAX:
        raise InvalidTarget(
            f"A budget is a number from 0 to {BUDGET_MAX}.", hint="For example 0.5."
        )
    if request.budget is not None and request.target.half_width is not None:
        raise InvalidTarget(
            "The request names both a half_width and a budget.", hint="Name one of them."
        )
    if request.public_total is not None and request.public_total < 0:
        raise InvalidRequest("A number of records cannot be negative.", hint="Leave it out.")
    if request.public_total is not None and request.consistency is Consistency.RAW:
        raise InvalidRequest(
            "Raw tables are returned as measured, and cannot use the public total.",
            hint="Ask for exact consistency.",
        )
    if not all(0 < one.importance < math.inf for one in request.sets):
        raise InvalidRequest(
            "An importance must be a positive number.", hint="The usual value is 1."
        )


def _check_column(column: str, schema: Schema) -> None:
    names = [axis.name for axis in schema.axes if not isinstance(axis, MeasureAxis)]
    if column not in names:
        raise UnknownName(
            f"{schema.table} has no column {column!r} to count by.",
            hint=suggestion(column, names) or f"It has {listed(names)}.",
        )
