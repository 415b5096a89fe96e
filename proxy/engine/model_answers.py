"""Answers from a model: where a budget is exhausted, and as previews of rows.

The newest synthetic table of the private table replaces it: as many rows as its model estimates,
with the values that SQL sees of private rows. Such an answer is free, has no interval, and is
marked by its source, "model". Groups without a row in the model are missing from it.

Previews of rows, from synthetic tables: what a tool shows of a table before anybody asks it.

Private rows are never shown. Where the owner says ``preview = "synthetic"``, a SELECT of a few rows
is answered by the newest synthetic table that the caller may know of, with its rows in the place of
the private ones. It is free, and its receipt says whose rows they are. Columns that the synthetic
table has not, such as measures, are NULL.
"""

import datetime as dt
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from cube.axis import Axis
from cube.refusals import PrivateRows, Refused
from planner.cache import BoundedCache
from planner.domain import PublicRelation
from planner.lowering import SOURCE_MODEL, modelled, n_rows_wanted
from planner.planner import Planner
from planner.sql import utc_now
from planner.workload import ColumnKind, Fallback, Workload
from proxy.api import (
    BudgetStatus,
    ColumnReceipt,
    QueryRequest,
    QueryResult,
    Receipt,
    arrow_type,
    with_receipt,
)
from proxy.outer_sql.postprocessing import OuterSql
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import SyntheticRecord, SyntheticTableService, levels_of
from proxy.tables import ServedTable, shown_budget

N_MODELS_MAX: Final = 16  # models whose rows are kept in memory
MODELS_BYTES_MAX: Final = 256 * 2**20


class ModelFallback:
    """Answers statements from models. Thread-safe.

    Parameters
    ----------
    public : sequence of (PublicTable, PublicRelation)
        The public tables.
    """

    def __init__(
        self,
        service: SyntheticTableService,
        outer: OuterSql,
        public: Sequence[tuple[PublicTable, PublicRelation]],
    ) -> None:
        self._service = service
        self._outer = outer
        self._public = {relation: table.data for table, relation in public}
        self._rows: BoundedCache[str, pa.Table] = BoundedCache(
            n_entries_max=N_MODELS_MAX, n_bytes_max=MODELS_BYTES_MAX
        )

    def answer(
        self,
        request: QueryRequest,
        workload: Workload,
        schema: pa.Schema,
        budget: BudgetStatus,
        epsilon_spent: Fraction,
    ) -> QueryResult | None:
        """The answer from a model; None if the statement does not allow it, or no model fits.

        Parameters
        ----------
        workload : Workload
            The planned statement, on its one private table.
        schema : pyarrow.Schema
            The columns of the result.
        budget : BudgetStatus
            The budget of that table.
        epsilon_spent : Fraction
            What was spent on the answer before it was refused.
        """
        if workload.fallback is not Fallback.MODEL:
            return None
        record = self._service.newest(budget.table)
        if record is None:
            return None
        with suppress(Refused, pa.ArrowException):
            text = modelled(request.sql, request.parameters)
            data = _shaped(self._answered(text, record, workload.moment), schema)
            columns = tuple(
                _receipt(schema.names[place], confidence, data.num_rows)
                for place, confidence in _answers(workload)
            )
            warnings, caveats = workload.warnings, workload.caveats
            notes = (*warnings, *caveats)
            receipt = Receipt(
                budget.table, epsilon_spent, columns, budget, notes, warnings, caveats
            )
            return QueryResult(with_receipt(data, receipt), receipt)
        return None

    def _answered(self, sql: str, record: SyntheticRecord, moment: dt.datetime | None) -> pa.Table:
        """The result of a statement with a model's rows in place of the private table."""
        rows = self._rows.get(record.id)
        if rows is None:
            rows = as_declared(*self._service.drawn_anew(record))
            self._rows.put(record.id, rows, n_bytes=rows.nbytes)
        relations = {PublicRelation(record.table, tuple(rows.column_names)): rows, **self._public}
        clock = utc_now if moment is None else lambda: moment  # as the statement was planned
        outer = Planner({}, {}, tuple(relations), clock=clock).plan(sql).outer
        if outer is None:
            raise RuntimeError("a statement on public tables was not planned as outer SQL")
        tables = {relation.outer_name: data for relation, data in relations.items()}
        return self._outer.run(outer.sql, {name: tables[name] for name in outer.public})


