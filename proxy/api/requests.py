"""Requests to the engine, and their results.

Epsilon as people write it: decimal text, read exactly.

The best whole number to report for one count, under a user's prior and loss function.

This is post-processing of one answer and costs what the answer costs. The prior and the loss are
the user's own, and have no effect on other users.

`QueryEngine` is the whole interface that the protocols use: they translate messages into its
requests and its answers into messages, and decide nothing about privacy. Nothing here knows Arrow
streams, gRPC or SQL trees; tables are Arrow tables because that is what leaves the process.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol

import pyarrow as pa

from accountant.ledger import EVERY_TABLE, Payer, Role
from accountant.ledger.history import Renewal
from cube.refusals import InvalidTarget, UnknownName, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from planner.belief import Belief, counts_rows
from planner.sql import Parameters, listed
from planner.workload import GivenAnswers, RequestedTarget, Wanted, Workload
from proxy.api.marginals import MadeMarginals, MarginalsRequest
from proxy.shared.renewal_text import renewal_words, this_window

# Short, so that no exponent makes an exact number with a billion digits.
_DECIMAL: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


def exact_epsilon(name: str, text: str) -> Fraction:
    """The number that a text stands for; messages call it `name`.

    >>> exact_epsilon("epsilon", "1e-3")
    Fraction(1, 1000)
    """
    if _DECIMAL.fullmatch(text) is None:
        raise InvalidTarget(
            f"{name} must be a decimal number that is not negative, not {text[:40]!a}.",
            hint="Write it like 0.25 or 1e-3.",
        )
    return Fraction(text)


@dataclass(frozen=True, slots=True)
class ReportedCount:
    """The best report of a count, and what it is computed from.

    Parameters
    ----------
    value : int
        The report, in records.
    expected_loss : float
        Under the prior and the answer.
    answer : float
        The noisy count that it is computed from.
    low, high : int
        The shortest interval of counts that has the confidence under the prior.
    confidence : float
        That of the statement.
    probability : float
        What the interval really has: counts are whole, so it may have more.
    """

    value: int
    expected_loss: float
    answer: float
    low: int
    high: int
    confidence: float
    probability: float


def one_count(workload: Workload) -> tuple[str, Wanted]:
    """The table of a statement that asks for exactly one count, and that count.

    Raises
    ------
    UnsupportedSql
        If the statement asks for anything else.
    """
    if len(workload.parts) == 1 and not workload.is_probe:
        (part,) = workload.parts
        if len(part.aggregates) == len(part.answers) == part.n_rows == 1:
            (aggregate,) = part.aggregates
            (block,) = aggregate.blocks
            is_whole = counts_rows(block) and aggregate.rule is None
            if part.answers[0].formula is None and not aggregate.is_constant and is_whole:
                return part.table, Wanted(block, aggregate.target)
    raise UnsupportedSql(
        "The statement does not ask for exactly one count.",
        hint="Write SELECT COUNT(*) FROM .. WHERE .., without GROUP BY.",
    )


NOTHING_REQUESTED: Final = RequestedTarget()

# Where tables are listed.
CATALOG: Final = "tacit"
DB_SCHEMA: Final = "public"

# The sources of answers.
SOURCE_HISTORY: Final = "history"
SOURCE_MEASURED: Final = "measured"
SOURCE_MIXED: Final = "mixed"
SOURCE_PUBLIC: Final = "public"

# Kinds of tables. The first one has a budget and a history; the last two answer by themselves, and
# are the sources of their answers.
PRIVATE: Final = "private"
SYNTHETIC: Final = "synthetic"  # of rows that a model drew
RANDOMIZED: Final = "randomized"  # a collection
STREAM: Final = "stream"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Parameters
    ----------
    payer : Payer
        The account that is charged.
    tables : tuple of str
        The tables that they may know of; ``*`` for every table. To them, any other table does not
        exist.
    """

    payer: Payer
    role: Role
    tables: tuple[str, ...]

    def opens(self, table: str) -> bool:
        """Whether they may know of a private table."""
        return EVERY_TABLE in self.tables or table in self.tables


