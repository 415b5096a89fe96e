"""Engines for tests of the wire: one that answers from a fixed list, one that always breaks.

The first keeps the promises the wire relies on (the first answer of a statement costs, repeating
it is free, schemas and explanations cost nothing) and counts its calls, so that a test can say who
was charged for what. It knows no SQL: statements are looked up by their exact text.
"""

import datetime as dt
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NoReturn

import pyarrow as pa

from cube.axis import BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, NumericAxis
from cube.refusals import InvalidRequest, InvalidSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.belief import Belief
from proxy.api.marginals import MadeMarginals, MarginalsRequest
from proxy.api.requests import (
    LOCAL,
    BatchReport,
    BatchRequest,
    BudgetStatus,
    Caller,
    ColumnReceipt,
    Description,
    Explanation,
    QueryRequest,
    QueryResult,
    Receipt,
    ReportedCount,
    TableInfo,
)
from proxy.collections import feature as collections
from proxy.engine.system_views import VIEW_SCHEMAS
from proxy.streams import feature as streams

COST = Fraction(1, 4)
LIMIT = Fraction(10)

PEOPLE = Schema(
    table="people",
    axes=(
        CategoryAxis(name="sex", values=("Female", "Male"), null=True, other="unknown"),
        IntegerAxis(name="age", low=17, high=90),
        NumericAxis(name="hours", edges=(0.0, 20.0, 40.0, 99.0)),
        BooleanAxis(name="married"),
        DateAxis(name="joined", low=dt.date(2020, 1, 1), high=dt.date(2020, 12, 31)),
    ),
    n_records_max=1000,
)
AD_HOC = Schema(table="ad_hoc", axes=(BooleanAxis(name="yes"),), n_records_max=10)

COUNT_ALL = "SELECT COUNT(*) AS n FROM people"
COUNT_BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
NO_GROUPS = "SELECT sex, COUNT(*) AS n FROM people WHERE age < 17 GROUP BY sex"
EXPLAIN_ALL = "EXPLAIN PRIVACY " + COUNT_ALL


