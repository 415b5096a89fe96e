"""What the wire asks of the engine, and what it gets back.

`QueryEngine` is the whole face the protocols see: they translate messages into its requests and
its answers into messages, and decide nothing about privacy. No Arrow stream, gRPC or SQL tree is
known here; tables are Arrow tables because that is what leaves the process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import pyarrow as pa

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.limits import Payer
from cube.refusals import UnknownName
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.sql.messages import listed
from planner.workload import RequestedTarget
from proxy.api.best_report import Belief, ReportedCount
from proxy.api.marginals import MadeMarginals, MarginalsRequest

NOTHING_REQUESTED: Final = RequestedTarget()

# What an answer rests on.
SOURCE_HISTORY: Final = "history"
SOURCE_MEASURED: Final = "measured"
SOURCE_MIXED: Final = "mixed"
SOURCE_PUBLIC: Final = "public"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking.

    Parameters
    ----------
    payer : Payer
        To whose account it goes.
    role : Role
    tables : tuple of str
        Those that he may know of; ``*`` for every one. Any other is, to him, not there.
    """

    payer: Payer
    role: Role
    tables: tuple[str, ...]

    def opens(self, table: str) -> bool:
        """Whether he may know of a private table."""
        return EVERY_TABLE in self.tables or table in self.tables


LOCAL: Final = Caller(Payer("local"), Role.OWNER, (EVERY_TABLE,))  # whoever runs the process


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequest:
    """One statement of one analyst.

    Parameters
    ----------
    sql : str
        The statement as the client wrote it.
    target : RequestedTarget
        What the client asked for beside the SQL; the SQL's own OPTIONS and the table's default
        fill in the rest.
    caller : Caller
        Who is asking; whoever runs the process, unless the wire says otherwise.
    """

    sql: str
    target: RequestedTarget = NOTHING_REQUESTED
    caller: Caller = LOCAL


@dataclass(frozen=True, slots=True)
class ColumnReceipt:
    """What one answer column rests on.

    Parameters
    ----------
    name : str
        The column's name in the result.
    confidence : float
        Probability that a row's interval holds the truth.
    epsilon_spent : Fraction
        What this column added to the table's cost.
    source : str
        "history", "measured", "mixed", "public" or "model".
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
    """A limit that binds somebody, in epsilon, and what counts towards it now.

    Parameters
    ----------
    subject : str
        Whom the limit is about: ``analyst:ann``, ``group:sales`` or ``each_analyst``.
    window : str
    limit : Fraction, optional
        None if only single queries are limited.
    spent : Fraction
        In the window.
    per_query : Fraction, optional
    """

    subject: str
    window: str
    limit: Fraction | None
    spent: Fraction
    per_query: Fraction | None

    @property
    def left(self) -> Fraction | None:
        """What may still be spent in the window."""
        return None if self.limit is None else max(Fraction(0), self.limit - self.spent)


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """How much of a table's budget is gone, in epsilon, and what binds the one who asked."""

    table: str
    limit: Fraction
    spent: Fraction
    n_measurements: int
    limits: tuple[LimitStatus, ...] = ()

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return max(Fraction(0), self.limit - self.spent)  # an owner may lower the limit


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one answer cost and what its columns rest on.

    `table` and `budget` are those of the first private table that the statement asks.
    """

    table: str
    epsilon_spent: Fraction
    columns: tuple[ColumnReceipt, ...]
    budget: BudgetStatus


@dataclass(frozen=True, slots=True, eq=False)
class QueryResult:
    """An answer that may leave the process.

    Parameters
    ----------
    data : pyarrow.Table
        The result; its schema metadata carries the receipt as JSON under
        ``tacit.receipt``.
    receipt : Receipt, optional
        None for what charges nothing: EXPLAIN PRIVACY, and statements of public things alone.
    """

    data: pa.Table
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a statement would cost just now, in epsilon, and why (as a table)."""

    data: pa.Table
    epsilon: Fraction
    budget: BudgetStatus | None  # None if no private table is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """Statements, separated by semicolons, to be planned together and bought if `buy`.

    The target fills in what a statement leaves open; its epsilon cap is one for all of them.
    """

    sql: str
    target: RequestedTarget = NOTHING_REQUESTED
    buy: bool = False
    caller: Caller = LOCAL


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What each statement of a batch is promised (as a table), and what all of it costs."""

    data: pa.Table
    epsilon: Fraction
    n_measurements: int
    is_bought: bool
    budget: BudgetStatus


@dataclass(frozen=True, slots=True)
class TableInfo:
    """The public face of one table, and the target of requests that name none."""

    schema: Schema
    default: AccuracyTarget


class QueryEngine(Protocol):
    """Everything the protocols may ask for. Any method may raise `Refused`."""

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The schema of the answer: free, reads no data, charges nothing."""
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
        """Tables of counts, after the steps that lead to them; may charge for what is missing."""
        ...

    def best_report(
        self, request: QueryRequest, belief: Belief
    ) -> tuple[ReportedCount, QueryResult]:
        """One count, and the best report of it; charges as `answer` does."""
        ...

    def tables(self, caller: Caller) -> tuple[TableInfo, ...]:
        """Every private table that a caller may know of."""
        ...

    def budgets(self, caller: Caller) -> tuple[BudgetStatus, ...]:
        """The budgets of these tables, and the limits that bind the caller."""
        ...


def unknown_table(table: str, opened: Sequence[str]) -> UnknownName:
    """The refusal for a table that is not there, or not for this caller; nobody can tell which."""
    hint = f"Tables here: {listed(opened)}." if opened else "No table is open to this credential."
    return UnknownName(f"There is no table {table[:64]!a}.", hint=hint)
