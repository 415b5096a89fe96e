"""The relations of the schema `data_privacy`.

Each is an Arrow table with a fixed schema. They are made from the gate's public state and from
public declarations: they contain no noisy value, and cannot contain an exact one. Reading them is
free.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from types import MappingProxyType
from typing import Final, TypeAlias

import pyarrow as pa

from accountant.ledger import Window
from accountant.ledger.history import Budget
from cube.encoding import declare
from cube.measurement import UNITS_PER_EPSILON, Measurement
from cube.query import N_GROUPS_MAX
from cube.refusals import InvalidTarget, UnknownName
from cube.schema import Schema
from cube.statistic import Rule
from planner.domain import PRIVACY_SCHEMA
from planner.measuring import weight_for
from planner.sql import listed, suggestion
from proxy.api import TableInfo, axis_ends, axis_kind, describe_levels, rows_kept
from proxy.reporting import DeclaredTable, of_units_text, query_text
from proxy.tables import NO_ENTRIES, ShownEntries

UNIT_KIND: Final = "unit"

Row: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What one caller may see of one private table at one moment.

    Parameters
    ----------
    info : TableInfo
        Its public schema and its default target.
    budget : Budget
        Its budget, as the caller may see it.
    whole_schema : Schema
        What the measurements are about: of a table that grows, all of its axis.
    entries : ShownEntries
        The entries of the ledger that the caller may see.
    """

    info: TableInfo
    budget: Budget
    whole_schema: Schema
    entries: ShownEntries = NO_ENTRIES


def _columns(*, may_be_null: tuple[str, ...] = (), **types: pa.DataType) -> pa.Schema:
    """A schema of named columns, NOT NULL unless listed in `may_be_null`."""
    return pa.schema(
        [pa.field(name, kind, nullable=name in may_be_null) for name, kind in types.items()]
    )


VIEW_SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "budgets": _columns(
            table_name=pa.string(),
            budget=pa.float64(),
            spent=pa.float64(),
            left=pa.float64(),
            n_measurements=pa.int64(),
            window=pa.string(),
            renews_at=pa.timestamp("ms", tz="UTC"),
            spent_in_year=pa.float64(),
            spent_in_all=pa.float64(),
            may_be_null=("renews_at", "spent_in_year", "spent_in_all"),
        ),
        "losses": _columns(
            place=pa.int64(),
            at=pa.timestamp("ms", tz="UTC"),
            table_name=pa.string(),
            analyst=pa.string(),
            epsilon=pa.float64(),
            epsilon_total=pa.float64(),
            n_blocks=pa.int64(),
            n_statistics=pa.int64(),
        ),
        "history": _columns(
            may_be_null=("epsilon", "noise_scale", "rho", "raised_from"),
            place=pa.int64(),
            table_name=pa.string(),
            columns=pa.string(),
            query=pa.string(),
            n_rows=pa.int64(),
            epsilon=pa.float64(),
            noise_scale=pa.float64(),
            noise=pa.string(),
            rho=pa.float64(),
            deviation=pa.float64(),
            raised_from=pa.int64(),
            superseded=pa.bool_(),
        ),
        "domains": _columns(
            may_be_null=("sql_type", "n_levels", "low", "high", "levels"),
            table_name=pa.string(),
            column_name=pa.string(),
            kind=pa.string(),
            sql_type=pa.string(),
            n_levels=pa.int64(),
            low=pa.string(),
            high=pa.string(),
            has_null=pa.bool_(),
            can_be_key=pa.bool_(),
            can_be_predicate=pa.bool_(),
            levels=pa.string(),
        ),
    }
)
REMAINING_SCHEMA: Final = _columns(
    number_of_remaining_dp_aggregates=pa.int64(),
    budget_limit=pa.float64(),
    budget_window=pa.string(),
    budget_spent=pa.float64(),
)


def privacy_view(name: str, records: Iterable[TableRecord]) -> pa.Table:
    """The relation ``data_privacy.<name>``; without records it is empty but typed.

    Raises
    ------
    UnknownName
        If there is no such view. Letter case does not count.
    """
    folded = name.casefold()
    if folded not in VIEW_SCHEMAS:
        raise UnknownName(
            f"{PRIVACY_SCHEMA} has no view {name[:64]!a}.",
            hint=suggestion(name, VIEW_SCHEMAS) or f"It has {listed(VIEW_SCHEMAS)}.",
        )
    rows = [row for record in records for row in _ROWS[folded](record)]
    return pa.Table.from_pylist(rows, schema=VIEW_SCHEMAS[folded])


def remaining_aggregates(table_name: str, records: Iterable[TableRecord]) -> pa.Table:
    """One row: how many more counts a table's budget surely buys, in Snowflake's columns.

    Raises
    ------
    UnknownName
        If there is no such table. Letter case does not count.
    """
    by_name = {record.info.schema.table.casefold(): record for record in records}
    record = by_name.get(table_name.casefold())
    if record is None:
        names = [known.info.schema.table for known in by_name.values()]
        raise UnknownName(
            f"There is no private table {table_name[:64]!a}.",
            hint=suggestion(table_name, names) or f"Private tables are {listed(names)}.",
        )
    row: Row = {
        "number_of_remaining_dp_aggregates": n_remaining(record),
        "budget_limit": float(record.budget.limit),
        "budget_window": _window(record.budget),
        "budget_spent": float(record.budget.spent),
    }
    return pa.Table.from_pylist([row], schema=REMAINING_SCHEMA)


