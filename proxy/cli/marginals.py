"""The command `tacit marginals`: tables of counts that agree, shown or written to a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa
import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner.workload import Consistency
from proxy.cli.shared.client import ServerAddress, calling, ipc_table, target_of
from proxy.cli.shared.files import table_writer
from proxy.cli.shared.options import (
    ConfidenceOption,
    HalfWidthOption,
    SpreadsheetOption,
    asks_server,
)
from proxy.cli.shared.rendering import console, general, left_text, plain, to_width
from proxy.protocol import tacit_pb2

N_ROWS_SHOWN_MAX: Final = 40  # of each table; a file has all rows
TOTAL: Final = "()"


app = typer.Typer()


@app.command(epilog='Example: tacit marginals adult --sets "sex,race;age" --epsilon 0.5')
@asks_server
def marginals(  # noqa: PLR0913, PLR0917 - one parameter per option
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The private table.")],
    sets: Annotated[
        str,
        typer.Option(
            metavar="SETS",
            help=f"Columns separated by commas, sets by semicolons; {TOTAL} for the total.",
        ),
    ],
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Epsilon to divide among the tables for the least total error; 0 to use only "
            "what is known. With --half-width, the most that it may cost.",
        ),
    ] = None,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    consistency: Annotated[
        Consistency,
        typer.Option(
            help="Whether tables agree (exact), are also nowhere negative, or come from one joint "
            "table."
        ),
    ] = Consistency.EXACT,
    total: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The number of records, if it is public.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write one long table; .parquet or .csv."
        ),
    ] = None,
    spreadsheet: SpreadsheetOption = False,
    *,
    server: ServerAddress,
) -> None:
    """Count by several sets of columns, in tables that agree where they overlap.

    What the history knows is used; only what is missing is bought, and agreement is free.
    """
    write = None if output is None else table_writer(output, is_for_spreadsheets=spreadsheet)
    is_budget = epsilon is not None and half_width is None
    request = tacit_pb2.MarginalsRequest(
        table=table,
        sets=[tacit_pb2.AttributeSet(columns=one) for one in parsed_sets(sets)],
        target=target_of(half_width, confidence, None if is_budget else epsilon),
        budget=epsilon if is_budget else None,
        consistency=consistency.value,
        public_total=total,
    )
    with Console(stderr=True).status("asking") as status:
        data, summary = ask(server, request, status.update)
    if output is None or write is None:
        console().print(shown_marginals(data))
    else:
        write(_flat(data) if output.suffix.lower() == ".csv" else data)
        console().print(plain(f"Wrote {data.num_rows} rows to {output}."))
    console().print(summary_text(summary))


def parsed_sets(text: str) -> list[list[str]]:
    """The sets of columns in a text.

    >>> parsed_sets("sex, race; age; ()")
    [['sex', 'race'], ['age'], []]
    """
    sets = [one.strip() for one in text.split(";") if one.strip()]
    return [
        [] if one == TOTAL else [name.strip() for name in one.split(",") if name.strip()]
        for one in sets
    ]


def ask(
    server: ServerAddress, request: tacit_pb2.MarginalsRequest, told: Callable[[str], None]
) -> tuple[pa.Table, tacit_pb2.MarginalsSummary]:
    """The tables and facts about them; each step is reported when it begins."""
    pieces: list[bytes] = []
    summary = tacit_pb2.MarginalsSummary()
    with calling(server) as stub:
        for reply in stub.Marginals(request, metadata=server.metadata):
            pieces.append(reply.ipc)
            if reply.step:
                told(reply.step)
            if reply.HasField("summary"):
                summary = reply.summary
    return ipc_table(b"".join(pieces)), summary


def shown_marginals(data: pa.Table) -> RenderableType:
    """A table for each set of columns, cut if it is long."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in data.to_pylist():
        by_number.setdefault(row["marginal"], []).append(row)
    return Group(*(_shown(rows) for rows in by_number.values()))


def summary_text(summary: tacit_pb2.MarginalsSummary) -> Text:
    """The cost of the tables, and facts about them."""
    spent = f"epsilon spent {summary.epsilon_spent:.6g}; {left_text(summary.budget)}"
    moved = ""
    if summary.HasField("misfit"):
        moved = f"; cells moved by {summary.misfit:.2g} of their noise to agree"
    return plain(" ".join([f"{spent}{moved}.", *summary.notes]))


def _shown(rows: list[dict[str, Any]]) -> RenderableType:
    columns = rows[0]["columns"]
    shown = Table(header_style="bold", title=plain(" x ".join(columns) or "total"))
    for name in columns:
        shown.add_column(plain(name))
    for name in ("count", "interval"):
        shown.add_column(name, justify="right")
    shown.add_column("source")
    # As many digits in each row as the widest interval needs, since others are clipped.
    widths = [row["high"] - row["low"] for row in rows if row["low"] is not None]
    widest = max(widths, default=1.0)
    for row in rows[:N_ROWS_SHOWN_MAX]:
        value, low, high = (to_width(row[name], 0.0, widest) for name in ("value", "low", "high"))
        interval = "none" if row["low"] is None else f"[{low}, {high}]"
        texts = (*(general(key) for key in row["keys"]), value, interval, row["source"])
        shown.add_row(*map(plain, texts))
    if len(rows) > N_ROWS_SHOWN_MAX:
        shown.caption = f"and {len(rows) - N_ROWS_SHOWN_MAX} more; -o FILE writes them all"
    return shown


def _flat(data: pa.Table) -> pa.Table:
    """Lists as JSON text, since CSV has none."""
    for name in ("columns", "keys"):
        texts = [json.dumps(one, ensure_ascii=False) for one in data.column(name).to_pylist()]
        place = data.column_names.index(name)
        data = data.set_column(place, name, pa.array(texts, pa.string()))
    return data
