"""The options that several commands share, with their help texts."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from cube.refusals import TacitError
from proxy.cli.shared.client import SERVER_VARIABLE, TOKEN_VARIABLE, ServerAddress
from proxy.cli.shared.failures import Declined, FailedInJson, Unreachable
from proxy.shared.address import DEFAULT_LISTEN

SqlArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="One SELECT of counts and sums, with WHERE, GROUP BY and arithmetic.", metavar="SQL"
    ),
]
OptionalSqlArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        help="One SELECT of counts and sums; if left out, a prompt asks for statements.",
        metavar="SQL",
        show_default=False,
    ),
]
HalfWidthOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER", help="How far the answer may be from the true value, up or down."
    ),
]
ConfidenceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER", help="The probability of staying within the half-width, such as 0.95."
    ),
]
RelativeOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        help="The half-width as a fraction of the answer, such as 0.05, in place of --half-width.",
    ),
]
AtLeastOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="With --relative: an answer smaller than this is treated as this large.",
    ),
]
FallbackOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help=(
            "What answers if the statement cannot be paid: history (the best that is known), "
            "model or none."
        ),
    ),
]
ParameterOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="VALUE",
        help="A value for a ? or $1 of the statement, in their order; repeat it for several. "
        "12.5, true, null and 2026-01-31 are what they look like; all else, and '12' in single "
        "quotes, is text.",
    ),
]
EpsilonOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="The most that this request may cost; it is refused if that is not enough.",
    ),
]


class OutputFormat(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    CSV = "csv"
    SPREADSHEET = "spreadsheet"
    JSON = "json"


class TableOrJson(StrEnum):
    """How figures are printed."""

    TABLE = "table"
    JSON = "json"


TableOrJsonOption: TypeAlias = Annotated[
    TableOrJson, typer.Option("--format", help="How to print the figures.")
]
FormatOption: TypeAlias = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        help="How to print the answer; spreadsheet is CSV in which text that would be a formula "
        "begins with '.",
    ),
]
SpreadsheetOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="In a .csv file, begin text that a spreadsheet would take for a formula with '.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The configuration that is served.")
]

_FILE: Final = Path | None
_SERVER_OPTIONS: Final[dict[str, Any]] = {
    "server": Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"The server; default: {SERVER_VARIABLE} in the environment, or {DEFAULT_LISTEN}.",
        ),
    ],
    "tls_ca": Annotated[
        _FILE, typer.Option(metavar="FILE", help="Use TLS, and trust this CA certificate (PEM).")
    ],
    "token_file": Annotated[
        _FILE,
        typer.Option(
            metavar="FILE",
            help=f"A file with your token; default: {TOKEN_VARIABLE} in the environment.",
        ),
    ],
    "tls_cert": Annotated[
        _FILE,
        typer.Option(metavar="FILE", help="Your certificate (PEM), if the server requires one."),
    ],
    "tls_key": Annotated[_FILE, typer.Option(metavar="FILE", help="Its private key (PEM).")],
}


def asks_server(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for reaching a server.

    On the command line they are options like any others; the command itself receives them as one
    keyword argument, ``server: ServerAddress``.
    """
    signature = inspect.signature(command)
    own = [one for one in signature.parameters.values() if one.name != "server"]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _SERVER_OPTIONS.items()
    ]

    @wraps(command)
    def run(**options: Any) -> None:
        chosen = {name: options.pop(name) for name in _SERVER_OPTIONS}
        server = ServerAddress.chosen(address=chosen.pop("server"), **chosen)
        command(**options, server=server)

    run.__annotations__ = {one.name: one.annotation for one in (*own, *shared)}
    vars(run)["__signature__"] = signature.replace(parameters=[*own, *shared])
    return run


def fails_in_json(command: Callable[..., None]) -> Callable[..., None]:
    """Show the errors of a command as JSON if its option ``output`` says JSON."""

    @wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except (TacitError, Declined, Unreachable) as error:
            if options["output"] is OutputFormat.JSON:
                raise FailedInJson(error) from None
            raise

    return run
