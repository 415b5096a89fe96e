"""Synthetic tables as text for people: price, result and provenance."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from proxy.cli.budget_text import after_cost
from proxy.cli.rendering import general, plain
from proxy.protocol import tacit_pb2

N_SHARES_SHOWN: Final = 40  # of a law; a file has all of them


def preview_table(reply: tacit_pb2.PreviewSyntheticReply) -> RenderableType:
    """One line per step, and the total price below."""
    shown = Table(header_style="bold")
    shown.add_column("step")
    shown.add_column("epsilon", justify="right")
    shown.add_column("tables", justify="right")
    for step in reply.steps:
        shown.add_row(plain(step.name), f"{step.epsilon:.6g}", str(step.n_tables))
    told = f"would spend at most epsilon {reply.epsilon:.6g}{after_cost(reply)}"
    return Group(shown, Text(told))


def created_text(made: tacit_pb2.SyntheticProgress) -> RenderableType:
    """The table that was made, its cost, and facts about it."""
    table = made.table
    unknown = [column.name for column in table.columns if column.unknown]
    lines = [
        f"Made {table.name}: {table.rows} rows of {len(table.columns)} columns, a table in SQL.",
        f"spent epsilon {table.epsilon_spent:.6g}{after_cost(made.receipt)}",
    ]
    if table.HasField("evaluation"):
        lines.append(f"Mean distance of pairs of columns: {_evaluated(table.evaluation)}.")
    if unknown:
        lines.append(f"Nothing is known of {', '.join(unknown)}: drawn uniformly from the levels.")
    if table.incomplete:
        lines.append(f"Less was bought than requested: {table.incomplete}")
    return Group(*map(plain, lines))


def tables_table(tables: Iterable[tacit_pb2.SyntheticTable]) -> Table:
    """One line per synthetic table."""
    shown = Table(header_style="bold")
    for heading in ("table", "of", "method", "rows", "epsilon spent", "made by", "made at"):
        is_number = heading in {"rows", "epsilon spent"}
        shown.add_column(heading, justify="right" if is_number else "left")
    for table in tables:
        spent = f"{table.epsilon_spent:.6g}"
        cells = (table.name, table.source, table.method, str(table.rows), spent)
        shown.add_row(*map(plain, (*cells, table.made_by, table.made_at)))
    return shown


def provenance_table(table: tacit_pb2.SyntheticTable) -> Table:
    """Everything in a synthetic table's record."""
    shown = Table(show_header=False)
    shown.add_column(style="bold")
    shown.add_column()
    columns = ", ".join(f"{column.name} {column.sql_type}" for column in table.columns)
    unknown = ", ".join(column.name for column in table.columns if column.unknown)
    for heading, text in (
        ("table", table.name),
        ("of", table.source),
        ("method", table.method),
        ("rows", str(table.rows)),
        ("columns", columns),
        ("epsilon requested, spent", f"{table.epsilon:.6g}, {table.epsilon_spent:.6g}"),
        ("delta", f"{table.delta:g}" if table.HasField("delta") else "-"),
        ("options", table.options),
        ("fitted to", table.model),
        ("nothing known of", unknown or "-"),
        ("evaluated", _evaluated(table.evaluation) if table.HasField("evaluation") else "-"),
        ("incomplete", table.incomplete or "-"),
        ("seed", str(table.seed)),
        ("made by", table.made_by),
        ("made at", f"{table.made_at}, {_made_after(table)}"),
    ):
        shown.add_row(heading, plain(text))
    return shown


def _made_after(table: tacit_pb2.SyntheticTable) -> str:
    """What there was to make it of: a private table has charges, a collection has answers."""
    if not table.HasField("respondents"):
        return f"after {table.n_charges} charge{'s' * (table.n_charges != 1)}"
    return f"of the answers of {table.respondents} respondent{'s' * (table.respondents != 1)}, free"


def _evaluated(found: tacit_pb2.SyntheticEvaluation) -> str:
    return (
        f"{found.estimate:.4f} +- {found.half_width:.4f} ({found.pairs} of {found.pairs_all} pairs)"
    )


def law_table(data: pa.Table, basis: tacit_pb2.SyntheticLawBasis) -> RenderableType:
    """The largest shares of a law, and how it was obtained below."""
    *columns, share = data.column_names
    shown = Table(header_style="bold")
    for name in columns:
        shown.add_column(plain(name))
    shown.add_column(share, justify="right")
    largest = data.sort_by([(share, "descending")]).slice(0, N_SHARES_SHOWN).to_pylist()
    for row in largest:
        shown.add_row(*(plain(general(row[name])) for name in columns), f"{row[share]:.4f}")
    lines = [_basis(basis), "No interval: the error of the model is unknown."]
    n_more = data.num_rows - len(largest)
    if n_more:
        lines.insert(0, f"and {n_more} more; a file has all of them")
    return Group(shown, *map(plain, lines))


def _basis(basis: tacit_pb2.SyntheticLawBasis) -> str:
    match basis.way:
        case "exact":
            return "The model's exact law."
        case "weighted":
            return f"The model's law, approximated by {basis.n_rows:.0f} effective draws."
        case _:
            return f"Counted among {basis.n_rows:.0f} rows of the table."
