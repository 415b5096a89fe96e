"""The service for synthetic tables, and the statements that it carries out.

As far as possible, everything is checked before anything is paid for. To a caller, tables that they
may not know of do not exist: such tables neither occupy names nor count towards limits.

Executes statements about synthetic tables; each returns a table with a known schema.

`planner.sql.synthetic_statements` parses them; the service decides what is allowed.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from accountant.ledger import Role, utc_now
from cube.axis import Axis
from cube.refusals import (
    CostAboveCap,
    InvalidRequest,
    NotAllowed,
    Refused,
    Shortfall,
    StoreUnavailable,
    TooLarge,
    UnknownName,
    UnsupportedSql,
)
from planner.domain import TableNames, WrittenName
from planner.sql import CreateSynthetic, SyntheticStatement, listed, shortened, suggestion
from proxy.api import (
    BudgetStatus,
    Caller,
    Explanation,
    QueryRequest,
    QueryResult,
    Receipt,
    unknown_table,
    with_receipt,
)
from proxy.collections import CollectedTable
from proxy.monitoring import AnswerKind
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import make as making
from proxy.synthetic_tables.conditional_law import LawQuestion, ModelLaw, asked_law
from proxy.synthetic_tables.evaluation import planned_evaluation, scored
from proxy.synthetic_tables.from_answers import free_request, make_of_answers, planned
from proxy.synthetic_tables.make import preview
from proxy.synthetic_tables.models import ModelFile, decoded_model, n_rows_of
from proxy.synthetic_tables.record import SyntheticRecord, new_id
from proxy.synthetic_tables.report import make_report
from proxy.synthetic_tables.request import MadeTable, PlannedStep, Progress, SynthesisRequest, Watch
from proxy.synthetic_tables.resolve import named, named_columns, request_of
from proxy.synthetic_tables.store import Names, NamingContext, SyntheticStore
from proxy.tables import (
    SelfAnswering,
    ServedTable,
    check_may_see_history,
    note_if_large,
    shown_budget,
)


class SyntheticTableService:
    """The synthetic tables of the private tables that are served. Thread-safe.

    Parameters
    ----------
    tables : mapping
        The private tables, by name.
    public : sequence of PublicTable
    store : SyntheticStore, optional
        Without a store there are no synthetic tables, and none can be made.
    own : mapping
        The tables that answer by themselves, by name, as they are at present. Of collections
        synthetic tables are made, for nothing.
    """

    def __init__(
        self,
        tables: Mapping[str, ServedTable],
        public: Sequence[PublicTable] = (),
        store: SyntheticStore | None = None,
        own: Mapping[str, SelfAnswering] = MappingProxyType({}),
    ) -> None:
        self._tables, self._own = tables, own
        self._public = tuple(public)
        self._names = Names()
        self._given_store = store

    def known(self, caller: Caller) -> tuple[SyntheticRecord, ...]:
        """The tables that a caller may know of, by name: those whose source they may know of.

        Empty if they cannot be read at present: queries on private tables are answered all the
        same.
        """
        try:
            return self.listed(caller)
        except StoreUnavailable:
            return ()

    def listed(self, caller: Caller) -> tuple[SyntheticRecord, ...]:
        """The same tables; raises if they cannot be read.

        Raises
        ------
        StoreUnavailable
        """
        if self._given_store is None:
            return ()
        return tuple(
            record
            for record in self._given_store.tables().values()
            if self._is_served(record) and caller.opens(record.table)
        )

    def find(self, caller: Caller, name: str) -> SyntheticRecord:
        """The table with a name, or with a source, a dot and a name, in any letter case.

        Raises
        ------
        UnknownName, StoreUnavailable
        """
        found = self._meant(caller, name)
        if found is None:
            known = TableNames(
                (), tuple(record.full_name for record in self.listed(caller))
            ).shown()
            there_are = f"Synthetic tables are {listed(known)}." if known else "There is none yet."
            raise UnknownName(
                f"There is no synthetic table {shortened(name)!a}.",
                hint=suggestion(name, known) or there_are,
            )
        return found

    def budget(self, caller: Caller, table: str) -> BudgetStatus | None:
        """The budget of a private table, with the caller's limits; a collection has none."""
        source = self._source(caller, table)
        return None if isinstance(source, CollectedTable) else shown_budget(source, caller)

    def rows(self, record: SyntheticRecord) -> pa.Table:
        """The rows of a table."""
        return self._store.rows(record)

    def preview(self, caller: Caller, order: CreateSynthetic) -> tuple[PlannedStep, ...]:
        """The most that making a table would cost, step by step. Charges nothing.

        Raises
        ------
        Refused
        """
        table = self._source(caller, order.table)
        request = self._request(caller, order, table)
        if isinstance(table, CollectedTable):
            return planned(table, request)
        return (*preview(table, request), *planned_evaluation(table, request))

    def create(self, caller: Caller, order: CreateSynthetic, watch: Watch) -> SyntheticRecord:
        """Make a table and keep it. May charge.

        Raises
        ------
        Refused
            Before anything is charged; or later, and then what was charged is kept in the ledger.
        """
        table = self._source(caller, order.table)
        request = self._request(caller, order, table)
        with self._held(caller, order, request.table) as (name, replaced):
            self._store.check_writable()
            # How many rows there are may be a noisy estimate; they are drawn as they are stored.
            if isinstance(table, CollectedTable):
                made = make_of_answers(table, replace(request, n_rows=1), watch)
            else:
                made = self._bought(table, request, caller, watch)
            try:
                return self._kept(caller, name, request, made, replaced)
            except Refused as refusal:
                if not made.epsilon_spent:
                    raise
                kept = "What was measured for it is paid for and kept."
                raise type(refusal)(f"{refusal.message} {kept}", hint=refusal.hint) from None

    def _bought(
        self, table: ServedTable, request: SynthesisRequest, caller: Caller, watch: Watch
    ) -> MadeTable:
        """A table of a private one, with its evaluation. May charge."""
        made = making.make(table, replace(request, n_rows=1), caller.payer, watch)
        if request.evaluate:
            rows = pa.concat_tables(self._parts(request, made))
            made = scored(table, request, caller.payer, replace(made, rows=rows), watch)
        kind = AnswerKind.PAID if made.epsilon_spent else AnswerKind.FREE
        table.watcher.answered(request.table, kind)
        note_if_large(table, caller.payer, made.epsilon_spent)
        return made

    def resample(
        self, caller: Caller, of: str, name: str, n_rows: int | None, seed: int | None
    ) -> SyntheticRecord:
        """Draw another table from the model of an existing one. Free.

        Raises
        ------
        Refused
        """
        source = self.find(caller, of)
        table = self._source(caller, source.table)
        new_seed = secrets.randbits(making.SEED_BITS) if seed is None else seed
        order = CreateSynthetic(
            name=name,
            table=source.table,
            n_rows=source.n_rows if n_rows is None else n_rows,
            seed=new_seed,
            columns=named_columns(source, table.info.schema),
        )
        request = request_of(
            order,
            table.info.schema,
            self._store.limits,
            is_federated=isinstance(table, ServedTable) and table.is_federated,
        )
        with self._held(caller, order, source.table) as (free_name, replaced):
            model = self._store.model(source)
            axes = making.checked_axes(table.info.schema, request)
            parts = making.resampled_parts(model, axes, n_rows=order.n_rows, seed=new_seed)
            record = replace(
                source,
                id=new_id(),
                name=free_name,
                seed=new_seed,
                made_by=caller.payer.analyst,
                made_at=utc_now(),
                evaluate=Fraction(0),
                evaluation=None,  # it is of other rows
            )
            return self._store.publish(record, parts, model, replaced)

    def newest(self, table: str) -> SyntheticRecord | None:
        """The newest synthetic table of a private table's present data, if there is any.

        Of a federated table, one that was made of the rows of all holders.
        """
        store, source = self._given_store, self._tables.get(table)
        if store is None or source is None:
            return None
        own = table, source.extent.generation
        made = [
            one
            for one in store.tables().values()
            if (one.table, one.generation) == own and not one.left_out
        ]
        return max(made, key=lambda record: record.made_at, default=None)

    def drawn_anew(self, record: SyntheticRecord) -> tuple[tuple[Axis, ...], pa.Table]:
        """The axes of a table's columns, and as many rows of its model as it estimates.

        Raises
        ------
        Refused
        """
        table, model = self._tables[record.table], self._store.model(record)
        named_columns(record, table.info.schema)
        axes = tuple(table.info.schema.by_name[name] for name, _ in record.columns)
        n_rows, n_rows_max = n_rows_of(model), self._store.limits.n_rows
        if n_rows > n_rows_max:
            raise TooLarge(
                f"{n_rows} rows are more than the {n_rows_max} that a synthetic table may have "
                "here.",
                hint="Query a synthetic table itself, and scale its counts.",
            )
        return axes, making.resampled(model, axes, n_rows=n_rows, seed=record.seed)

    def report(self, caller: Caller, name: str) -> bytes:
        """A page that compares a table with the history's estimates. Free.

        Raises
        ------
        Refused
        """
        record = self.find(caller, name)
        table = self._source(caller, record.table)
        if isinstance(table, CollectedTable):
            raise InvalidRequest(
                f"{record.name} was made of a collection, which has no history to report on.",
                hint=f"Ask {record.table} for counts, which are free, and compare them in SQL.",
            )
        check_may_see_history(table, caller)
        if record.left_out:
            raise InvalidRequest(
                f"{record.name} was made without the rows of some holders ({record.left_out}), and "
                "the history that a report compares it with is of all of them.",
                hint="Make a table of the rows of all holders; or compare counts in SQL.",
            )
        named_columns(record, table.info.schema)
        if record.generation < table.extent.generation:
            table = table.earlier(record.generation - 1, record.table)
        return make_report(table, record, self.rows(record))

    def law(self, caller: Caller, name: str, question: LawQuestion) -> ModelLaw:
        """The law of some columns given values of others, by a table's model. Free.

        Raises
        ------
        Refused
        """
        record = self.find(caller, name)
        schema = self._source(caller, record.table).info.schema
        axes = [schema.by_name[column] for column in named_columns(record, schema)]
        model = decoded_model(self._store.model(record))
        return asked_law(
            record.name, axes, question, model, lambda: self.rows(record), seed=record.seed
        )

    def model_file(self, caller: Caller, name: str) -> bytes:
        """The model of a table as a file, with the levels of its columns. Free.

        Raises
        ------
        Refused
        """
        record = self.find(caller, name)
        schema = self._source(caller, record.table).info.schema
        axes = [schema.by_name[column] for column in named_columns(record, schema)]
        return ModelFile.of(self._store.model(record), axes).to_bytes()

    def drop(self, caller: Caller, name: str, *, if_exists: bool = False) -> SyntheticRecord | None:
        """Drop a table that the caller made, or whose source they own; None if it does not exist.

        Raises
        ------
        UnknownName, NotAllowed, StoreUnavailable
        """
        if if_exists and self._meant(caller, name) is None:
            return None
        record = self.find(caller, name)
        _check_may_change(caller, record)
        self._store.drop(record)
        return record

    def _meant(self, caller: Caller, name: str) -> SyntheticRecord | None:
        """The table that a name refers to, if there is one; UnknownName if it is ambiguous."""
        known = {record.full_name: record for record in self.listed(caller)}
        source, _, own = name.rpartition(".")
        names = TableNames((), tuple(known))
        found = names.synthetic_meaning(WrittenName(own), WrittenName(source) if source else None)
        return None if found is None else known[found]

    def _parts(self, request: SynthesisRequest, made: MadeTable) -> Iterator[pa.Table]:
        """The rows, a part at a time: the estimated number, if the order gives no number."""
        known, n_rows = self._tables.get(request.table), request.n_rows
        schema = (self._own[request.table] if known is None else known).info.schema
        if n_rows is None:
            n_rows_max = min(self._store.limits.n_rows, schema.n_records_max)
            n_rows = min(n_rows_of(made.model), n_rows_max)
        axes, seed = making.checked_axes(schema, request), int(made.model["seed"])
        return making.resampled_parts(made.model, axes, n_rows=n_rows, seed=seed)

    def _kept(
        self,
        caller: Caller,
        name: str,
        request: SynthesisRequest,
        made: MadeTable,
        replaced: SyntheticRecord | None,
    ) -> SyntheticRecord:
        """Store a table; with the estimated number of rows, if the order gives no number."""
        record = SyntheticRecord.of(name, request, made, caller.payer.analyst)
        parts = (made.rows,) if request.evaluate else self._parts(request, made)
        return self._store.publish(record, parts, made.model, replaced)

    @property
    def _store(self) -> SyntheticStore:
        if self._given_store is None:
            raise InvalidRequest(
                "This server has no folder for synthetic tables.",
                hint="Its owner can set synthetic_dir in [server].",
            )
        return self._given_store

    def _request(
        self, caller: Caller, order: CreateSynthetic, table: ServedTable | CollectedTable
    ) -> SynthesisRequest:
        if isinstance(table, CollectedTable):
            return free_request(order, table.info.schema, self._store.limits)
        check_may_see_history(table, caller)
        return request_of(
            order,
            table.info.schema,
            self._store.limits,
            self._public,
            is_federated=table.is_federated,
        )

    def _is_served(self, record: SyntheticRecord) -> bool:
        """Whether what a table was made from is served at present."""
        served = self._tables if record.n_respondents is None else self._own
        return record.table in served

    def _source(self, caller: Caller, name: str) -> ServedTable | CollectedTable:
        """The source with a name, ignoring letter case, if the caller may know of it."""
        opened = [table for table in self._tables if caller.opens(table)]
        found = named(name, opened)
        if found is not None:
            return self._tables[found]
        own = named(name, [table for table in self._own if caller.opens(table)])
        source = None if own is None else self._own.get(own)
        if isinstance(source, CollectedTable):
            return source
        if own is not None:
            raise InvalidRequest(
                f"{own} answers by itself, and no synthetic table is made from it.",
                hint="Ask its counts, which are free.",
            )
        raise unknown_table(name, opened)

    def _held(
        self, caller: Caller, order: CreateSynthetic, source: str
    ) -> AbstractContextManager[tuple[str, SyntheticRecord | None]]:
        """Hold a name for a new table; yields it, and the table that it replaces, if any."""
        store = self._store
        asked = (name for name in (*self._tables, *self._own) if caller.opens(name))
        declared = (*asked, *(one.name for one in self._public))
        maker = NamingContext(caller.payer.analyst, source, frozenset(map(str.casefold, declared)))

        def check(record: SyntheticRecord) -> None:
            _check_may_change(caller, record)

        return self._names.held(order, maker, store.tables(), check, store.limits.n_tables)