def _answers(keys: list[str | None] | None, values: list[float]) -> pa.Table:
    columns = {"n": pa.array(values, pa.float64())}
    if keys is not None:
        columns = {"sex": pa.array(keys, pa.string()), **columns}
    fields = [pa.field(name, array.type, nullable=name == "sex") for name, array in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


ANSWERS: Mapping[str, pa.Table] = {
    COUNT_ALL: _answers(None, [1234.5]),
    COUNT_BY_SEX: _answers(["Female", "Male", None], [500.25, 730.5, 3.75]),
    NO_GROUPS: _answers([], []),
}
EXPLANATION = pa.table({"what": ["COUNT(*)"], "epsilon": [float(COST)]})


class CannedEngine:
    """An engine whose answers are known beforehand.

    Parameters
    ----------
    answers : mapping of str to pyarrow.Table
        The answer of each statement it understands.
    """

    def __init__(self, answers: Mapping[str, pa.Table] = ANSWERS) -> None:
        self.calls: Counter[str] = Counter()
        self.requests: list[QueryRequest] = []
        self._answers = answers
        self._history: set[str] = set()
        self._lock = threading.Lock()

    @property
    def spent(self) -> Fraction:
        return COST * len(self._history)

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        self._count("result_schema", request)
        if request.sql == EXPLAIN_ALL:
            return EXPLANATION.schema
        return self._known(request).schema

    def describe(self, request: QueryRequest) -> Description:
        return Description(self.result_schema(request), {})

    def answer(self, request: QueryRequest) -> QueryResult:
        self._count("answer", request)
        if request.sql == EXPLAIN_ALL:
            return QueryResult(EXPLANATION, None)
        data = self._known(request)
        with self._lock:
            is_free = request.sql in self._history
            self._history.add(request.sql)
        epsilon = Fraction(0) if is_free else COST
        receipt = self._receipt(data, epsilon, "history" if is_free else "measured")
        told = {b"tacit.receipt": json.dumps({"epsilon_spent": float(epsilon)}).encode()}
        return QueryResult(data.replace_schema_metadata(told), receipt)

    def explain(self, request: QueryRequest) -> Explanation:
        self._count("explain", request)
        self._known(request)
        epsilon = Fraction(0) if request.sql in self._history else COST
        return Explanation(EXPLANATION, epsilon, self.budgets(LOCAL)[0])

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        asked = QueryRequest(sql=request.sql, target=request.target, caller=request.caller)
        self._count("plan_batch", asked)
        statements = request.sql.split("; ")
        for sql in statements:
            self._known(QueryRequest(sql=sql))
        new = set(statements) - self._history
        if request.buy:
            self._history |= new
        return BatchReport(
            data=EXPLANATION,
            epsilon=COST if new else Fraction(0),
            n_measurements=len(new),
            is_bought=request.buy,
            budget=self.budgets(LOCAL)[0],
        )

    def marginals(
        self,
        request: MarginalsRequest,
        caller: Caller,  # noqa: ARG002 - the protocol names it
    ) -> Iterator[str | MadeMarginals]:
        """It knows none."""
        raise InvalidRequest(f"There are no marginals of {request.table}.")

    def best_report(
        self,
        request: QueryRequest,
        belief: Belief,  # noqa: ARG002 - the protocol names it
    ) -> tuple[ReportedCount, QueryResult]:
        """It knows none."""
        raise InvalidRequest(f"There is no report of {request.sql}.")

    def tables(self, caller: Caller) -> tuple[TableInfo, ...]:
        target = AccuracyTarget(half_width=100.0, confidence=0.95)
        known = (TableInfo(PEOPLE, target), TableInfo(AD_HOC, target))
        return tuple(info for info in known if caller.opens(info.schema.table))

    def views(self) -> dict[str, pa.Schema]:
        return {
            **VIEW_SCHEMAS,
            "collections": collections.VIEW_SCHEMA,
            "streams": streams.VIEW_SCHEMA,
        }

    def budgets(self, caller: Caller) -> tuple[BudgetStatus, ...]:
        known = (
            BudgetStatus("people", LIMIT, self.spent, len(self._history)),
            BudgetStatus("ad_hoc", Fraction(1), Fraction(0), 0),
        )
        return tuple(budget for budget in known if caller.opens(budget.table))

    def _count(self, call: str, request: QueryRequest) -> None:
        with self._lock:
            self.calls[call] += 1
            self.requests.append(request)

    def _known(self, request: QueryRequest) -> pa.Table:
        if request.sql not in self._answers:
            raise InvalidSql(f"{request.sql!r} is not on the list.", hint="Ask what is on it.")
        return self._answers[request.sql]

    def _receipt(self, data: pa.Table, epsilon: Fraction, source: str) -> Receipt:
        values = data["n"].to_pylist()
        low, high = tuple(v - 1.0 for v in values), tuple(v + 1.0 for v in values)
        column = ColumnReceipt("n", 0.95, epsilon, source, low, high)
        return Receipt("people", epsilon, (column,), self.budgets(LOCAL)[0])


class BrokenEngine:
    """An engine that raises the same thing whatever it is asked."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def result_schema(self, request: QueryRequest) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def describe(self, request: QueryRequest) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def answer(self, request: QueryRequest) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def explain(self, request: QueryRequest) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def plan_batch(self, request: BatchRequest) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def marginals(self, request: MarginalsRequest, caller: Caller) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def best_report(self, request: QueryRequest, belief: Belief) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def tables(self, caller: Caller) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error

    def views(self) -> NoReturn:
        raise self._error

    def budgets(self, caller: Caller) -> NoReturn:  # noqa: ARG002 - the protocol names it
        raise self._error
