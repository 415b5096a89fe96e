"""The flow of one query: plan, look at the history, buy only what is missing, answer.

`Engine.answer` is DESIGN's picture as code; every branch is here and every stage is elsewhere.
The engine never sees an exact count: it holds gates, and a gate hands out noisy values only.
"""

import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from accountant.gate import Gate
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.posterior import Posterior, RowEstimate
from planner.measuring import meets, plan_purchases
from planner.offers import Market, PurchasePlan
from planner.planner import Planner
from planner.prospect import Prospect
from planner.rents import Rents
from planner.strategy import Strategy
from planner.workload import Workload
from proxy.answers import (
    BatchReport,
    BatchRequest,
    BudgetStatus,
    Explanation,
    QueryRequest,
    Release,
    TableInfo,
)
from proxy.batches import run_batch
from proxy.explaining import EXPLANATION_SCHEMA, ExplainedAggregate, build_explanation
from proxy.results import AnsweredAggregate, build_release, result_schema

SOURCE_HISTORY = "history"
SOURCE_MEASURED = "measured"
SOURCE_PUBLIC = "public"


class ServedTable:
    """One private table as the engine sees it: its public schema, its gate, its history."""

    def __init__(
        self,
        schema: Schema,
        default: AccuracyTarget,
        gate: Gate,
        strategy: Strategy = Strategy.AUTO,
    ) -> None:
        self.info = TableInfo(schema, default)
        self.gate = gate
        self.lock = threading.Lock()
        self._estimator = Estimator(schema)
        self._rents = Rents()
        self.prospect = Prospect(self._estimator, gate.noise_for)
        self._market = Market(
            schema, strategy, self.prospect, gate.price, self._rents, lambda: gate.budget().left
        )

    def estimates(self, workload: Workload) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every aggregate's rows."""
        if workload.n_rows == 0:
            return [() for _ in workload.aggregates]
        bought = self.gate.measurements()
        self._estimator.add(bought[self._estimator.n_measurements :])
        target = workload.target
        return [
            self._estimator.estimate(aggregate.block, target.confidence, target.half_width)
            for aggregate in workload.aggregates
        ]

    def plan(
        self,
        workload: Workload,
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy beyond what the history says, in the order of the SELECT list."""
        self._rents.add(self.gate.charges()[self._rents.n_charges :])
        return plan_purchases(
            workload.aggregates, estimates, workload.target, self._market, every_offer=every_offer
        )

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
            plan = table.plan(workload, known)
            if plan.planned and table.gate.complete_pending():  # paid for before, so free now
                known = estimates = table.estimates(workload)
                plan = table.plan(workload, known)
            if plan.planned:
                cap = workload.target.epsilon_cap
                table.gate.measure(plan.planned, analyst=request.analyst, epsilon_cap=cap)
                estimates = table.estimates(workload)
            budget = table.budget()
        answered = [
            AnsweredAggregate(
                name=aggregate.name,
                posteriors=_all_known(rows),
                source=_source(aggregate.block.query.is_constant, meets(before, workload.target)),
                epsilon_spent=plan.epsilon(place),
            )
            for place, (aggregate, before, rows) in enumerate(
                zip(workload.aggregates, known, estimates, strict=True)
            )
        ]
        return build_release(workload, answered, budget)

    def explain(self, request: QueryRequest) -> Explanation:
        """What a SELECT would cost and where its answers would come from. Charges nothing."""
        return self._explain(self._planner.plan(request.sql, request.target))

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        """Plan the statements of a file together; buys the plan if the request says so."""
        return run_batch(request, self._planner.plan, self._tables.__getitem__)

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
            plan = table.plan(workload, estimates, every_offer=True)
            budget = table.budget()
        explained = [
            ExplainedAggregate(
                name=aggregate.name,
                sql=aggregate.sql,
                source=_source(aggregate.block.query.is_constant, meets(rows, workload.target)),
                known=tuple(rows),
                epsilon=plan.epsilon(place),
                offers=plan.offers[place],
            )
            for place, (aggregate, rows) in enumerate(
                zip(workload.aggregates, estimates, strict=True)
            )
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
