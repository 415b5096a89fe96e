"""Statements as the command line is given them: files of many, planned together, and parameters.

Reads the file of `tacit plan`, prints the server's plan as a table, and guesses the types of
parameters from their texts.
"""

import datetime as dt
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import pyarrow as pa
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import ConfigurationInvalid
from proxy.cli.shared.client import ReceivedPrice
from proxy.cli.shared.rendering import general, left_text, plain
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


_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", re.ASCII)


def parameters_of(values: Sequence[str] | None) -> list[tacit_pb2.Parameter]:
    """The values of the option --param, in their order."""
    return [_parameter(value) for value in values or ()]


def _parameter(text: str) -> tacit_pb2.Parameter:  # noqa: PLR0911 - one for each type
    """A value by its looks; what stands between single quotes is text.

    >>> _parameter("12.5").decimal, _parameter("'12.5'").text
    ('12.5', '12.5')
    >>> _parameter("2026-01-31").date, _parameter("Oslo").text
    ('2026-01-31', 'Oslo')
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return tacit_pb2.Parameter(text=text[1:-1].replace("''", "'"))
    if text.lower() == "null":
        return tacit_pb2.Parameter()
    if text.lower() in ("true", "false"):
        return tacit_pb2.Parameter(boolean=text.lower() == "true")
    if _NUMBER.fullmatch(text):
        return tacit_pb2.Parameter(decimal=text)
    with suppress(ValueError):
        return tacit_pb2.Parameter(date=dt.date.fromisoformat(text).isoformat())
    with suppress(ValueError):
        return tacit_pb2.Parameter(timestamp=dt.datetime.fromisoformat(text).isoformat(sep=" "))
    return tacit_pb2.Parameter(text=text)
