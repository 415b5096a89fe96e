"""The flow of one query: plan, look at the history, buy only what is missing, answer.

`Engine.answer` is DESIGN's picture as code; every branch is here and every stage is elsewhere.
The engine never sees an exact count: it holds gates, and a gate hands out noisy values only.
"""

import itertools
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from accountant.gate import Gate
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator, RowEstimate
from inference.posterior import Posterior
from planner.measuring import meets, plan_measurements
from planner.planner import Planner
from planner.workload import Workload
from proxy.answers import BudgetStatus, Explanation, QueryRequest, Release, TableInfo
from proxy.explaining import EXPLANATION_SCHEMA, ExplainedAggregate, build_explanation
from proxy.results import AnsweredAggregate, build_release, result_schema

SOURCE_HISTORY = "history"
SOURCE_MEASURED = "measured"
SOURCE_PUBLIC = "public"


class ServedTable:
    """One private table as the engine sees it: its public schema, its gate, its history."""

    def __init__(self, schema: Schema, default: AccuracyTarget, gate: Gate) -> None:
        self.info = TableInfo(schema, default)
        self.gate = gate
        self.lock = threading.Lock()
        self._estimator = Estimator(schema)

    def estimates(self, workload: Workload) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every aggregate's rows."""
        if workload.n_rows == 0:
            return [() for _ in workload.aggregates]
        bought = self.gate.measurements()
        self._estimator.add(bought[self._estimator.n_measurements :])
        confidence = workload.target.confidence
        return [
            self._estimator.estimate(aggregate.block, confidence)
            for aggregate in workload.aggregates
        ]

    def prices(
        self, workload: Workload, estimates: Sequence[Sequence[RowEstimate]]
    ) -> list[Fraction]:
        """What each aggregate adds to the table's cost, bought in the order of the SELECT list."""
        totals = [Fraction(0)]
        for count, known in enumerate(estimates, start=1):
            if meets(known, workload.target):
                totals.append(totals[-1])
                continue
            plan = plan_measurements(
                workload.aggregates[:count], estimates[:count], workload.target
            )
            totals.append(self.gate.price(plan).epsilon)
        return [after - before for before, after in itertools.pairwise(totals)]

    def budget(self) -> BudgetStatus:
        """What was spent and what is left."""
        budget = self.gate.budget()
        return BudgetStatus(
            table=self.info.schema.table,
            limit=budget.limit,
            spent=budget.spent,
            n_measurements=budget.n_measurements,
        )


class Engine:
    """Answers requests on a set of tables."""

    def __init__(self, tables: Mapping[str, ServedTable]) -> None:
        self._tables = dict(tables)
        self._planner = Planner(
            schemas={name: table.info.schema for name, table in self._tables.items()},
            defaults={name: table.info.default for name, table in self._tables.items()},
        )

    def answer(self, request: QueryRequest) -> Release:
        """Answer a SELECT: from the history if that meets the target, else by measuring.

        The only method that may charge a budget.
        """
        workload = self._planner.plan(request.sql, request.target)
        if workload.explain_only:
            return Release(self._explain(workload).data, None)
        table = self._tables[workload.table]
        with table.lock:
            known = estimates = table.estimates(workload)
            plan = plan_measurements(workload.aggregates, known, workload.target)
            if plan and table.gate.complete_pending():  # paid for before, so free now
                known = estimates = table.estimates(workload)
                plan = plan_measurements(workload.aggregates, known, workload.target)
            prices = table.prices(workload, known)
            if plan:
                cap = workload.target.epsilon_cap
                table.gate.measure(plan, analyst=request.analyst, epsilon_cap=cap)
                estimates = table.estimates(workload)
            budget = table.budget()
        answered = [
            AnsweredAggregate(
                name=aggregate.name,
                posteriors=_all_known(rows),
                source=_source(aggregate.block.query.is_constant, meets(before, workload.target)),
                epsilon_spent=price,
            )
            for aggregate, before, rows, price in zip(
                workload.aggregates, known, estimates, prices, strict=True
            )
        ]
        return build_release(workload, answered, budget)

    def explain(self, request: QueryRequest) -> Explanation:
        """What a SELECT would cost and where its answers would come from. Charges nothing."""
        return self._explain(self._planner.plan(request.sql, request.target))

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The columns a SELECT would return. Reads nothing, charges nothing."""
        workload = self._planner.plan(request.sql, request.target)
        return EXPLANATION_SCHEMA if workload.explain_only else result_schema(workload)

    def tables(self) -> tuple[TableInfo, ...]:
        """The public schema of every table."""
        return tuple(table.info for table in self._tables.values())

    def budgets(self) -> tuple[BudgetStatus, ...]:
        """The budget of every table."""
        return tuple(table.budget() for table in self._tables.values())

    def _explain(self, workload: Workload) -> Explanation:
        table = self._tables[workload.table]
        with table.lock:
            estimates = table.estimates(workload)
            prices = table.prices(workload, estimates)
            budget = table.budget()
        explained = [
            ExplainedAggregate(
                name=aggregate.name,
                sql=aggregate.sql,
                source=_source(aggregate.block.query.is_constant, meets(rows, workload.target)),
                known=tuple(rows),
                epsilon=price,
            )
            for aggregate, rows, price in zip(workload.aggregates, estimates, prices, strict=True)
        ]
        return build_explanation(workload, explained, budget)


def _source(is_constant: bool, is_known: bool) -> str:
    if is_constant:
        return SOURCE_PUBLIC
    return SOURCE_HISTORY if is_known else SOURCE_MEASURED


def _all_known(rows: Sequence[RowEstimate]) -> tuple[Posterior, ...]:
    """The posteriors of an answered aggregate; after buying, none can be missing."""
    posteriors = tuple(row for row in rows if isinstance(row, Posterior))
    if len(posteriors) != len(rows):
        raise RuntimeError("a measured query is not estimable")
    return posteriors