NO_TABLES: Final = SyntheticTableService({})


def _check_may_change(caller: Caller, record: SyntheticRecord) -> None:
    if caller.role is not Role.OWNER and record.made_by != caller.payer.analyst:
        raise NotAllowed(
            f"{record.name} was made by another analyst.",
            hint=f"Ask {record.made_by}, or an owner of {record.table}.",
        )


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


CREATED_SCHEMA: Final = _columns(
    name=pa.string(),
    source=pa.string(),
    method=pa.string(),
    n_rows=pa.int64(),
    epsilon_spent=pa.float64(),
    unknown=pa.string(),
    incomplete=pa.string(),
    n_charges=pa.int64(),
    evaluated=pa.string(),
)
PREVIEW_SCHEMA: Final = _columns(step=pa.string(), epsilon=pa.float64(), n_tables=pa.int64())
DROPPED_SCHEMA: Final = _columns(name=pa.string(), dropped=pa.bool_())


def statement_schema(statement: SyntheticStatement) -> pa.Schema:
    """The columns of a statement's result."""
    return CREATED_SCHEMA if isinstance(statement, CreateSynthetic) else DROPPED_SCHEMA


def run_statement(
    service: SyntheticTableService, statement: SyntheticStatement, request: QueryRequest
) -> QueryResult:
    """Execute a statement; its result. May charge.

    Raises
    ------
    Refused
    """
    caller = request.caller
    if not isinstance(statement, CreateSynthetic):
        dropped = service.drop(caller, statement.written, if_exists=statement.if_exists)
        row = {"name": statement.name, "dropped": dropped is not None}
        return QueryResult(pa.Table.from_pylist([row], schema=DROPPED_SCHEMA), None)
    check_cap(statement, request.target.epsilon_cap)
    record = service.create(caller, statement, unwatched)
    receipt = receipt_of(record, service.budget(caller, record.table))
    data = pa.Table.from_pylist([_created_row(record)], schema=CREATED_SCHEMA)
    return QueryResult(with_receipt(data, receipt), receipt)


