"""The report of one synthetic table of one private table, from public values of both."""

from importlib.metadata import version

import pyarrow as pa

from cube.declaration import declare
from proxy.reporting.declared import DeclaredTable
from proxy.reporting.make import drawn_with_matplotlib, versions
from proxy.synthetic_tables.encoding import levels_of
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.compare import compare
from proxy.synthetic_tables.report.from_history import known_tables
from proxy.tables.private_table import ServedTable


def make_report(table: ServedTable, record: SyntheticRecord, rows: pa.Table) -> bytes:
    """The report as a page, UTF-8. Free: it reads the history, and nothing private.

    Parameters
    ----------
    table : ServedTable
        The private table that the synthetic table was made from.
    record : SyntheticRecord
    rows : pyarrow.Table
        The rows of the synthetic table.

    Raises
    ------
    InvalidRequest
        If matplotlib, which draws the charts, is not installed.
    """
    with drawn_with_matplotlib():
        from proxy.synthetic_tables.report.page import render_report  # noqa: PLC0415 - an extra draws
    schema, confidence = table.info.schema, table.info.default.confidence
    axes = [schema.by_name[name] for name, _ in record.columns]
    known, total = known_tables(table, axes, confidence)
    comparison = compare(levels_of(axes, rows), known, total=total, confidence=confidence)
    declared = DeclaredTable.parse(declare(schema, version=version("tacit-dp")))
    by_name = {column.name: column for column in declared.columns}
    columns = [by_name[axis.name] for axis in axes]
    return render_report(record, comparison, columns, versions()).encode()
