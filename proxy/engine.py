"""The flow of one query: plan, look at the history, buy only what is missing, answer.

`Engine.answer` is DESIGN's picture as code; every branch is here and every stage is elsewhere.
The engine never sees an exact count: it holds gates, and a gate hands out noisy values only.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from cube.refusals import Refused
from planner.cache import BoundedCache
from planner.planner import Planner
from planner.public import REMAINING, Columns, privacy_view, public_table
from planner.workload import Outer, Part, RequestedTarget, Wanted, Workload
from proxy.answered import AnsweredPart
from proxy.answers import (
    BatchReport,
    BatchRequest,
    BudgetStatus,
    ColumnReceipt,
    Explanation,
    QueryRequest,
    Receipt,
    Release,
    TableInfo,
)
from proxy.batches import run_batch
from proxy.explaining import EXPLANATION_SCHEMA, ExplainedPart, build_explanation
from proxy.outer_sql import OuterSql
from proxy.privacy_views import (
    REMAINING_SCHEMA,
    VIEW_SCHEMAS,
    TableRecord,
    remaining_aggregates,
)
from proxy.privacy_views import privacy_view as view_of
from proxy.public_tables import PublicTable
from proxy.relations import (
    N_ROWS_TRIED,
    column_receipt,
    relation,
    relation_schema,
    unanswered,
    with_receipt,
)
from proxy.served_table import ServedTable
from proxy.settling import asked_of, rehearse, settle, smallest_cap

N_SCHEMAS_MAX = 4096  # of results of outer SQL, remembered with their plans
SCHEMA_BYTES = 4096  # what one of them takes, roughly


class Engine:
    """Answers requests on a set of tables.

    Parameters
    ----------
    tables : mapping
        The private tables, by name.
    public : sequence of PublicTable
    """

    def __init__(
        self, tables: Mapping[str, ServedTable], public: Sequence[PublicTable] = ()
    ) -> None:
        self._tables = dict(tables)
        self._public = {table.name: table.data for table in public}
        self._outer = OuterSql()
        self._planner = Planner(
            schemas={name: table.info.schema for name, table in self._tables.items()},
            defaults={name: table.info.default for name, table in self._tables.items()},
            public=[table.relation() for table in public],
            privacy_views=tuple(VIEW_SCHEMAS),
            public_rows=self._public_rows,
        )
        self._schemas: BoundedCache[tuple[str, RequestedTarget], pa.Schema] = BoundedCache(
            n_entries_max=N_SCHEMAS_MAX, n_bytes_max=N_SCHEMAS_MAX * SCHEMA_BYTES
        )

    def answer(self, request: QueryRequest) -> Release:
        """Answer a SELECT: from the history if that meets the target, else by measuring.

        The only method that may charge a budget.
        """
        workload = self._planner.plan(request.sql, request.target)
        schema = self._schema(request)  # what cannot be computed is refused before it is paid for
        if workload.explain_only:
            return Release(self._explain(workload).data, None)
        if workload.is_probe:
            return Release(schema.empty_table(), None)
        answered: dict[str, AnsweredPart] = {}
        budgets: list[BudgetStatus] = []
        if len(workload.tables) > 1:
            foreseen = Fraction(0)
            for name in workload.tables:
                with self._tables[name].lock:
                    table = self._tables[name]
                    foreseen += rehearse(table, workload.of_table(name), foreseen)
        for name in workload.tables:
            parts = workload.of_table(name)
            table = self._tables[name]
            with table.lock:
                found = settle(
                    table,
                    parts,
                    analyst=request.analyst,
                    outer=self._outer,
                    elsewhere=sum((one.epsilon_spent for one in answered.values()), Fraction(0)),
                )
                budgets.append(table.budget())
            answered |= {one.part.name: one for one in found}
        return self._released(workload, [answered[part.name] for part in workload.parts], budgets)

    def explain(self, request: QueryRequest) -> Explanation:
        """What a SELECT would cost and where its answers would come from. Charges nothing."""
        self._schema(request)
        return self._explain(self._planner.plan(request.sql, request.target))

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        """Plan the statements of a file together; buys the plan if the request says so."""
        return run_batch(request, self._planner.plan, self._tables.__getitem__)

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The columns a SELECT would return. Reads nothing, charges nothing."""
        schema = self._schema(request)
        is_explained = self._planner.plan(request.sql, request.target).explain_only
        return EXPLANATION_SCHEMA if is_explained else schema

    def tables(self) -> tuple[TableInfo, ...]:
        """The public schema of every table."""
        return tuple(table.info for table in self._tables.values())

    def budgets(self) -> tuple[BudgetStatus, ...]:
        """The budget of every table."""
        return tuple(table.budget() for table in self._tables.values())

    def _released(
        self,
        workload: Workload,
        answered: Sequence[AnsweredPart],
        budgets: Sequence[BudgetStatus],
    ) -> Release:
        """The result with its receipt; without one if no private table was asked."""
        columns: list[ColumnReceipt] = []
        if workload.outer is None:
            (only,) = answered
            data = relation(only)
            for place, item in enumerate(only.answers):
                low, high = item.intervals(only.part.confidence)
                ends = (low.tolist(), high.tolist())
                columns.append(column_receipt(item.answer.name, only, place, ends))
        else:
            relations = {one.part.name: relation(one) for one in answered}
            relations |= self._public_relations(workload.outer.public)
            shown = self._computed(workload.outer, relations, is_paid=bool(budgets))
            n_columns = shown.num_columns - 2 * len(workload.outer.intervals)
            data = shown.select(range(n_columns))
            for number, (place, part, answer) in enumerate(workload.outer.intervals):
                first = n_columns + 2 * number
                ends = (shown.column(first).to_pylist(), shown.column(first + 1).to_pylist())
                name = shown.column_names[place]
                columns.append(column_receipt(name, answered[part], answer, ends))
        if not budgets:
            return Release(data, None)
        receipt = Receipt(
            table=budgets[0].table,
            epsilon_spent=sum((one.epsilon_spent for one in answered), Fraction(0)),
            columns=tuple(columns),
            budget=budgets[0],
        )
        return Release(with_receipt(data, receipt), receipt)

    def _computed(self, outer: Outer, relations: dict[str, pa.Table], *, is_paid: bool) -> pa.Table:
        """What the outer SQL makes of the answers."""
        try:
            return self._outer.run(outer.sql, relations)
        except Refused as refusal:
            if not is_paid:
                raise
            kept = "What was measured for it is paid for and kept."
            raise type(refusal)(f"{refusal.message} {kept}", hint=refusal.hint) from None

    def _schema(self, request: QueryRequest) -> pa.Schema:
        """The result's columns, from relations without answers."""
        known = self._schemas.get((request.sql, request.target))
        if known is not None:
            return known
        workload = self._planner.plan(request.sql, request.target)
        if workload.outer is None:
            schema = relation_schema(workload.parts[0])
        else:
            relations = {part.name: unanswered(part) for part in workload.parts}
            relations |= self._public_relations(workload.outer.public, is_sample=True)
            found = self._outer.run(workload.outer.sql, relations)
            n_columns = found.num_columns - 2 * len(workload.outer.intervals)
            schema = found.select(range(n_columns)).schema
        self._schemas.put((request.sql, request.target), schema, n_bytes=SCHEMA_BYTES)
        return schema

    def _public_rows(self, sql: str, names: Sequence[str]) -> Columns:
        """What a SELECT over public tables shows, for the planner."""
        found = self._outer.run(sql, {public_table(name): self._public[name] for name in names})
        return PublicTable("public_rows", None, found).columns()

    def _public_relations(
        self, names: Sequence[str], *, is_sample: bool = False
    ) -> dict[str, pa.Table]:
        """Public tables, and views of `data_privacy`, as the outer SQL calls them."""
        tables = {public_table(name): table for name, table in self._public.items()}
        found: dict[str, pa.Table] = {}
        for name in names:
            if name in tables:
                public = tables[name]
                found[name] = public.slice(0, N_ROWS_TRIED) if is_sample else public
                continue
            view = name.removeprefix(privacy_view(""))
            if is_sample:
                schema = VIEW_SCHEMAS.get(view, REMAINING_SCHEMA)
                found[name] = schema.empty_table()
            elif view in VIEW_SCHEMAS:
                found[name] = view_of(view, self._records())
            else:
                table = view.removeprefix(f"{REMAINING}(").removesuffix(")")
                found[name] = remaining_aggregates(table, self._records())
        return found

    def _records(self) -> list[TableRecord]:
        records = []
        for table in self._tables.values():
            with table.lock:
                records.append(TableRecord.of(table.info, table.gate))
        return records

    def _explain(self, workload: Workload) -> Explanation:
        explained: list[ExplainedPart] = []
        budgets: list[BudgetStatus] = []
        for name in workload.tables:
            parts = workload.of_table(name)
            table = self._tables[name]
            with table.lock:
                explained += _explained(table, parts)
                budgets.append(table.budget())
        return build_explanation(explained, budgets)


def _explained(table: ServedTable, parts: Sequence[Part]) -> list[ExplainedPart]:
    """What is known of every block of some parts, and what could be bought for it."""
    asked = asked_of(parts, smallest_cap(parts))
    wanted: list[Wanted] = [one.wanted for one in asked]
    known = table.estimates(wanted)
    plan = table.plan(wanted, known, every_offer=True)
    rows = list(zip(asked, known, plan.offers, strict=True))
    return [
        ExplainedPart(
            part=part,
            blocks=tuple(
                (one.aggregate, one.wanted, found, offers)
                for one, found, offers in rows
                if one.part == place
            ),
        )
        for place, part in enumerate(parts)
    ]