def as_declared(axes: Sequence[Axis], rows: pa.Table) -> pa.Table:
    """Synthetic rows with the values that SQL sees of private rows: a bin's lower edge."""
    places = levels_of(axes, rows)
    return pa.table(
        {
            axis.name: pa.array(axis.levels, type=rows.schema.field(axis.name).type).take(
                pa.array(places[axis.name].astype(np.int64))
            )
            for axis in axes
        }
    )


def _shaped(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """A result cast to the promised columns; columns of intervals may be NULL."""
    fields = [
        field.with_nullable(field.nullable or column.null_count > 0)
        for field, column in zip(schema, found.columns, strict=True)
    ]
    return found.rename_columns(schema.names).cast(pa.schema(fields))


def _answers(workload: Workload) -> list[tuple[int, float]]:
    """The positions of a result's answer columns, and the requested confidence."""
    parts = workload.parts
    if workload.outer is not None:
        return [(place, parts[part].confidence) for place, part, _ in workload.outer.intervals]
    (only,) = parts
    is_answer = [column.kind is ColumnKind.ANSWER for column in only.columns]
    return [(place, only.confidence) for place, found in enumerate(is_answer) if found]


def _receipt(name: str, confidence: float, n_rows: int) -> ColumnReceipt:
    """The receipt of an answer without accuracy promise: its interval is unbounded."""
    low, high = (-math.inf,) * n_rows, (math.inf,) * n_rows
    return ColumnReceipt(name, confidence, Fraction(0), SOURCE_MODEL, low, high)


N_ROWS_MAX: Final = 10_000  # beyond it, it is no look at a table any more
NOTE: Final = "These rows are of the synthetic table {}, not of {}: no row is anybody's."


class Previews:
    """Answers previews. Thread-safe.

    Parameters
    ----------
    allowed : collection of str
        The private tables whose owner allows them.
    """

    def __init__(
        self, allowed: Collection[str], service: SyntheticTableService, outer: OuterSql
    ) -> None:
        self._allowed = frozenset(allowed)
        self._service = service
        self._outer = outer

    def answer(
        self,
        request: QueryRequest,
        refusal: PrivateRows,
        tables: Mapping[str, ServedTable],
        synthetic: Sequence[SyntheticRecord],
    ) -> QueryResult:
        """A preview with its receipt.

        Parameters
        ----------
        refusal : PrivateRows
            Why the statement is not answered from private rows.
        tables : mapping
            The private tables that the caller may know of.
        synthetic : sequence of SyntheticRecord
            The synthetic tables.

        Raises
        ------
        PrivateRows
            The same, if the owner allows no previews, there is no synthetic table, or the
            statement asks for more than a look.
        """
        if refusal.table not in tables:  # it answers by itself
            raise refusal
        record = self._record(tables[refusal.table], synthetic)
        n_rows = n_rows_wanted(request.sql)
        if record is None or n_rows is None or n_rows > N_ROWS_MAX:
            raise refusal
        table = tables[refusal.table]
        rows = self._in_place_of(table, record)
        relation = PublicRelation(refusal.table, tuple(rows.column_names))
        outer = Planner({}, {}, (relation,)).plan(modelled(request.sql, request.parameters)).outer
        if outer is None:
            raise RuntimeError("a statement on public tables was not planned as outer SQL")
        data = self._outer.run(outer.sql, {relation.outer_name: rows})
        note = NOTE.format(record.name, refusal.table)
        budget = shown_budget(table, request.caller)
        receipt = Receipt(refusal.table, Fraction(0), (), budget, (note,))
        return QueryResult(with_receipt(data, receipt), receipt)

    def _record(
        self, table: ServedTable, synthetic: Sequence[SyntheticRecord]
    ) -> SyntheticRecord | None:
        """The newest synthetic table of a private table's present data, if previews are allowed."""
        own = table.info.schema.table, table.extent.generation
        if own[0] not in self._allowed:
            return None
        made = [record for record in synthetic if (record.table, record.generation) == own]
        return max(made, key=lambda record: record.made_at, default=None)

    def _in_place_of(self, table: ServedTable, record: SyntheticRecord) -> pa.Table:
        """Synthetic rows with the columns of a private table."""
        found = self._service.rows(record)
        axes = table.info.schema.axes
        known = as_declared([axis for axis in axes if axis.name in found.column_names], found)
        columns = {
            axis.name: known.column(axis.name)
            if axis.name in known.column_names
            else pa.nulls(known.num_rows, arrow_type(axis.sql_type))
            for axis in axes
        }
        return pa.table(columns)
