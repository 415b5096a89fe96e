"""The arguments that several commands share, and what their help says."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from proxy.cli_client import SERVER_VARIABLE
from proxy.config_server import DEFAULT_LISTEN

SqlArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="One SELECT of counts and sums, with WHERE, GROUP BY and arithmetic.", metavar="SQL"
    ),
]
HalfWidthOption: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="The answer may be off by this much, up or down."),
]
ConfidenceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="How surely it is not off by more, such as 0.95."),
]
EpsilonOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="The most this request may cost; it is refused if that is not enough.",
    ),
]
ServerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help=f"The server; else {SERVER_VARIABLE} in the environment, else {DEFAULT_LISTEN}.",
    ),
]
CaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca", metavar="FILE", help="Speak TLS, and trust this CA certificate (PEM)."
    ),
]
