"""The engine: one statement, read once, carried out and answered.

What a client is told of a statement before it runs: its columns, and its parameters' types.

Free: nothing is charged, and no data is read. The statement is planned with a value for each
parameter that would fit it, or with NULLs.

Statements that are no queries, carried out: those about synthetic tables, and those of features.

What is about a session alone is refused: sessions belong to the wires, which take such statements
off a text before the engine sees it.

The flow of one query: plan, consult the history, buy only what is missing, answer.

`Engine.answer` is the flow of ARCHITECTURE.md as code; every branch is here and every stage is
elsewhere. The engine never sees an exact count: it holds gates, and a gate returns only noisy
values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from accountant.ledger import Payer, Role, Tally
from cube.pace import take_longer
from cube.refusals import (
    InvalidRequest,
    NameTaken,
    NotCovered,
    PrivateRows,
    Refused,
    TargetNotReached,
    UnknownName,
)
from planner.belief import Belief
from planner.cache import BoundedCache
from planner.planner import Planner
from planner.sql import (
    CreateSynthetic,
    DropSynthetic,
    Explain,
    Parameter,
    ParameterKind,
    Parameters,
    ParameterType,
    Query,
    Statement,
    not_answered,
    read_statement,
)
from planner.workload import AskedFirst, GivenAnswers, Outer, RequestedTarget, Workload
from proxy.api import (
    BatchReport,
    BatchRequest,
    BudgetStatus,
    Caller,
    Description,
    Explanation,
    MadeMarginals,
    MarginalsRequest,
    QueryRequest,
    QueryResult,
    ReportedCount,
    TableInfo,
)
from proxy.catalog import is_catalog_query, is_catalog_text
from proxy.engine.across_tables import answered_tables, check_covered, joined, left_out
from proxy.engine.answers import (
    AnsweredPart,
    check_multiplied,
    claimed_relations,
    promised_columns,
    relation,
    unanswered,
    unanswered_claims,
)
from proxy.engine.answers.released import released
from proxy.engine.asked_before import (
    ASKED_FIRST,
    FirstAnswer,
    advice_on,
    answer_of,
    asked_for,
    cap_of_next,
    capped,
    fitted_by_history,
    given,
    say_what_is_known,
    stand_ins,
    with_first,
)
from proxy.engine.batch import run_batch
from proxy.engine.best_reports import BestReports
from proxy.engine.default_cost import at_default_cost
from proxy.engine.disclosure import shown_record
from proxy.engine.explain import (
    ExplainedPart,
    advised_by,
    advised_to,
    build_explanation,
    explained,
    plan_columns,
    shown_plan,
)
from proxy.engine.model_answers import ModelFallback, Previews
from proxy.engine.own_tables import own_explained
from proxy.engine.system_views import TableRecord
from proxy.engine.usage import Told, ToldAgain, UsageTallies, budgets, positions
from proxy.engine.visibility import (
    Key,
    Shown,
    VisibleTables,
    catalogued,
    earlier_tables,
    listed_views,
    public_relations,
    visible,
    visible_key,
)
from proxy.feature import Feature, Features
from proxy.marginals import make_marginals
from proxy.monitoring import UNWATCHED, AnswerKind, Stage, Watcher
from proxy.outer_sql.postprocessing import OuterSql
from proxy.scheduling import LargeStatements
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import (
    PREVIEW_SCHEMA,
    SyntheticStore,
    SyntheticTableService,
    explain_statement,
    preview_table,
    run_statement,
    statement_schema,
)
from proxy.tables import (
    LiveTables,
    SelfAnswering,
    ServedTable,
    check_may_see_history,
    note_if_large,
    shown_budget,
    shown_instead,
    steadily,
)

_MARKS = frozenset("?$:")  # every parameter begins with one of these


def described(
    request: QueryRequest,
    planner: Planner,
    columns: Callable[[QueryRequest], pa.Schema],
    *,
    is_catalog: bool = False,
) -> Description:
    """Describe one statement, whose parameters have no values yet.

    Parameters
    ----------
    planner : Planner
        The planner of the caller.
    columns : callable
        The columns of a request whose parameters have values.
    is_catalog : bool
        Whether it is a question to the catalog, where a stand-in may be the name of nothing.

    Raises
    ------
    Refused
        If it would be refused whatever the values are.
    """
    types = _parameter_types(request.sql, planner)
    if not types:
        return Description(columns(request), {})
    told = {one.name: one.sql_type for one in types}
    nothings = tuple(Parameter(ParameterKind.NULL, name=one.name) for one in types)
    stand_ins = tuple(one.stand_in for one in types)
    for values in (nothings,) if is_catalog else (stand_ins, nothings):
        try:
            return Description(columns(replace(request, parameters=values)), told)
        except UnknownName:
            raise
        except Refused:
            continue
    return Description(None, told)


def _parameter_types(sql: str, planner: Planner) -> tuple[ParameterType, ...]:
    """What the parameters of a statement are; none if it is no query."""
    if not _MARKS.intersection(sql):
        return ()
    match read_statement(sql):
        case Query() | Explain(of=Query()):
            return planner.parameter_types(sql)
        case _:
            return ()


def run_other(
    desk: SyntheticTableService,
    features: Features,
    statement: Statement,
    request: QueryRequest,
) -> QueryResult:
    """Carry a statement out that is no query; what it gives. May charge.

    Raises
    ------
    Refused
    """
    if request.parameters:
        raise InvalidRequest(
            "Only a SELECT has parameters.", hint="Write the values into the text."
        )
    match statement:
        case CreateSynthetic() | DropSynthetic():
            take_longer()
            return run_statement(desk, statement, request)
        case Explain(of=CreateSynthetic() as explained):
            take_longer()
            return QueryResult(preview_table(desk.preview(request.caller, explained)), None)
        case other:
            feature = features.that_carries_out(other)
            if feature is None:
                raise not_answered(other.verb)
            take_longer()
            _check_name(desk, feature.new_table(other), request.caller)
            return feature.carry_out(other, request.caller)


def _check_name(desk: SyntheticTableService, name: str | None, caller: Caller) -> None:
    """Refuse a new table the name of a synthetic table that its creator may know of."""
    names = {record.name.casefold() for record in desk.known(caller)}
    if name is not None and name.casefold() in names:
        raise NameTaken(
            f"{name} is the name of a synthetic table.",
            hint="Take another name: this one would then stand for the new table.",
        )


def explain_other(desk: SyntheticTableService, statement: Statement, caller: Caller) -> Explanation:
    """The most that a statement would cost that is no query. Charges nothing.

    Raises
    ------
    Refused
    """
    match statement:
        case (
            (CreateSynthetic() as asked)
            | (DropSynthetic() as asked)
            | Explain(of=CreateSynthetic() as asked)
        ):
            take_longer()
            return explain_statement(desk, asked, caller)
        case other:
            raise not_answered(other.verb)


def columns_of_other(features: Features, statement: Statement) -> pa.Schema:
    """The columns of the result of a statement that is not a query.

    Raises
    ------
    Refused
    """
    match statement:
        case CreateSynthetic() | DropSynthetic():
            return statement_schema(statement)
        case Explain(of=CreateSynthetic()):
            return PREVIEW_SCHEMA
        case other:
            feature = features.that_carries_out(other)
            if feature is None:
                raise not_answered(other.verb)
            return feature.columns_of(other)


SchemaKey: TypeAlias = tuple[Key, str, RequestedTarget, Parameters, GivenAnswers]

N_SCHEMAS_MAX = 4096  # result schemas of outer SQL, remembered with their plans
SCHEMA_BYTES = 4096  # the size of one of them, roughly


class Engine:
    """Answers requests on a set of tables.

    Parameters
    ----------
    tables : mapping
        The private tables, by name.
    store : SyntheticStore, optional
        Where synthetic tables are kept; without a store there are none.
    previews : collection of str
        The private tables for which a few synthetic rows are shown.
    features : sequence of Feature
        With their tables that answer by themselves, their views, and the statements that they carry
        out.
    unnamed : RequestedTarget
        What holds where a request says nothing.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all that a server serves
        self,
        tables: Mapping[str, ServedTable],
        public: Sequence[PublicTable] = (),
        watcher: Watcher = UNWATCHED,
        store: SyntheticStore | None = None,
        previews: Collection[str] = (),
        features: Sequence[Feature] = (),
        unnamed: RequestedTarget | None = None,
    ) -> None:
        self._unnamed = unnamed or RequestedTarget()
        self._tables = tables if isinstance(tables, LiveTables) else LiveTables(tables)
        self._features = Features(features)
        self._own = self._features.tables
        self._public = [(table, table.relation()) for table in public]
        self._watcher = watcher
        self.usage = UsageTallies()
        self.synthetic = SyntheticTableService(self._tables, public, store, self._own)
        self._outer = OuterSql()
        self._large = LargeStatements()
        self._fallback = ModelFallback(self.synthetic, self._outer, self._public)
        self._previews = Previews(previews, self.synthetic, self._outer)
        self._views: dict[tuple[frozenset[str], Role], VisibleTables] = {}
        self._told = ToldAgain()
        self._schemas: BoundedCache[SchemaKey, pa.Schema] = BoundedCache(
            n_entries_max=N_SCHEMAS_MAX, n_bytes_max=N_SCHEMAS_MAX * SCHEMA_BYTES
        )

    def answer(self, request: QueryRequest) -> QueryResult:
        """Answer a SELECT: from the history if that meets the target, otherwise by measuring.

        Any other statement is carried out, too; one that makes a synthetic table charges budgets.
        """
        told = self._told.again(request, self._tables)
        if told is not None:
            return told.counted(self.usage, self._watcher, self._tables)
        match read_statement(request.sql):
            case Query() as query if is_catalog_query(query):
                seen = self._visible_to(request.caller)
                return QueryResult(
                    catalogued(query, request, seen, self._public, self._outer), None
                )
            case Query():
                return steadily(lambda: self._answer_query(request))
            case Explain(of=Query(), form=form):
                return QueryResult(shown_plan(self.explain(request), form), None)
            case other:
                return run_other(self.synthetic, self._features, other, request)

    def _answer_query(self, request: QueryRequest) -> QueryResult:
        with self._watcher.stage(Stage.PLAN):
            seen = self._visible_to(request.caller)
            try:
                workload = _planned(request, seen)
            except PrivateRows as refusal:
                return self._previews.answer(request, refusal, seen.tables, seen.synthetic)
            except AskedFirst:
                return self._answer_in_rounds(request, seen)
            told = self._told.find(request, workload, seen.answering)
            if told is not None:
                return told.counted(self.usage, self._watcher, seen.answering)
            schema = self._schema(request, seen)  # refuse what cannot be computed before paying
        if workload.is_probe:
            return QueryResult(schema.empty_table(), None)
        known = self._best_reports(seen).known(workload, request.caller)
        try:
            with self._large.turn(request.caller.payer.analyst, workload.parts):
                # With a prior that a SELECT gave, it rests on more than its own tables.
                return self._answered(known, request, seen, is_kept=known is workload)
        except (NotCovered, TargetNotReached) as refusal:
            if len(workload.tables) > 1:  # for the first, something may have been charged
                raise
            spent = refusal.epsilon_spent if isinstance(refusal, TargetNotReached) else Fraction(0)
            table = seen.gated[workload.tables[0]]
            budget = shown_budget(table, request.caller)
            told_of_rows = workload.told((), left_out(table, request.caller))
            release = self._fallback.answer(request, told_of_rows, schema, budget, spent)
            if release is None:
                raise
            self._watcher.answered(budget.table, AnswerKind.FREE)
            return release

    def _answer_in_rounds(self, request: QueryRequest, seen: VisibleTables) -> QueryResult:
        """The answer to a statement whose subqueries have to be asked first.

        Nothing is bought for them if it can be foreseen that the rest is not covered.
        """
        tried, workloads = self._with_stand_ins(request, seen)
        schema = self._schema(tried, seen)
        if workloads[-1].is_probe:
            return QueryResult(schema.empty_table(), None)
        check_covered(workloads, seen.answering, request.caller, self._outer)
        request = replace(request, rounds=max(request.rounds, len(workloads)))
        answers: list[FirstAnswer] = []
        try:
            while True:
                cap = cap_of_next(workloads, answers)
                try:
                    _planned(request, seen)
                    break
                except AskedFirst as first:
                    found = self._answer_query(asked_for(request, first, cap))
                    answers.append(answer_of(first, found))
                    request = given(request, first.sql, answers[-1].values)
            result = self._answer_query(request if not answers else capped(request, cap))
        except Refused as refusal:
            say_what_is_known(refusal, answers)
            raise
        return with_first(result, answers)

    def _with_stand_ins(
        self, request: QueryRequest, seen: VisibleTables
    ) -> tuple[QueryRequest, list[Workload]]:
        """The request with values in place of the subqueries asked first, and all workloads."""
        before: list[Workload] = []
        while True:
            try:
                return request, [*before, _planned(request, seen)]
            except AskedFirst as first:
                asked = asked_for(request, first, None)
                try:
                    inner, workloads = self._with_stand_ins(asked, seen)
                except UnknownName:  # of the statement around it: it is another for each row
                    raise first from None
                values = stand_ins(first, workloads[-1], self._schema(inner, seen))
                before += workloads
                request = given(request, first.sql, values)

    def explain(self, request: QueryRequest) -> Explanation:
        """The cost of a SELECT and the sources of its answers. Charges nothing."""
        match read_statement(request.sql):
            case (Query() as query) | Explain(of=Query() as query):
                free = is_catalog_query(query)
                if free:
                    return build_explanation([], [])
                return steadily(lambda: self._explain_query(request))
            case other:
                return explain_other(self.synthetic, other, request.caller)

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        """Plan the statements of a file together; buys the plan if the request says so."""
        return steadily(lambda: self._plan_batch(request))

    def _plan_batch(self, request: BatchRequest) -> BatchReport:
        seen, caller = self._visible_to(request.caller), request.caller
        report = run_batch(
            request,
            seen.planner.plan,
            seen.priced,
            lambda name: shown_instead(seen.priced(name), caller),
        )
        return replace(report, budget=shown_budget(seen.tables[report.budget.table], caller))

    def marginals(self, request: MarginalsRequest, caller: Caller) -> Iterator[str | MadeMarginals]:
        """Tables of counts, after the names of the steps. May charge."""
        table = self._opened_to(caller).get(request.table)
        if table is None:
            raise self._visible_to(caller).not_private(request.table)
        check_may_see_history(table, caller)
        for made in make_marginals(table, request, caller.payer):
            if isinstance(made, MadeMarginals):
                made = replace(made, notes=(*made.notes, *left_out(table, caller)))  # noqa: PLW2901 - the same with more to say
                kind = AnswerKind.PAID if made.epsilon_spent else AnswerKind.FREE
                self._watcher.answered(request.table, kind)
                note_if_large(table, caller.payer, made.epsilon_spent)
            yield made

    def best_report(
        self, request: QueryRequest, belief: Belief
    ) -> tuple[ReportedCount, QueryResult]:
        """Answer one count, and compute the best number to report for it."""
        return steadily(
            lambda: self._best_reports(self._visible_to(request.caller)).report(request, belief)
        )

    def _best_reports(self, seen: VisibleTables) -> BestReports:
        names = [relation.outer_name for _, relation in self._public]
        return BestReports(seen, names, self.answer)

    def result_schema(self, request: QueryRequest) -> pa.Schema:
        """The columns a SELECT would return. Reads nothing, charges nothing."""
        return self._columns(self._visible_to(request.caller), request)

    def _columns(self, seen: VisibleTables, request: QueryRequest) -> pa.Schema:
        match read_statement(request.sql):
            case Query() as query if is_catalog_query(query):
                return self.answer(request).data.schema
            case Explain(of=Query() as query, form=form) if is_catalog_query(query):
                return plan_columns(form)
            case Query() | Explain(of=Query()) as asked:
                schema = self._schema(request, seen)
                return schema if isinstance(asked, Query) else plan_columns(asked.form)
            case other:
                return columns_of_other(self._features, other)

    def describe(self, request: QueryRequest) -> Description:
        """The columns and the parameters of a statement. Reads nothing, charges nothing."""
        seen = self._visible_to(request.caller)
        is_catalog, columns = is_catalog_text(request.sql), partial(self._columns, seen)
        return described(request, seen.planner, columns, is_catalog=is_catalog)

    def tables(self, caller: Caller) -> tuple[TableInfo, ...]:
        """The public schema of every table, private or not public, that a caller may know of."""
        gated, own = self._opened_to(caller).values(), self._own_opened_to(caller).values()
        return (*(table.info for table in gated), *(table.info for table in own))

    def views(self) -> Mapping[str, pa.Schema]:
        """The views of `data_privacy` that have columns of their own: these, by name."""
        return listed_views(self._features.views)

    def budgets(self, caller: Caller) -> tuple[BudgetStatus, ...]:
        """The budgets of the private ones, and the limits that bind the caller."""
        return tuple(shown_budget(table, caller) for table in self._opened_to(caller).values())

    def _opened_to(self, caller: Caller) -> dict[str, ServedTable]:
        return {name: table for name, table in self._tables.items() if caller.opens(name)}

    def _own_opened_to(self, caller: Caller) -> dict[str, SelfAnswering]:
        """Of no others is anything made: each may cost something."""
        names = [name for name in self._own if caller.opens(name) and name not in self._tables]
        found = {name: self._own.get(name) for name in names}
        return {name: table for name, table in found.items() if table is not None}

    def _visible_to(self, caller: Caller) -> VisibleTables:
        """What a caller may know of at present, and a planner restricted to it."""
        tables, own = self._opened_to(caller), self._own_opened_to(caller)
        synthetic = self.synthetic.known(caller)
        earlier = earlier_tables(self._tables, tables, caller)
        granted = frozenset(caller.tables), caller.role  # one view each: tables may come and go
        known = self._views.get(granted)
        if known is None or known.key != visible_key({**tables, **earlier}, own, synthetic):
            # Two threads may both make one; either is fine.
            made = visible(
                tables,
                earlier,
                own,
                self._public,
                synthetic,
                self.synthetic,
                self._outer,
                self._features.views,
            )
            known = self._views[granted] = replace(made, unnamed=self._unnamed)
        # The same schemas have the same planner; who answers may be another object each time.
        return known if known.own == own else replace(known, own=own)

    def _answered(
        self, workload: Workload, request: QueryRequest, seen: VisibleTables, *, is_kept: bool
    ) -> QueryResult:
        """The answer to a planned statement, from the history or by measuring."""
        caller, asked, opened = request.caller, workload, seen.answering
        began = positions(asked, opened)
        check_multiplied(
            workload, self._outer, lambda names: self._public_relations(names, seen, caller)
        )
        answered: dict[str, AnsweredPart] = {}
        left: list[BudgetStatus] = []
        tallies: list[Tally] = []
        notes: list[str] = []
        caveats: list[str] = []
        warnings: list[str] = []
        for found in answered_tables(workload, opened, caller, self._outer, request.rounds):
            answered |= {one.part.name: one for one in found.parts}
            notes += found.notes
            caveats += found.caveats
            warnings += found.warnings
            if isinstance(found.table, ServedTable):
                left.append(shown_budget(found.table, caller))
                tallies += self._noted(found.table, caller.payer, found.settled)
            else:
                self._watcher.answered(found.table.info.schema.table, AnswerKind.FREE)
        if not workload.tables:
            self._watcher.answered("", AnswerKind.PUBLIC)
        with self._watcher.stage(Stage.OUTER):
            in_order = [answered[part.name] for part in workload.parts]
            workload = workload.told(notes, caveats, warnings)
            computed = None
            if workload.outer is not None:
                computed = self._computed(workload, workload.outer, in_order, caller, seen)
            result = released(workload, in_order, computed, left)
        if warnings or not is_kept:  # asked again, a search goes on
            return result
        self._told.keep(request, Told(asked, began, tuple(left), tuple(tallies), result), opened)
        return result

    def _noted(
        self, table: ServedTable, payer: Payer, answered: Sequence[AnsweredPart]
    ) -> list[Tally]:
        """Count what was brought to its targets on a table; nothing if it fell back on history."""
        tally = self.usage.add(table.counted_as, payer.analyst, answered)
        kind = AnswerKind.PAID if tally.n_paid else AnswerKind.FREE
        self._watcher.answered(table.counted_as.table, kind)
        return [tally] if answered else []

    def _computed(
        self,
        workload: Workload,
        outer: Outer,
        answered: Sequence[AnsweredPart],
        caller: Caller,
        seen: VisibleTables,
    ) -> pa.Table:
        """The result of the outer SQL on the answers."""
        relations = {one.part.name: relation(one) for one in answered}
        try:
            public = self._public_relations(outer.public, seen, caller)
            by_name = {one.part.name: one for one in answered}
            if workload.claims:
                relations |= claimed_relations(workload.claims, by_name, self._outer)
            return self._outer.run(outer.sql, relations | public)
        except Refused as refusal:
            if not any(one.part.table in seen.gated for one in answered):
                raise
            kept = "What was measured for it is paid for and kept."
            raise type(refusal)(f"{refusal.message} {kept}", hint=refusal.hint) from None

    def _schema(self, request: QueryRequest, seen: VisibleTables) -> pa.Schema:
        """The result's columns, from relations without answers."""
        key = (seen.key, request.sql, request.target, request.parameters, request.given)
        known = self._schemas.get(key)
        if known is not None:
            return known
        try:
            workload = _planned(request, seen)
        except PrivateRows as refusal:
            shown = self._previews.answer(request, refusal, seen.tables, seen.synthetic)
            return shown.data.schema.remove_metadata()
        except AskedFirst:
            return self._schema(self._with_stand_ins(request, seen)[0], seen)
        computed = None
        if workload.outer is not None:
            relations = {part.name: unanswered(part) for part in workload.parts}
            relations |= self._public_relations(workload.outer.public, seen, None)
            if workload.claims:
                relations |= unanswered_claims(workload.claims)
            computed = self._outer.run(workload.outer.sql, relations)
        schema = promised_columns(workload, computed)
        self._schemas.put(key, schema, n_bytes=SCHEMA_BYTES)
        return schema

    def _public_relations(
        self, names: Sequence[str], seen: VisibleTables, caller: Caller | None
    ) -> dict[str, pa.Table]:
        """What outer SQL reads besides answers; without a caller, samples of it."""
        if caller is None:
            return public_relations(names, seen, None)
        shown = Shown(partial(self._records, caller), caller)
        return public_relations(names, seen, shown)

    def _records(self, caller: Caller) -> list[TableRecord]:
        tables = self._opened_to(caller).values()
        return [shown_record(table, caller) for table in tables]

    def _explain_query(self, request: QueryRequest) -> Explanation:
        caller, seen = request.caller, self._visible_to(request.caller)
        with self._watcher.stage(Stage.PLAN):
            tried, workloads = self._with_stand_ins(request, seen)
            self._schema(tried, seen)
        found: list[ExplainedPart] = []
        for workload in workloads:
            here: list[ExplainedPart] = []
            self._best_reports(seen).known(workload, caller)  # refuses what running it would
            for name in workload.tables:
                table, parts = seen.answering[name], workload.of_table(name)
                with self._large.turn(caller.payer.analyst, workload.parts):
                    if not isinstance(table, ServedTable):
                        here.extend(own_explained(table, parts, workload.fallback))
                        continue
                    priced = shown_instead(table, caller) or table
                    parts = fitted_by_history(table, parts, caller)
                    parts, _ = at_default_cost(table, parts, caller.payer, rounds=len(workloads))
                    asked = table.info.schema, parts, self._outer
                    told = explained(priced.snapshot(), *asked, seen.units_of(name))
                    is_open = priced is table
                    advice = partial(advice_on, table)
                    here += [advised_by(one, advice) for one in told] if is_open else told
            is_first = workload is not workloads[-1]
            found += [advised_to(one, ASKED_FIRST) for one in here] if is_first else here
        together = joined(workloads)
        return build_explanation(found, budgets(together, seen.answering, caller))


def _planned(request: QueryRequest, seen: VisibleTables) -> Workload:
    """The workload of a request's statement, with the answers that it is given."""
    target = request.target.over(seen.unnamed)
    return seen.planner.plan(request.sql, target, request.parameters, request.given)
