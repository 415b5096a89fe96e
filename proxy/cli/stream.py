"""The commands `tacit stream ...`: who came, releases of several servers added up, and plans.

Streams are created, asked and dropped in SQL, by `tacit query`.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from accountant.ledger.streams import N_PREDICATES_MAX
from cube.exponential import EPSILON_MAX
from cube.refusals import ConfigurationInvalid, InvalidRequest, InvalidTarget, TooLarge
from proxy.api.requests import exact_epsilon
from proxy.cli.shared.client import ServerAddress, calling
from proxy.cli.shared.files import check_folder, write_bytes
from proxy.cli.shared.options import TableOrJson, TableOrJsonOption, asks_server
from proxy.cli.shared.rendering import console, plain, print_text
from proxy.protocol import tacit_pb2
from proxy.reporting.report import drawn_with_matplotlib
from streams import ReleasedCount, VisitEstimate, merged, release_in
from streams.mechanism import EPSILON_MIN
from streams.merging import FILE_BYTES_MAX
from streams.planning import SamplePlan, sample_for_error, sample_for_half_width
from streams.visit_estimates import ReleasedVisits, at_least, visits_up_to

N_IDS_IN_MESSAGE: Final = 2**16
ID_MAX: Final = 2**63 - 1
ID: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
UNIVERSE_MAX: Final = 2**24  # of a plan by the exact law, which takes seconds there
STANDARD_INPUT: Final = Path("-")

app = typer.Typer(
    no_args_is_help=True,
    help="Tell a server who came, add up releases of several servers, and plan a stream. Streams "
    "are created, asked and dropped in SQL: `tacit query`.",
)


@app.command(epilog="Example: tacit stream observe visits ids.txt")
@asks_server
def observe(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM", help=("The stream's name, as in CREATE STREAM."))
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Ids, one a line; - for the standard input.")
    ] = STANDARD_INPUT,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="PREDICATE", help="A predicate that held for them. May be repeated."),
    ] = None,
    left: Annotated[
        bool, typer.Option("--left", help="They left; for a stream declared with departures.")
    ] = False,
    server: ServerAddress,
) -> None:
    """Note users who arrived at a stream, or who left.

    All of them are on the server's disk once this ends. If it fails, do it again: a user counts
    once, however often they come. In a stream that counts visits, each id is a visit.
    """
    ids = _ids(file)
    with calling(server) as stub:
        stub.Observe(_messages(stream, ids, where or [], left=left), metadata=server.metadata)


@app.command(epilog="Example: tacit stream export visits --epoch 2026-11-24 -o north.json")
@asks_server
def export(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM", help="The stream's name, as in CREATE STREAM.")
    ],
    *,
    epoch: Annotated[
        str, typer.Option(metavar="NAME", help="The epoch; the last one that is over, if left out.")
    ] = "",
    output: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write it. Replaced.")
    ],
    server: ServerAddress,
) -> None:
    """Write the release of an epoch to a file, for `tacit stream merge`. Free.

    It has the noisy numbers that the server answers with, and no state. Of a stream whose epochs
    do not end by the clock, this ends the epoch, as the first query does. Of the same epoch the
    file is always the same.
    """
    check_folder(output)
    asked = tacit_pb2.ExportStreamRequest(stream=stream, epoch=epoch)
    with calling(server) as stub:
        reply = stub.ExportStream(asked, metadata=server.metadata)
    found = release_in(reply.content, "What the server sent")
    write_bytes(output, reply.content)
    console().print(plain(f"Wrote the release of {found.epoch} to {output}."))


@app.command(epilog="Example: tacit stream merge north.json south.json")
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="What `tacit stream export` wrote, of each server."),
    ],
    *,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="The confidence of the interval.")
    ] = 0.95,
    people_overlap: Annotated[
        bool, typer.Option("--people-overlap", help="Users may have come to several servers.")
    ] = False,
    output: TableOrJsonOption = TableOrJson.TABLE,
) -> None:
    """How many users came to any of several servers, if none came to two. Free; asks no server.

    The streams have to be declared alike, with the same sample if not everybody has a bit. If they
    count visits, it also says how many users came twice or more, and so on, and the sum of visits.
    """
    if people_overlap:
        raise InvalidRequest(
            "Users who came to several servers cannot be counted once from releases.",
            hint="That needs noisy bits of each user from every server, with far more noise, and "
            "does not exist yet. Without --people-overlap, they count once for each server.",
        )
    names = [str(one) for one in files]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"{twice} is named twice.", hint="Name one file of each server.")
    releases = {name: release_in(_content(Path(name)), name) for name in names}
    rows = [
        row
        for where, count in merged(releases).items()
        for row in _merged_rows(where, count, confidence)
    ]
    first = next(iter(releases.values()))
    if output is TableOrJson.JSON:
        found = {"epoch": first.epoch, "servers": len(names), "epsilon": first.epsilon}
        print_text(json.dumps(found | {"confidence": confidence, "counts": rows}))
        return
    shown = Table(header_style="bold")
    shown.add_column("users")
    for heading in ("estimate", "low", "high"):
        shown.add_column(heading, justify="right")
    for row in rows:
        counted = "visits" if "visits" in row else "users"
        numbers = (f"{row[key]:.0f}" for key in (counted, "low", "high"))
        shown.add_row(plain(_label(row)), *numbers)
    console().print(shown)
    console().print(
        plain(
            f"Epoch {first.epoch} of {len(names)} servers, at a confidence of {confidence:g}. A "
            f"user loses epsilon {first.epsilon:.6g} at each server they came to. A user who came "
            "to two of the servers counts twice."
        )
    )


def _merged_rows(
    where: str | None, found: ReleasedCount | ReleasedVisits, confidence: float
) -> Iterator[dict[str, Any]]:
    """The users who came; of visits, also those who came so often, and the sum of visits."""
    if isinstance(found, ReleasedCount):
        yield _row_of(found, confidence, "users", where=where)
        return
    levels = found.mechanism.levels
    for k in range(1, levels + 1):
        users = found.estimate(at_least(k, levels))
        yield _row_of(users, confidence, "users", where=where, at_least=k)
    visits = found.estimate(visits_up_to(levels, levels))
    yield _row_of(visits, confidence, "visits", where=where, up_to=levels)


def _row_of(
    estimate: ReleasedCount | VisitEstimate, confidence: float, counted: str, **of: object
) -> dict[str, Any]:
    if isinstance(estimate, VisitEstimate) and estimate.is_too_long:
        raise TooLarge(
            f"The law of these {counted} is too long to compute an interval with.",
            hint="Merge fewer servers, and add up what several merges say.",
        )
    interval = estimate.interval(confidence)
    return {**of, counted: estimate.n_users, "low": interval.low, "high": interval.high}


def _label(row: Mapping[str, Any]) -> str:
    """What a row counts."""
    of = "all" if row["where"] is None else str(row["where"])
    if "visits" in row:
        return f"{of}: visits, at most {row['up_to']} of each"
    return of if row.get("at_least", 1) == 1 else f"{of}: {row['at_least']} visits or more"


def _content(file: Path) -> bytes:
    """The content of a file, or a byte more than a release can have."""
    try:
        with file.open("rb") as opened:
            return opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationInvalid(f"{file} cannot be read: {error.strerror}.") from None


@app.command(epilog="Example: tacit stream plan --universe 100000 --epsilon 1 --half-width 3000")
def plan(  # noqa: PLR0913 - one parameter per option
    *,
    universe: Annotated[
        int, typer.Option(min=1, max=UNIVERSE_MAX, help="The number of users there can be.")
    ],
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help=("The epsilon that an epoch may lose."))
    ],
    predicates: Annotated[
        int,
        typer.Option(
            min=0,
            max=N_PREDICATES_MAX,
            help=(
                "How many predicates the stream declares; each gets as large a part of epsilon "
                "as the count of all users."
            ),
        ),
    ] = 0,
    half_width: Annotated[
        float, typer.Option(help="How far the count may be from the true one, in users.")
    ],
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="The probability of staying within that.")
    ] = 0.95,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Also draw the half-width by the number of bits, as .svg. Replaces the file.",
        ),
    ] = None,
) -> None:
    """How many users of a universe need a bit, for a half-width. Asks no server.

    The exact law says how far a count is off if half of the universe comes, which is the worst. The
    theorem bounds it for every number, and needs several times as many bits.
    """
    exact = _epsilon(epsilon) / (1 + predicates)
    if exact < EPSILON_MIN:
        raise InvalidTarget(
            "Epsilon leaves too little for each predicate.",
            hint=(
                "The count of all users and each predicate need at least "
                f"1/{EPSILON_MIN.denominator}."
            ),
        )
    if not 0 < half_width < universe:
        raise InvalidTarget(
            "A half-width is above 0, and below the universe.", hint="As in --half-width 3000."
        )
    drawn = None if output is None else _drawing(output)
    found = sample_for_half_width(exact, half_width, confidence, universe)
    bound = sample_for_error(exact, half_width / universe, 1 - confidence, universe)
    shown = Table(header_style="bold")
    shown.add_column("by")
    for heading in ("bits", "reaches", "enough"):
        shown.add_column(heading, justify="right")
    shown.add_row("the exact law", *_row(found, f"{found.reached:.4g} users"))
    shown.add_row("the theorem", *_row(bound, f"beyond it with {bound.reached:.3g}"))
    console().print(shown)
    if output is not None and drawn is not None:
        write_bytes(output, drawn(exact, universe, confidence, half_width))
        console().print(plain(f"Wrote {output}."))


def _row(found: SamplePlan, reached: str) -> tuple[str, str, str]:
    return str(found.n_bits), reached, "yes" if found.is_enough else "no"


def _epsilon(text: str) -> Fraction:
    found = exact_epsilon("epsilon", text)
    if not EPSILON_MIN <= found <= EPSILON_MAX:
        raise InvalidTarget(
            f"The epsilon of a stream is from 1/{EPSILON_MIN.denominator} to {EPSILON_MAX}.",
            hint="As in --epsilon 1.",
        )
    return found


def _drawing(output: Path) -> Callable[[Fraction, int, float, float], bytes]:
    """The function that draws; refused before anything is computed if it cannot."""
    if output.suffix.lower() != ".svg":
        raise ConfigurationInvalid(f"The name {output} does not end in .svg.", hint="Rename it.")
    check_folder(output)
    with drawn_with_matplotlib(", or leave out --out", what="A drawing of a plan"):
        from proxy.cli.shared.charts import stream_svg as plan_svg  # noqa: PLC0415 - needs matplotlib

        return plan_svg


def _ids(file: Path) -> NDArray[np.int64]:
    """The ids of a file, all of them read before any is sent."""
    try:
        if file == STANDARD_INPUT:
            lines = sys.stdin.read().splitlines()
        else:
            lines = file.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise ConfigurationInvalid(f"{file} cannot be read: {error.strerror}.") from None
    found = [_id(place, line) for place, line in enumerate(lines, start=1) if line.strip()]
    return np.array(found, dtype=np.int64)


def _messages(
    stream: str, ids: NDArray[np.int64], where: list[str], *, left: bool
) -> Iterator[tacit_pb2.ObserveRequest]:
    for begin in range(0, max(1, ids.size), N_IDS_IN_MESSAGE):
        some = ids[begin : begin + N_IDS_IN_MESSAGE].tolist()
        yield tacit_pb2.ObserveRequest(stream=stream, ids=some, left=left, where=where)


def _id(place: int, line: str) -> int:
    """The id in a line. Which text it was is not said: it may be somebody's."""
    found = int(line) if ID.fullmatch(line.strip()) else ID_MAX + 1
    if not -ID_MAX - 1 <= found <= ID_MAX:
        raise InvalidRequest(
            f"Line {place} is not a whole number of 64 bits.", hint="Write one id a line."
        )
    return found