def explain_statement(
    service: SyntheticTableService, statement: SyntheticStatement, caller: Caller
) -> Explanation:
    """The most that a statement would cost. Charges nothing.

    Raises
    ------
    Refused
    """
    if not isinstance(statement, CreateSynthetic):
        raise UnsupportedSql(
            "Dropping a synthetic table costs nothing and restores no budget.",
            hint="Explain a CREATE SYNTHETIC TABLE, or a SELECT.",
        )
    steps = service.preview(caller, statement)
    epsilon = sum((step.epsilon for step in steps), Fraction(0))
    return Explanation(preview_table(steps), epsilon, service.budget(caller, statement.table))


def preview_table(steps: Sequence[PlannedStep]) -> pa.Table:
    """The steps of a preview as a table."""
    rows = [
        {"step": step.name, "epsilon": float(step.epsilon), "n_tables": step.n_tables}
        for step in steps
    ]
    return pa.Table.from_pylist(rows, schema=PREVIEW_SCHEMA)


def check_cap(order: CreateSynthetic, cap: Fraction | None) -> None:
    """Raise CostAboveCap if a table may cost more than its session or call allows."""
    epsilon = order.epsilon + order.evaluate
    if cap is not None and epsilon > cap:
        raise CostAboveCap(
            Shortfall(
                table=order.table,
                epsilon_needed=epsilon,
                epsilon_left=cap,
                is_synthetic=True,
            )
        )


def receipt_of(record: SyntheticRecord, budget: BudgetStatus | None) -> Receipt:
    """The receipt for making a table; its rows have no intervals."""
    return Receipt(record.table, record.epsilon_spent, (), budget)


def unwatched(_step: Progress) -> None:
    """Ignore progress."""


def _created_row(record: SyntheticRecord) -> dict[str, object]:
    return {
        "name": record.name,
        "source": record.table,
        "method": str(record.method),
        "n_rows": record.n_rows,
        "epsilon_spent": float(record.epsilon_spent),
        "unknown": ", ".join(record.unknown),
        "incomplete": record.incomplete,
        "n_charges": record.n_charges,
        "evaluated": record.evaluated,
    }
