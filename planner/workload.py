"""Defines a planned statement: aggregates of private tables, and their post-processing.

Values of a column that count as others than they are: clamped ones, and those of OTHER.

Counts of overlapping groups that are to agree: how, and which tables they are.

How many draws of a formula's true value its interval needs.

What answers a statement that cannot be paid; by default nothing does, and it is refused.

A search for a target that ends short of it has paid for something: by default the statement then
has the intervals that were bought.

A test of independence, as a question to the engine about the counts of one table.

A `Workload` holds no answer and no SQL tree; it is everything the engine needs to know. Its `parts`
are the places where a private table is aggregated: linear queries with targets. Everything after
them is post-processing: formulas of one row's answers, and `outer`, SQL over the noisy relations.
"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeAlias

from cube.axis import LevelValue
from cube.query import QueryBlock
from cube.refusals import UnsupportedSql
from cube.statistic import UNIT_COUNT, Rule
from cube.target import AccuracyTarget, PosteriorMethod
from planner.belief import Belief
from planner.decision import Comparison, Decision, SubqueryClaim, surer
from planner.level_summary import LevelSummary


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """Which values they are, and how their rows are counted.

    Parameters
    ----------
    table : str
    said : str
        A sentence on what they count as.
    rows_said : str
        What is said about the rows that `rows` counts, after their number.
    rows : QueryBlock
        Counts the rows with a value that others count as, in one row. A row whose value is exactly
        a bound is among them.
    """

    table: str
    said: str
    rows_said: str
    rows: QueryBlock


class Consistency(StrEnum):
    """How counts of overlapping groups are made to agree.

    Raw tables as measured; the closest tables that agree; tables that are also nowhere negative;
    the marginals of one joint table.
    """

    RAW = "raw"
    EXACT = "exact"
    NONNEGATIVE = "nonnegative"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class ConsistentSets:
    """The grouping sets of a part as tables whose counts are to agree.

    Parameters
    ----------
    consistency : Consistency
    sets : tuple of tuple of int
        The keys of each set, by their positions; rows are in their order, the last key varying
        fastest.
    sizes : tuple of int
        The number of values of each key.
    """

    consistency: Consistency
    sets: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


N_TAIL_DRAWS: Final = 10  # of a formula's true value, in each tail that an interval cuts off


def n_draws_for(confidence: float) -> int:
    """The fewest draws for a formula's interval at a confidence.

    >>> n_draws_for(0.95), n_draws_for(0.999)
    (400, 20000)
    """
    return math.ceil(round(2 * N_TAIL_DRAWS / (1 - confidence), 6))


class Fallback(StrEnum):
    """What a statement falls back on: the best that is known, or a synthetic table.

    With ERROR it is refused also where a search for its target has paid for something.
    """

    NONE = "none"
    ERROR = "error"
    HISTORY = "history"
    MODEL = "model"

    @property
    def gives_what_was_bought(self) -> bool:
        """Whether a search that ends short of its target is answered with what it bought."""
        return self in {Fallback.NONE, Fallback.HISTORY}


@dataclass(frozen=True, slots=True)
class IndependenceQuestion:
    """Whether the first keys of a part are independent given the others.

    The part's only aggregate counts the cells of their table, the last key varying fastest.

    Parameters
    ----------
    shape : tuple of int
        The number of values of each key.
    level : float
        The probability of rejecting a true hypothesis.
    n_replicates : int
        The number of simulated tables.
    n_tested : int
        How many keys are tested: two, or more, whose mutual independence is asked.
    is_likelihood_ratio : bool
        Whether the statistic is ``G**2``, and not Pearson's.
    """

    shape: tuple[int, ...]
    level: float
    n_replicates: int
    # They are no part of the text that seeds simulated tables, which is the same as ever.
    n_tested: int = field(default=2, repr=False)
    is_likelihood_ratio: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTarget:
    """The parts of an accuracy target that a request names; the rest comes from elsewhere.

    Parameters
    ----------
    half_width, confidence : float, optional
    epsilon_cap : Fraction, optional
    simultaneous : int, optional
        The number of answers for which the confidence holds simultaneously.
    relative : float, optional
        The half-width as a fraction of the answer.
    at_least : float, optional
        With `relative`, a lower bound on the absolute value that is used for an answer.
    fallback : Fallback, optional
        What answers the statement if it cannot be paid.
    nonnegative_counts : bool, optional
        Whether counts below 0 are shown as 0.
    integer_counts : bool, optional
        Whether the counts of the result are shown in whole numbers.
    refuse_unknown_values : bool, optional
        Whether a comparison with a value that is no level is refused, and not only noted.
    decide : float, optional
        The probability with which claims are to be decided; then measuring stops.
    certainty : bool, optional
        Whether columns say how probably comparisons, and the order of the first rows, are right.
    posterior : PosteriorMethod, optional
        How the posteriors of linear answers are computed; exactly by default.
    as_of : str, optional
        The last day, moment or number whose rows are meant, of tables that grow.
    any_holders : bool, optional
        Whether a federated table is answered from those of its holders that can, if not all can.
    rows_per_unit : int, optional
        Of the rows that a statement is about, how many of each unit count; 0 to find a number that
        fits.
    unit_sum_max : Fraction, optional
        How much one unit adds to a sum, over all groups, signs aside.
    """

    half_width: float | None = None
    confidence: float | None = None
    epsilon_cap: Fraction | None = None
    simultaneous: int | None = None
    relative: float | None = None
    at_least: float | None = None
    fallback: Fallback | None = None
    nonnegative_counts: bool | None = None
    integer_counts: bool | None = None
    refuse_unknown_values: bool | None = None
    decide: float | None = None
    certainty: bool | None = None
    posterior: PosteriorMethod | None = None
    as_of: str | None = None
    any_holders: bool | None = None
    rows_per_unit: int | None = None
    unit_sum_max: Fraction | None = None

    def over(self, other: "RequestedTarget") -> "RequestedTarget":
        """Fill in what this request leaves open from `other`.

        Of two caps the smaller one applies, so that no cap can be overruled.
        """
        width = other if self.half_width is None and self.relative is None else self
        caps = [one.epsilon_cap for one in (self, other) if one.epsilon_cap is not None]
        open_here = [one.name for one in fields(self) if getattr(self, one.name) is None]
        filled = {name: getattr(other, name) for name in open_here} | {
            "half_width": width.half_width,
            "relative": width.relative,
            "at_least": width.at_least,
            "epsilon_cap": min(caps, default=None),
        }
        return replace(self, **filled)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A block of linear queries and the accuracy target of each of its rows.

    With a `rule`, units are counted instead of rows, or only so much of each unit's rows counts
    (`cube.statistic.OfUnits`).

    With `is_searched`, the target is one of several that follow each other, and only rows are
    bought whose later raises cost the difference: a table of cells bought for an early one would
    be paid beside the rows of a later one.
    """

    block: QueryBlock
    target: AccuracyTarget
    is_searched: bool = False
    rule: Rule | None = None

    @property
    def asked(self) -> tuple[QueryBlock, float, float]:
        """The block, the confidence and the half-width, as an estimator is asked for them."""
        return self.block, self.target.confidence, self.target.half_width


