"""The flow of one query: plan, look at the history, buy only what is missing, answer.

`Engine.answer` is DESIGN's picture as code; every branch is here and every stage is elsewhere.
The engine never sees an exact count: it holds gates, and a gate hands out noisy values only.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from accountant.limits import Payer
from cube.refusals import Refused
from planner.cache import BoundedCache
from planner.planner import Planner
from planner.public import REMAINING, Columns, privacy_view, public_table
from planner.workload import Outer, Part, RequestedTarget, Wanted, Workload
from proxy.answered import SOURCE_MEASURED, AnsweredPart
from proxy.answers import (
    BatchReport,
    BatchRequest,
    BudgetStatus,
    Caller,
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
from proxy.tallies import Tallies
from proxy.watch import UNWATCHED, AnswerKind, Stage, Watcher

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
        self,
        tables: Mapping[str, ServedTable],
        public: Sequence[PublicTable] = (),
        watcher: Watcher = UNWATCHED,
    ) -> None:
        self._tables = dict(tables)
        self._public = {table.name: table.data for table in public}
        self._public_relations_known = [table.relation() for table in public]
        self._watcher = watcher
        self.tallies = Tallies()
        self._outer = OuterSql()
        self._planners: dict[frozenset[str], Planner] = {}
        self._schemas: BoundedCache[tuple[frozenset[str], str, RequestedTarget], pa.Schema] = (
            BoundedCache(n_entries_max=N_SCHEMAS_MAX, n_bytes_max=N_SCHEMAS_MAX * SCHEMA_BYTES)
        )

    def answer(self, request: QueryRequest) -> Release:
        """Answer a SELECT: from the history if that meets the target, else by measuring.

        The only method that may charge a budget.
        """
        with self._watcher.stage(Stage.PLAN):
            workload = self._planned(request)
            schema = self._schema(request)  # what cannot be computed is refused unpaid
        if workload.explain_only:
            return Release(self._explain(workload, request.caller).data, None)
        if workload.is_probe:
            return Release(schema.empty_table(), None)
        payer = request.caller.payer
        if len(workload.tables) > 1:
            foreseen = Fraction(0)
            for name in workload.tables:
                foreseen += rehearse(self._tables[name], workload.of_table(name), payer, foreseen)
        answered: dict[str, AnsweredPart] = {}
        budgets: list[BudgetStatus] = []
        for name in workload.tables:
            table = self._tables[name]
            spent = sum((one.epsilon_spent for one in answered.values()), Fraction(0))
            found = settle(
                table, workload.of_table(name), payer=payer, outer=self._outer, elsewhere=spent
            )
            budgets.append(table.budget(payer))
            self._note_answers(name, payer, found)
            answered |= {one.part.name: one for one in found}
        if not workload.tables:
            self._watcher.answered("", AnswerKind.PUBLIC)
        with self._watcher.stage(Stage.OUTER):
            in_order = [answered[part.name] for part in workload.parts]
            return self._released(workload, in_order, budgets, request.caller)

    def explain(self, request: QueryRequest) -> Explanation:
        """What a SELECT would cost and where its answers would come from. Charges nothing."""
        self._schema(request)
        return self._explain(self._planned(request), request.caller)

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        """Plan the statements of a file together; buys the plan if the request says so."""
        planner = self._planner_of(request.caller)
        return run_batch(request, planner.plan, self._tables.__getitem__)

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The columns a SELECT would return. Reads nothing, charges nothing."""
        schema = self._schema(request)
        return EXPLANATION_SCHEMA if self._planned(request).explain_only else schema

    def tables(self, caller: Caller) -> tuple[TableInfo, ...]:
        """The public schema of every private table that a caller may know of."""
        return tuple(table.info for table in self._opened_to(caller).values())

    def budgets(self, caller: Caller) -> tuple[BudgetStatus, ...]:
        """The budgets of these tables, and the limits that bind the caller."""
        return tuple(table.budget(caller.payer) for table in self._opened_to(caller).values())

    def _opened_to(self, caller: Caller) -> dict[str, ServedTable]:
        return {name: table for name, table in self._tables.items() if caller.opens(name)}

    def _planner_of(self, caller: Caller) -> Planner:
        """A planner that has never heard of a table which the caller may not know of."""
        tables = self._opened_to(caller)
        names = frozenset(tables)
        if names not in self._planners:  # two threads may both make one: either will do
            self._planners[names] = Planner(
                schemas={name: table.info.schema for name, table in tables.items()},
                defaults={name: table.info.default for name, table in tables.items()},
                public=self._public_relations_known,
                privacy_views=tuple(VIEW_SCHEMAS),
                public_rows=self._public_rows,
            )
        return self._planners[names]

    def _planned(self, request: QueryRequest) -> Workload:
        return self._planner_of(request.caller).plan(request.sql, request.target)

    def _note_answers(self, table: str, payer: Payer, answered: Sequence[AnsweredPart]) -> None:
        self.tallies.add(table, payer.analyst, answered)
        is_paid = any(one.source == SOURCE_MEASURED for part in answered for one in part.aggregates)
        self._watcher.answered(table, AnswerKind.PAID if is_paid else AnswerKind.FREE)

    def _released(
        self,
        workload: Workload,
        answered: Sequence[AnsweredPart],
        budgets: Sequence[BudgetStatus],
        caller: Caller,
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
            relations |= self._public_relations(workload.outer.public, caller)
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
        key = (frozenset(self._opened_to(request.caller)), request.sql, request.target)
        known = self._schemas.get(key)
        if known is not None:
            return known
        workload = self._planned(request)
        if workload.outer is None:
            schema = relation_schema(workload.parts[0])
        else:
            relations = {part.name: unanswered(part) for part in workload.parts}
            relations |= self._public_relations(workload.outer.public, None)
            found = self._outer.run(workload.outer.sql, relations)
            n_columns = found.num_columns - 2 * len(workload.outer.intervals)
            schema = found.select(range(n_columns)).schema
        self._schemas.put(key, schema, n_bytes=SCHEMA_BYTES)
        return schema

    def _public_rows(self, sql: str, names: Sequence[str]) -> Columns:
        """What a SELECT over public tables shows, for the planner."""
        found = self._outer.run(sql, {public_table(name): self._public[name] for name in names})
        return PublicTable("public_rows", None, found).columns()

    def _public_relations(self, names: Sequence[str], caller: Caller | None) -> dict[str, pa.Table]:
        """Public tables, and a caller's views of `data_privacy`, as the outer SQL calls them.

        Without a caller, samples of them, to learn what they lead to.
        """
        tables = {public_table(name): table for name, table in self._public.items()}
        found: dict[str, pa.Table] = {}
        for name in names:
            if name in tables:
                public = tables[name]
                found[name] = public.slice(0, N_ROWS_TRIED) if caller is None else public
                continue
            view = name.removeprefix(privacy_view(""))
            if caller is None:
                schema = VIEW_SCHEMAS.get(view, REMAINING_SCHEMA)
                found[name] = schema.empty_table()
            elif view in VIEW_SCHEMAS:
                found[name] = view_of(view, self._records(caller))
            else:
                table = view.removeprefix(f"{REMAINING}(").removesuffix(")")
                found[name] = remaining_aggregates(table, self._records(caller))
        return found

    def _records(self, caller: Caller) -> list[TableRecord]:
        tables = self._opened_to(caller).values()
        return [TableRecord.of(table.info, table.gate, caller) for table in tables]

    def _explain(self, workload: Workload, caller: Caller) -> Explanation:
        explained: list[ExplainedPart] = []
        budgets: list[BudgetStatus] = []
        for name in workload.tables:
            table = self._tables[name]
            with table.held():
                explained += _explained(table, workload.of_table(name))
            budgets.append(table.budget(caller.payer))
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