LOCAL: Final = Caller(Payer("local"), Role.OWNER, (EVERY_TABLE,))  # the user who runs the process


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One statement of one analyst.

    Parameters
    ----------
    sql : str
        The statement as the client wrote it.
    target : RequestedTarget
        The target that the client requests outside the SQL; the SQL's own OPTIONS and the table's
        default fill in the rest.
    parameters : tuple of Parameter
        Values for the parameters of the statement.
    caller : Caller
        The caller; by default the user who runs the process.
    settings : tuple of (str, str)
        What the client has set for its session and changes no answer, by lower-case names; the
        catalog shows it.
    given : tuple of (str, tuple)
        The answers to subqueries of the statement that were asked first, by their texts. No client
        gives any.
    rounds : int
        How many statements the client's one became, since some subqueries are asked first. Each
        has that share of a default cost. No client says how many.
    """

    sql: str
    target: RequestedTarget = NOTHING_REQUESTED
    parameters: Parameters = ()
    caller: Caller = LOCAL
    settings: tuple[tuple[str, str], ...] = ()
    given: GivenAnswers = ()
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class ColumnReceipt:
    """The source, the cost and the intervals of one answer column.

    Parameters
    ----------
    name : str
        The column's name in the result.
    confidence : float
        The probability that a row's interval contains the true value.
    epsilon_spent : Fraction
        How much this column added to the table's cost.
    source : str
        "history", "measured", "mixed", "public" or "model"; or that of a table that answers by
        itself, such as "randomized".
    low, high : tuple of float
        The interval of each result row, in units of the answer.
    """

    name: str
    confidence: float
    epsilon_spent: Fraction
    source: str
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high):
            raise ValueError(f"{len(self.low)} low ends for {len(self.high)} high ends")


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A limit on an analyst or a group, in epsilon, and what currently counts towards it.

    Parameters
    ----------
    subject : str
        The subject of the limit: ``analyst:ann``, ``group:sales`` or ``each_analyst``.
    limit : Fraction, optional
        None if only single queries are limited.
    spent : Fraction
        What is spent in the window.
    """

    subject: str
    window: str
    limit: Fraction | None
    spent: Fraction
    per_query: Fraction | None

    @property
    def left(self) -> Fraction | None:
        """What can still be spent in the window."""
        return None if self.limit is None else max(Fraction(0), self.limit - self.spent)


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """How much of a table's budget is spent, in epsilon, and the limits that bind the caller.

    If the budget renews, `spent` is what was spent in the present window, and `renewal` says when
    that ends and what was spent beyond it.
    """

    table: str
    limit: Fraction
    spent: Fraction
    n_measurements: int
    limits: tuple[LimitStatus, ...] = ()
    renewal: Renewal | None = None

    @property
    def left(self) -> Fraction:
        """What can still be spent."""
        return max(Fraction(0), self.limit - self.spent)  # an owner may lower the limit

    @property
    def left_text(self) -> str:
        """What can still be spent, for people; of a budget that renews, until when, and the sums.

        >>> BudgetStatus("t", Fraction(2), Fraction(1, 2), 3).left_text
        'epsilon 1.5 of 2 left'
        """
        left = f"epsilon {float(self.left):.6g} of {float(self.limit):.6g}"
        if self.renewal is None:
            return f"{left} left"
        when = self.renewal
        words = renewal_words(when.next_day, when.spent_in_year, when.spent_in_all)
        return f"{left} left {this_window(when.window)}; {words}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The cost of one answer, and the source of each of its columns.

    `table` and `budget` are those of the first private table in the statement; without any, it is a
    table that answers by itself, and there is no budget. `notes` are sentences on how the answer
    was made, such as that a column has no interval; `warnings` are those of them that a client is
    told of unasked, such as that a filter names a value that no row has; `caveats` say which data
    is left out or counts as something else, and a session is told of them once.
    """

    table: str
    epsilon_spent: Fraction
    columns: tuple[ColumnReceipt, ...]
    budget: BudgetStatus | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """An answer that may leave the process.

    Parameters
    ----------
    data : pyarrow.Table
        The result; its schema metadata carries the receipt as JSON under
        ``tacit.receipt``.
    receipt : Receipt, optional
        None for statements that never charge: EXPLAIN PRIVACY, and statements on public data only.
    """

    data: pa.Table
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class Description:
    """What a client is told of a statement before it runs.

    Parameters
    ----------
    schema : pyarrow.Schema, optional
        The columns of the answer; None where the values of parameters decide what they are.
    parameters : mapping
        The SQL type of each parameter by its name, in the order in which values are sent.
    """

    schema: pa.Schema | None
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a statement would cost at present, in epsilon, and why (as a table)."""

    data: pa.Table
    epsilon: Fraction
    budget: BudgetStatus | None  # None if the statement reads no private table


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Statements, separated by semicolons, to be planned together, and bought if `buy` is true.

    The target fills in what a statement leaves open; its epsilon cap applies to all of them
    together.
    """

    sql: str
    target: RequestedTarget = NOTHING_REQUESTED
    buy: bool = False
    caller: Caller = LOCAL


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The accuracy promised to each statement of a batch (as a table), and the total cost.

    `notes` are sentences on how the plan was made, such as the kind of noise that is bought.
    """

    data: pa.Table
    epsilon: Fraction
    n_measurements: int
    is_bought: bool
    budget: BudgetStatus
    notes: tuple[str, ...] = ()