def n_remaining(record: TableRecord) -> int:
    """How many ``COUNT(*)``-like rows at the default target the rest of the budget buys at least.

    Notes
    -----
    ``floor(left / weight)``, both in whole units of 2**-40 epsilon and so in exact arithmetic. In
    the worst case the history helps with none of them and all of them count the same cell, so that
    each adds its whole weight to the table's cost; a row that a fresh Laplace answer of weight
    ``w`` serves needs ``w = ln(1 / (1 - confidence)) / half_width`` (Xiao & Xiong 2012, theorem
    5.3), taken from `weight_for` with its margins, rounded up. A sum with coefficients up to ``c``
    counts as ``c`` rows. Counts that share no cell, or that the history answers, are not limited by
    this number.
    """
    units_left = int(record.budget.left * UNITS_PER_EPSILON)
    try:
        weight = weight_for(record.info.default, Fraction(1))
    except InvalidTarget:  # the default target asks for practically no noise
        return 0
    return units_left // weight.units


def _window(budget: Budget) -> str:
    """The window in which a budget may be spent, in Snowflake's spelling."""
    return Window.NEVER.upper() if budget.renewal is None else budget.renewal.window.upper()


def _budget_rows(record: TableRecord) -> Iterator[Row]:
    renewal = record.budget.renewal
    yield {
        "table_name": record.info.schema.table,
        "budget": float(record.budget.limit),
        "spent": float(record.budget.spent),
        "left": float(record.budget.left),
        "n_measurements": record.budget.n_measurements,
        "window": _window(record.budget),
        "renews_at": None if renewal is None else dt.datetime.fromisoformat(renewal.next_at),
        "spent_in_year": None if renewal is None else _shown_sum(renewal.spent_in_year),
        "spent_in_all": None if renewal is None else _shown_sum(renewal.spent_in_all),
    }


def _shown_sum(spent: Fraction | None) -> float | None:
    return None if spent is None else float(spent)


def _loss_rows(record: TableRecord) -> Iterator[Row]:
    """One row per charge, whether or not its measurement is durable yet.

    The position in the ledger is not shown: it counts all tables, and would reveal entries of
    others.
    """
    for place, payment in record.entries.payments:
        yield {
            "place": place,
            "at": dt.datetime.fromisoformat(payment.at),
            "table_name": record.info.schema.table,
            "analyst": payment.charge.payer.analyst,
            "epsilon": _epsilon(payment.units),
            "epsilon_total": _epsilon(payment.charge.units_after),
            "n_blocks": len(payment.charge.blocks),
            "n_statistics": len(payment.charge.statistics),
        }


def _history_rows(record: TableRecord) -> Iterator[Row]:
    """One row per measurement; `raised_from` is the position of the one that it refines.

    Epsilon is that of one record, and of a unit in one group where units are counted; these have
    positions of their own. Weight and scale are of Laplace noise; Gaussian noise has the rho of a
    record that moves the row by one unit. The standard deviation compares the two.
    """
    declared = DeclaredTable.parse(declare(record.whole_schema, version=version("tacit-dp")))
    rows = [(one, query_text(one.block, declared)) for one in record.entries.measurements]
    counts = [
        (one, of_units_text(one.block, Rule(*name[1:]), declared))
        for one, name in zip(
            record.entries.unit_counts.measurements, record.entries.unit_counts.names, strict=True
        )
    ]
    yield from _measured_rows(record, rows)
    yield from _measured_rows(record, counts)


def _measured_rows(
    record: TableRecord, measurements: Sequence[tuple[Measurement, str]]
) -> Iterator[Row]:
    superseded = {measured.supersedes for measured, _ in measurements}
    for place, (measured, text) in enumerate(measurements):
        gaussian = measured.is_gaussian
        yield {
            "place": place,
            "table_name": record.info.schema.table,
            "columns": ", ".join(measured.block.scope),
            "query": text,
            "n_rows": measured.block.n_rows,
            "epsilon": None if gaussian else float(measured.weight.exact),
            "noise_scale": None if gaussian else measured.noise_scale,
            "noise": "gaussian" if gaussian else "laplace",
            "rho": float(measured.weight.exact) if gaussian else None,
            "deviation": measured.deviation,
            "raised_from": measured.supersedes,
            "superseded": place in superseded,
        }


def _domain_rows(record: TableRecord) -> Iterator[Row]:
    """One row per declared column, and one for the column of the privacy unit."""
    schema = record.info.schema
    for axis in schema.axes:
        low, high = axis_ends(axis) or (None, None)
        yield {
            "table_name": schema.table,
            "column_name": axis.name,
            "kind": axis_kind(axis),
            "sql_type": axis.sql_type,
            "n_levels": axis.size,
            "low": low,
            "high": high,
            "has_null": axis.null,
            "can_be_key": axis.size <= N_GROUPS_MAX,
            "can_be_predicate": True,
            "levels": describe_levels(axis),
        }
    if schema.unit is not None:
        several = rows_kept(schema)
        if several is not None and schema.groups_per_unit_max is not None:
            several += f", and counted in at most {schema.groups_per_unit_max} groups"
        yield {
            "table_name": schema.table,
            "column_name": schema.unit,
            "kind": UNIT_KIND,
            "has_null": False,
            "can_be_key": False,
            "can_be_predicate": False,
            "levels": several,
        }


def _epsilon(units: int) -> float:
    """Units of 2**-40 as epsilon; exact, as no budget has more than 2**52 of them."""
    return float(Fraction(units, UNITS_PER_EPSILON))


_ROWS: Final[Mapping[str, Callable[[TableRecord], Iterator[Row]]]] = {
    "budgets": _budget_rows,
    "losses": _loss_rows,
    "history": _history_rows,
    "domains": _domain_rows,
}