# The answers to subqueries of a statement that were asked first, by their text.
GivenAnswers: TypeAlias = tuple[tuple[str, tuple[LevelValue, ...]], ...]


class AskedFirst(UnsupportedSql):
    """A subquery of answers chooses private rows: its answer is needed before the rest is planned.

    For callers that ask one statement at a time, it is a refusal.

    Parameters
    ----------
    refusal : UnsupportedSql
        What it is for such a caller.
    sql : str
        The subquery, as a statement by itself.
    requested : RequestedTarget
        The target in force where it stands.
    is_list : bool
        Whether it may give several values.
    """

    def __init__(
        self,
        refusal: UnsupportedSql,
        *,
        sql: str,
        requested: RequestedTarget,
        is_list: bool,
    ) -> None:
        super().__init__(refusal.message, hint=refusal.hint)
        self.position = refusal.position
        self.is_list = is_list
        self.sql = sql
        self.requested = requested


class ColumnKind(StrEnum):
    """What a column of a part's relation shows."""

    KEY = "key"
    GROUPING = "grouping"  # 1 in rows that are summed over the key, otherwise 0
    ESTIMATE = "estimate"  # of one aggregate, for computations
    ANSWER = "answer"
    LOW = "low"
    HIGH = "high"
    STDERR = "stderr"
    COST = "cost"
    SOURCE = "source"
    SUMMARY = "summary"  # of levels
    PROBABILITY = "probability"  # that an answer lies in a range
    REPORT = "report"  # the best one of a count


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of a part's relation.

    Parameters
    ----------
    name : str
        The column's name.
    kind : ColumnKind
        Whether it shows an answer, an end of an interval, or something else.
    index : int
        Which key (KEY, GROUPING), aggregate (ESTIMATE), summary (SUMMARY), or answer (all others).
    confidence : float, optional
        The confidence of LOW and HIGH; by default the target's. Of PROBABILITY, that of an interval
        which needs as many draws of a formula.
    span : tuple of float, optional
        The range that a PROBABILITY is about.
    belief : Belief, optional
        The prior and the loss of a REPORT.
    """

    name: str
    kind: ColumnKind
    index: int
    confidence: float | None = None
    span: tuple[float, float] | None = None
    belief: Belief | None = None


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The values of one GROUP BY expression, one for each row of the part.

    Parameters
    ----------
    sql_type : str
        A DuckDB type name: VARCHAR, BIGINT, DOUBLE, BOOLEAN, DATE, DECIMAL(p,s), ...
    values : tuple
        One public value for each row; None for NULL, and where the row is summed over the key.
    is_summed_over : tuple of bool
        For each row, whether its grouping set leaves the key out.
    """

    sql_type: str
    values: tuple[LevelValue, ...]
    is_summed_over: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A linear query on every group, and its accuracy target.

    Parameters
    ----------
    name : str
    sql : str
        The analyst's own text, for messages and EXPLAIN.
    blocks : tuple of QueryBlock
        One for each grouping set, in the order of the part's rows; or a single block of one row
        that every row of the part shows, if `is_total`.
    target : AccuracyTarget
    is_total : bool
        Whether it is one number for all groups.
    is_nonnegative : bool
        Whether what is shown of it is 0 at least; formulas use it as it is.
    rule : Rule, optional
        What of each unit counts, where that is not all of its rows.
    fits_units : bool
        Whether a rule is to be found that fits it.
    decision : Decision, optional
        It is known well enough once this is decided, and at its target's half-width in any case.
    """

    name: str
    sql: str
    blocks: tuple[QueryBlock, ...]
    target: AccuracyTarget
    is_total: bool = False
    is_nonnegative: bool = False
    rule: Rule | None = None
    fits_units: bool = False
    decision: Decision | None = None

    def wanted(self, block: QueryBlock) -> Wanted:
        """One of its blocks, at its target."""
        return Wanted(block, self.target, rule=self.rule)

    @property
    def counts_units(self) -> bool:
        """Whether units are counted, and not rows."""
        return self.rule is not None and self.rule.kind == UNIT_COUNT

    @property
    def is_constant(self) -> bool:
        """Whether the answer is public."""
        return all(block.query.is_constant for block in self.blocks)


@dataclass(frozen=True, slots=True)
class SqlFormula:
    """A scalar SQL expression of one row's aggregates ``a0, a1, ..`` and keys ``k0, k1, ..``."""

    sql: str


