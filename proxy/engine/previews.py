"""Previews of rows, from synthetic tables: what a tool shows of a table before anybody asks it.

Private rows are never shown. Where the owner says ``preview = "synthetic"``, a SELECT of a few rows
is answered by the newest synthetic table that the caller may know of, with its rows in the place of
the private ones. It is free, and its receipt says whose rows they are. Columns that the synthetic
table has not, such as measures, are NULL.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final

import pyarrow as pa

from cube.refusals import PrivateRows
from planner.domain.relations import PublicRelation
from planner.lowering.outer import modelled, n_rows_wanted
from planner.planner import Planner
from proxy.api.arrow_types import arrow_type
from proxy.api.receipts import with_receipt
from proxy.api.requests import QueryRequest, QueryResult, Receipt
from proxy.engine.model_fallback import as_declared
from proxy.engine.postprocessing import OuterSql
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.service import SyntheticTableService
from proxy.tables.disclosure import shown_budget
from proxy.tables.private_table import ServedTable

N_ROWS_MAX: Final = 10_000  # beyond it, it is no look at a table any more
NOTE: Final = "These rows are of the synthetic table {}, not of {}: no row is anybody's."


class Previews:
    """Answers previews. Thread-safe.

    Parameters
    ----------
    allowed : collection of str
        The private tables whose owner allows them.
    service : SyntheticTableService
    outer : OuterSql
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
        request : QueryRequest
        refusal : PrivateRows
            Why the statement is not answered from private rows.
        tables : mapping
            The private tables that the caller may know of.
        synthetic : sequence of SyntheticRecord
            The synthetic ones.

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
        """The newest synthetic table of what a private one is now, if previews are allowed."""
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