CUT_SHARE: Final = 0.02  # left out by a bound that is found for a statement


@dataclass(frozen=True, slots=True)
class TableInfo:
    """The public description of one table, and the default targets of counts and of sums.

    `default_cost` is the most that a statement without a target may cost; None if its targets alone
    decide. `cut_share_max` is what a bound that is found for a statement may leave out, of its rows
    or its sum. `kind` is "private", or that of a table that answers by itself; of these, `comment`
    says what they are, in a sentence or two.
    """

    schema: Schema
    default: AccuracyTarget
    sums: Mapping[str, SumTarget] = field(default_factory=dict)
    kind: str = PRIVATE
    comment: str = ""
    default_cost: Fraction | None = None
    cut_share_max: float = CUT_SHARE


class QueryEngine(Protocol):
    """Everything that the protocols may call. Any method may raise `Refused`."""

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The schema of the answer: free, reads no data, charges nothing."""
        ...

    def describe(self, request: QueryRequest) -> Description:
        """The same, and the parameters' types, of a statement whose parameters have no values."""
        ...

    def answer(self, request: QueryRequest) -> QueryResult:
        """The answer: the only call that may charge."""
        ...

    def explain(self, request: QueryRequest) -> Explanation:
        """What `answer` would cost: reads no data, charges nothing."""
        ...

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        """What a batch would cost, planned together; charges only if the request says so."""
        ...

    def marginals(self, request: MarginalsRequest, caller: Caller) -> Iterator[str | MadeMarginals]:
        """Tables of counts, after the names of the steps; may charge for what is missing."""
        ...

    def best_report(
        self, request: QueryRequest, belief: Belief
    ) -> tuple[ReportedCount, QueryResult]:
        """One count, and the best report for it; charges as `answer` does."""
        ...

    def tables(self, caller: Caller) -> tuple[TableInfo, ...]:
        """Every private table that a caller may know of."""
        ...

    def views(self) -> Mapping[str, pa.Schema]:
        """The views of `data_privacy` that have columns of their own: these, by name."""
        ...

    def budgets(self, caller: Caller) -> tuple[BudgetStatus, ...]:
        """The budgets of these tables, and the limits that bind the caller."""
        ...


def unknown_table(table: str, opened: Sequence[str]) -> UnknownName:
    """The refusal for a table that does not exist or is not open to the caller: the same text."""
    hint = f"Tables here: {listed(opened)}." if opened else "No table is open to this credential."
    return UnknownName(f"There is no table {table[:64]!a}.", hint=hint)
