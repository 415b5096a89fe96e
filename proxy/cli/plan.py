"""The command `tacit plan`: a file of statements, planned together by the server."""

from pathlib import Path
from typing import Annotated, TypeAlias

import pyarrow as pa
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import ConfigurationInvalid
from proxy.cli.budget_text import left_text
from proxy.cli.client import ReceivedPrice
from proxy.cli.rendering import general, plain
from proxy.protocol import tacit_pb2

BuyOption: TypeAlias = Annotated[
    bool,
    typer.Option("--buy", help="Measure the plan: spend its epsilon. Without it nothing is spent."),
]
FileArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="SELECT statements separated by semicolons, each optionally with its own OPTIONS.",
    ),
]


def statements_in(file: Path) -> str:
    """The text of a file of statements.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationInvalid(f"{file} cannot be read: {reason}.") from None


def plan_table(price: ReceivedPrice[tacit_pb2.PlanReply]) -> RenderableType:
    """One line per answer column; the notes and the total price below."""
    data, reply = price.data, price.reply
    shown = Table(header_style="bold")
    for field in data.schema:
        numeric = not pa.types.is_string(field.type)
        shown.add_column(
            plain(field.name.replace("_", " ")), justify="right" if numeric else "left"
        )
    for row in zip(*(column.to_pylist() for column in data.columns), strict=True):
        shown.add_row(*(plain(general(value)) for value in row))
    verb = "spent" if reply.bought else "would spend"
    told = (
        f"{verb} epsilon {reply.epsilon:.6g} on {reply.n_measurements} measurements; "
        f"{left_text(reply.budget)}"
    )
    return Group(shown, *(plain(f"note: {note}") for note in reply.notes), Text(told))