@dataclass(frozen=True, slots=True)
class QuantileFormula:
    """A quantile of an ordered column from counts of its levels.

    Parameters
    ----------
    fraction : float
        Between 0 and 1.
    levels : tuple of float
        The level values in increasing order.
    cells : tuple of int
        For each row of the one aggregate's blocks, ``row of the part * len(levels) + level``.
    is_interpolated : bool
        Whether it interpolates between neighbouring records, as PERCENTILE_CONT does.
    upper : tuple of float
        The upper ends of levels that are bins, in which records are assumed to be spread evenly.
    is_bracketed : bool
        Whether the interval contains the whole bin that a quantile may be in, not only the place
        in it where it is if records are spread evenly.
    """

    fraction: float
    levels: tuple[float, ...]
    cells: tuple[int, ...]
    is_interpolated: bool
    upper: tuple[float, ...] = ()
    is_bracketed: bool = False


Formula = SqlFormula | QuantileFormula | LevelSummary  # which counts levels, or adds them up


@dataclass(frozen=True, slots=True)
class Answer:
    """An item with an interval: an aggregate, or a formula of some.

    Parameters
    ----------
    name : str
    sql : str
        The analyst's own text of it.
    uses : tuple of int
        The aggregates it is computed from, by their positions in the part.
    formula : SqlFormula, QuantileFormula or LevelSummary, optional
        None if it is a single aggregate.
    low, high : float
        The public range of the true value.
    half_width : float, optional
        The requested half-width of a formula's own interval.
    relative : float, optional
        The requested half-width, as a fraction of the answer.
    width_floor : float
        With `relative`, the half-width that is narrow enough for any answer.
    divisors : tuple of int
        The aggregates, of those it uses, that a formula divides by. It has no value in a row where
        one of them cannot be told from 0.
    has_interval : bool
        Whether anybody sees its interval.
    is_rounded : bool
        Whether it is a count that is shown as a whole number.
    """

    name: str
    sql: str
    uses: tuple[int, ...]
    formula: Formula | None = None
    low: float = float("-inf")
    high: float = float("inf")
    half_width: float | None = None
    relative: float | None = None
    width_floor: float = 0.0
    divisors: tuple[int, ...] = ()
    has_interval: bool = True
    is_rounded: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregation of a private table: a noisy relation.

    With group keys, an aggregate's blocks have their grouping sets' partitions, row after row. Its
    ``n_rows`` may be 0 when the public domain has no cell that satisfies WHERE.

    Parameters
    ----------
    name : str
        The name of the relation in the outer SQL.
    table : str
        The private table.
    keys : tuple of GroupKey
    aggregates : tuple of Aggregate
    answers : tuple of Answer
    columns : tuple of OutputColumn
        The columns of the relation of answers.
    confidence : float
        The confidence of every interval that names no other.
    epsilon_cap : Fraction, optional
        The most that the statement may add to the table's cost.
    n_rows : int
    consistency : ConsistentSets, optional
        Whether the counts of its grouping sets are to agree.
    question : IndependenceQuestion, optional
        If given, its relation is the outcome of that test.
    is_searched : bool
        Whether noisy values decide when its answers are narrow enough (see `planner.decision`).
    summaries : tuple of LevelSummary
        Estimates without intervals.
    is_default : bool
        Whether the statement names no width: it has what its table's default cost buys.
    searches_widths : bool
        Whether noisy values decide how narrow its answers are, other than by decisions, whose
        intervals allow for every look.
    comparisons : tuple of Comparison
        What its statement computes from noisy values by comparing them with constants.
    posterior : PosteriorMethod
        How the posteriors of its linear answers are computed.
    """

    name: str
    table: str
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]
    answers: tuple[Answer, ...]
    columns: tuple[OutputColumn, ...]
    confidence: float
    epsilon_cap: Fraction | None
    n_rows: int
    consistency: ConsistentSets | None = None
    question: IndependenceQuestion | None = None
    is_searched: bool = False
    summaries: tuple[LevelSummary, ...] = ()
    is_default: bool = False
    searches_widths: bool = False
    comparisons: tuple[Comparison, ...] = ()
    posterior: PosteriorMethod = PosteriorMethod.EXACT

    def cut_at(self, confidence: float) -> float:
        """The confidence to use for an interval that must finally hold with `confidence`."""
        return surer(confidence) if self.searches_widths else confidence


@dataclass(frozen=True, slots=True)
class Outer:
    """SQL that makes the result from noisy and public relations.

    Parameters
    ----------
    sql : str
        DuckDB's SQL over the parts' relations and the public ones.
    public : tuple of str
        The public relations it reads, by name.
    intervals : tuple of (int, int, int)
        For each column that shows an answer: the column's position, the part, the answer. The ends
        of its interval are in two further columns, after the others, in this order.
    reads : tuple of str
        Every relation, as often as it is named; joins may multiply them with each other.
    n_made : int
        The numbers of rows of its relations of constants, multiplied with each other.
    n_characters : int
        The most characters of a text that it makes.
    """

    sql: str
    public: tuple[str, ...] = ()
    intervals: tuple[tuple[int, int, int], ...] = ()
    reads: tuple[str, ...] = ()
    n_made: int = 1
    n_characters: int = 0


PICKED: Final = (
    "Rows are picked in the order of noisy answers. Where the intervals of groups overlap, the "
    "true order may differ. Values that are picked because they are large tend to be too large."
)


@dataclass(frozen=True, slots=True)
class Pick:
    """The first rows of a part in the order of its noisy answers, which alone are shown.

    Parameters
    ----------
    by : OutputColumn
        What they are ordered by: an ANSWER, or the ESTIMATE of one aggregate.
    n_rows, n_before : int
        LIMIT and OFFSET.
    is_descending, is_null_first : bool
        Which values come first.
    shows_certainty : bool
        Whether a column says how probably each row is before the next.
    """

    by: OutputColumn
    n_rows: int
    n_before: int
    is_descending: bool
    is_null_first: bool
    shows_certainty: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that one statement asks for.

    Parameters
    ----------
    parts : tuple of Part
        In the order in which they are answered.
    outer : Outer, optional
        None if the relation of the only part is the result.
    is_probe : bool
        Whether the result has no rows whatever the answers (LIMIT 0), so that only its columns
        matter.
    fallback : Fallback
        What answers the statement if it cannot be paid.
    notes : tuple of str
        Sentences for the receipt on how the answer is made.
    warnings : tuple of str
        Those of the notes that a client is told of unasked: the statement may not mean what its
        author meant.
    caveats : tuple of str
        Those of the notes that say what of the data counts as something else, or is left out.
    changed : tuple of ChangedValues
        The values that count as others than they are.
    pick : Pick, optional
        Which rows are shown, if they are the first of the only part's.
    moment : datetime, optional
        What CURRENT_DATE and NOW() were taken to be, in UTC, if the statement has them.
    whole : tuple of int
        The columns of the result that are counts to be shown in whole numbers.
    claims : tuple of SubqueryClaim
        About answers of several parts.
    any_holders : bool
        Whether those holders of a federated table answer that can, if not all can.
    """

    parts: tuple[Part, ...]
    outer: Outer | None
    is_probe: bool = False
    fallback: Fallback = Fallback.NONE
    notes: tuple[str, ...] = ()
    moment: dt.datetime | None = None
    whole: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    changed: tuple[ChangedValues, ...] = ()
    pick: Pick | None = None
    claims: tuple[SubqueryClaim, ...] = ()
    any_holders: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """The private tables that it reads, each once."""
        return tuple(dict.fromkeys(part.table for part in self.parts))

    def told(
        self, notes: Sequence[str], caveats: Sequence[str], warnings: Sequence[str] = ()
    ) -> "Workload":
        """The same with further notes, caveats and warnings, which are notes, too."""
        return replace(
            self,
            notes=(*self.notes, *notes, *caveats, *warnings),
            caveats=(*self.caveats, *caveats),
            warnings=(*self.warnings, *warnings),
        )

    def of_table(self, table: str) -> tuple[Part, ...]:
        """The parts on one table."""
        return tuple(part for part in self.parts if part.table == table)
