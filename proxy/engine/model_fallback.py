"""Answers from a model, where the budget is gone and the statement says that this will do.

The newest synthetic table of the private one stands in its place: as many rows as its model says
there are, with the values that SQL sees of private rows. Such an answer is free, has no interval,
and is marked: its source is "model". Groups that the model has no row of are not in it.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from cube.axis import Axis
from cube.refusals import Refused
from planner.cache import BoundedCache
from planner.domain.public import PublicRelation
from planner.lowering.model_fallback import SOURCE_MODEL, modelled
from planner.planner import Planner
from planner.workload import ColumnKind, Workload
from proxy.api.receipts import with_receipt
from proxy.api.requests import BudgetStatus, ColumnReceipt, QueryResult, Receipt
from proxy.engine.postprocessing import OuterSql
from proxy.sources.public_table import PublicTable
from proxy.synthetic_tables.encoding import levels_of
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.service import SyntheticTableService

N_MODELS_MAX: Final = 16  # of which rows are at hand
MODELS_BYTES_MAX: Final = 256 * 2**20


class ModelFallback:
    """Answers statements from models. Thread-safe.

    Parameters
    ----------
    desk : SyntheticTableService
    outer : OuterSql
    public : sequence of (PublicTable, PublicRelation)
        The public tables.
    """

    def __init__(
        self,
        desk: SyntheticTableService,
        outer: OuterSql,
        public: Sequence[tuple[PublicTable, PublicRelation]],
    ) -> None:
        self._desk = desk
        self._outer = outer
        self._public = {relation: table.data for table, relation in public}
        self._rows: BoundedCache[str, pa.Table] = BoundedCache(
            n_entries_max=N_MODELS_MAX, n_bytes_max=MODELS_BYTES_MAX
        )

    def answer(
        self,
        sql: str,
        workload: Workload,
        schema: pa.Schema,
        budget: BudgetStatus,
        epsilon_spent: Fraction,
    ) -> QueryResult | None:
        """The answer from a model; None if the statement does not ask for it, or none can tell.

        Parameters
        ----------
        sql : str
        workload : Workload
            What it asks of its one private table.
        schema : pyarrow.Schema
            Of its result.
        budget : BudgetStatus
            Of that table.
        epsilon_spent : Fraction
            On the answer that was not reached.
        """
        text = modelled(sql)
        record = None if text is None else self._desk.newest(budget.table)
        if text is None or record is None:
            return None
        with suppress(Refused, pa.ArrowException):
            data = _shaped(self._answered(text, record), schema)
            columns = tuple(
                _receipt(schema.names[place], confidence, data.num_rows)
                for place, confidence in _answers(workload)
            )
            receipt = Receipt(budget.table, epsilon_spent, columns, budget)
            return QueryResult(with_receipt(data, receipt), receipt)
        return None

    def _answered(self, sql: str, record: SyntheticRecord) -> pa.Table:
        """What a statement gives where a model's rows stand in a private table's place."""
        rows = self._rows.get(record.id)
        if rows is None:
            rows = as_declared(*self._desk.drawn_anew(record))
            self._rows.put(record.id, rows, n_bytes=rows.nbytes)
        relations = {PublicRelation(record.table, tuple(rows.column_names)): rows, **self._public}
        outer = Planner({}, {}, tuple(relations)).plan(sql).outer
        if outer is None:
            raise RuntimeError("a statement of public tables that is not SQL on them")
        tables = {relation.outer_name: data for relation, data in relations.items()}
        return self._outer.run(outer.sql, {name: tables[name] for name in outer.public})


def as_declared(axes: Sequence[Axis], rows: pa.Table) -> pa.Table:
    """Synthetic rows with the values that SQL sees of private ones: of a bin, its lower edge."""
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
    """A result in the columns that were promised; one that shows no interval may be NULL."""
    fields = [
        field.with_nullable(field.nullable or column.null_count > 0)
        for field, column in zip(schema, found.columns, strict=True)
    ]
    return found.rename_columns(schema.names).cast(pa.schema(fields))


def _answers(workload: Workload) -> list[tuple[int, float]]:
    """The places of a result's columns that are answers, and the confidence asked for."""
    parts = workload.parts
    if workload.outer is not None:
        return [(place, parts[part].confidence) for place, part, _ in workload.outer.intervals]
    (only,) = parts
    is_answer = [column.kind is ColumnKind.ANSWER for column in only.columns]
    return [(place, only.confidence) for place, found in enumerate(is_answer) if found]


def _receipt(name: str, confidence: float, n_rows: int) -> ColumnReceipt:
    """An answer that nothing is promised of: its interval is everything."""
    low, high = (-math.inf,) * n_rows, (math.inf,) * n_rows
    return ColumnReceipt(name, confidence, Fraction(0), SOURCE_MODEL, low, high)
