"""The report of one synthetic table of one private table, from public values of both."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pyarrow as pa

from cube.encoding import declare
from proxy.reporting import DeclaredTable, drawn_with_matplotlib, versions
from proxy.synthetic_tables.models import levels_of
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.compare import Integers, TableComparison, compare, known_tables
from proxy.synthetic_tables.report.residuals import (
    Drawing,
    checked_tables,
    measured_distances,
    measured_tables,
)
from proxy.synthetic_tables.report.verdict import Verdict, pair_distances, purchases
from proxy.synthetic_tables.request import Method
from proxy.tables import ServedTable


def make_report(table: ServedTable, record: SyntheticRecord, rows: pa.Table) -> bytes:
    """The report as a page, UTF-8. Free: it reads the history, and nothing private.

    Parameters
    ----------
    table : ServedTable
        The private table that the synthetic table was made from.
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
    levels = levels_of(axes, rows)
    known, total = known_tables(table, axes, confidence)
    comparison = compare(levels, known, total=total, confidence=confidence)
    verdict = judged(table, record, levels, comparison)
    declared = DeclaredTable.parse(declare(schema, version=version("tacit-dp")))
    by_name = {column.name: column for column in declared.columns}
    columns = [by_name[axis.name] for axis in axes]
    return render_report(record, comparison, verdict, columns, versions()).encode()


def judged(
    table: ServedTable,
    record: SyntheticRecord,
    levels: Mapping[str, Integers],
    comparison: TableComparison,
) -> Verdict:
    """What the report says about the table as a whole; reads the history alone.

    Parameters
    ----------
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    """
    snapshot = table.snapshot()
    charges = snapshot.charges
    beside = [one for told in charges.released for one in told.counts]
    scale = comparison.scale
    drawing = Drawing(scale, is_independent=scale != 1 or record.method is Method.PRIVBAYES)
    checked = checked_tables(
        measured_tables(snapshot.pooled, beside, list(levels)),
        levels,
        n_rows=scale * comparison.n_rows,
        drawing=drawing,
    )
    pairs = pair_distances(
        checked,
        measured_distances(charges.released, list(levels)),
        levels,
        drawing=drawing,
        rng=np.random.default_rng(record.seed),
    )
    n_before = charges.generations.n_payments  # charges for earlier data are not shown here
    payments = snapshot.payments[n_before:]
    made = replace(record, n_charges=record.n_charges - n_before)
    bought = purchases(made, payments, charges.measurements)
    n_own = made.n_charges + (
        record.evaluation is not None
    )  # it is charged after the rows are made
    return Verdict(record, checked, pairs, bought, max(0, len(payments) - n_own))
