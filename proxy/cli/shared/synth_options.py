"""The options of commands that make synthetic tables."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class MethodOption(StrEnum):
    """How rows are made."""

    AUTO = "auto"
    PAIRWISE = "pairwise"
    PRIVBAYES = "privbayes"


NameArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="A synthetic table, like adult_1 or adult.adult_1.")
]
ModelArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A synthetic table, like adult_1 or adult.adult_1; or the file of a model, "
        "like adult.model.",
    ),
]
NewNameOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--name", metavar="NAME", help="Its name in SQL; if left out, the server chooses one."
    ),
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Also write the rows; the suffix .parquet or .csv sets the format. Replaces the file.",
    ),
]
RowsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="How many rows; if left out, the private table's estimated number."
    ),
]
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="The same seed draws the same rows from the same model."),
]
EpsilonOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NUMBER",
        help="The most that it may cost. 0: free, from what is known already.",
    ),
]

DeltaOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Measure with Gaussian noise, under the delta that the table's owner offers.",
    ),
]


class StructureChoice(StrEnum):
    """How a network of a federated table is learned."""

    STATISTICS = "statistics"
    VOTES = "votes"
    MODELS = "models"


class VotesChoice(StrEnum):
    """What a holder's vote weighs."""

    BY_SIZE = "by_size"
    ONE_EACH = "one_each"


class ClipChoice(StrEnum):
    """Who sets negative counts to 0."""

    COORDINATOR = "coordinator"
    HOLDERS = "holders"


class SmoothingChoice(StrEnum):
    """What is added to every count of a table."""

    NONE = "none"
    ONE = "one"
    DEVIATION = "deviation"


StructureOption: TypeAlias = Annotated[
    StructureChoice | None,
    typer.Option(
        help="privbayes on a federated table: tables of all sets of columns; holders vote for each "
        "arc; or holders' models are joined. Default votes.",
    ),
]
VotesOption: TypeAlias = Annotated[
    VotesChoice | None,
    typer.Option(help="votes: each weighs as much as its holder has rows, or 1. Default by_size."),
]
ClipOption: TypeAlias = Annotated[
    ClipChoice | None,
    typer.Option(
        help="statistics, votes: who sets negative counts to 0: the coordinator, in their sum, or "
        "each holder. Default coordinator.",
    ),
]
SmoothingOption: TypeAlias = Annotated[
    SmoothingChoice | None,
    typer.Option(
        help="statistics, votes: what is added to counts: nothing, 1, or half the deviation of "
        "their noise. Default deviation.",
    ),
]
PublicRowsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="statistics, votes: how many rows all holders have, if that is public.",
    ),
]


class HoldersChoice(StrEnum):
    """Which holders of a federated table have to answer."""

    ALL = "all"
    ANY = "any"


HoldersOption: TypeAlias = Annotated[
    HoldersChoice | None,
    typer.Option(
        help="A federated table: all holders have to answer, or the table is of the rows of those "
        "that can, and says so. Default all."
    ),
]
