"""The commands `tacit collection ...`: ask many people, each of whom randomises their answer.

A thin layer: campaigns are designed here, in public, and the server checks them; what a respondent
answers is randomised here as well, since `respond` runs on their own machine. Attributes are from a
file: TOML, with the levels of each. What a collection says is text on a terminal: a table of
shares, and what holds of them.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import grpc
import typer
from rich.table import Table

import local_dp
from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.answer_store import AnswersUnreadable, FileAnswers
from local_dp.campaign import Attribute, campaign_text
from local_dp.respondent import INTEGER_MAX, CampaignRefused, Given, NothingKept, Respondent
from proxy.cli.shared.client import ServerAddress, calling, responding
from proxy.cli.shared.files import not_written, write_bytes
from proxy.cli.shared.options import ConfidenceOption, asks_server
from proxy.cli.shared.rendering import console, plain
from proxy.collections.plan import designed_campaign, epsilon_units
from proxy.collections.tokens import new_token
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

EXAMPLE: Final = (
    'smokes = [false, true], a line for each attribute, and education = ["none", "..."]'
)


def attributes_in(path: Path) -> tuple[Attribute, ...]:
    """The attributes of a file, in its order.

    Raises
    ------
    InvalidRequest
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        found = tuple(
            Attribute(name, tuple(levels if isinstance(levels, list) else ()))
            for name, levels in content.items()
        )
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f"{path} does not hold attributes: {error}.", hint=f"Write {EXAMPLE}."
        ) from None
    if not found:
        raise InvalidRequest(f"{path} holds no attributes.", hint=f"Write {EXAMPLE}.")
    return found


GAP_SAID = 0.001  # of a logarithm: less makes no difference to anybody


def shares_table(names: Sequence[str], found: tacit_pb2.EstimateCollectionReply) -> Table:
    """The share of each cell; with intervals, where shares have some."""
    shown = Table(header_style="bold")
    for heading in names:
        shown.add_column(plain(heading))
    is_likeliest = found.HasField("basis")
    shown.add_column("likeliest share" if is_likeliest else "share", justify="right")
    if not is_likeliest:
        shown.add_column(f"{found.confidence:g} interval")
        shown.add_column("found by")
    for cell in found.cells:
        more = [] if is_likeliest else [f"{cell.low:.4f} to {cell.high:.4f}", cell.method]
        shown.add_row(*(plain(_level_text(one)) for one in cell.levels), f"{cell.share:.4f}", *more)
    return shown


def shares_notes(found: tacit_pb2.EstimateCollectionReply) -> Iterator[str]:
    """What is said below the table."""
    if found.HasField("basis"):
        basis = found.basis
        yield (
            f"The likeliest shares by the {basis.answers} answers to "
            f"{', '.join(basis.combination)}. Small ones are biased, so none has an interval."
        )
        if basis.likelihood_gap >= GAP_SAID:
            yield (
                "The search has not converged: other shares may be likelier, by a factor of at "
                f"most exp({basis.likelihood_gap:.3g})."
            )
    elif found.HasField("half_width_together"):
        yield (
            f"All of them at once are within {found.half_width_together:.4f} of the truth "
            f"({found.confidence:g})."
        )
    yield f"{found.respondents} respondents. Free."


def _level_text(written: str) -> str:
    """A level as it is read: texts without their quotes."""
    level = json.loads(written)
    return level if isinstance(level, str) else written


PAGE_MODULES: Final = (
    "answer_store.mjs",
    "draws.mjs",
    "respondent.mjs",
    "taking_part.mjs",
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Ask many people, each of whom randomises their answer before it leaves their device.",
    epilog="Start with: tacit collection create survey --attributes survey.toml --epsilon 1",
)

NameArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help=("The collection's name."))
]
AttributesOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="A TOML file: a line for each attribute, with a list of its levels."
    ),
]
SizeOption: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="How many attributes are answered together, as one cell."
    ),
]
RespondentEpsilon: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NUMBER", help=("The most epsilon that each respondent loses, of their own.")
    ),
]


@app.command(epilog="Example: tacit collection create survey --attributes survey.toml --epsilon 1")
@asks_server
def create(  # noqa: PLR0913, PLR0917 - one parameter per option
    name: NameArgument,
    attributes: AttributesOption,
    epsilon: RespondentEpsilon,
    respondents: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most respondents that may answer.")
    ] = 100_000,
    size: SizeOption = 2,
    answers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Combinations that each answers; epsilon is divided by it."
        ),
    ] = 1,
    by_invitation: Annotated[
        bool,
        typer.Option(
            "--by-invitation", help="Count only tokens that `tacit collection invite` made."
        ),
    ] = False,
    *,
    server: ServerAddress,
) -> None:
    """Open a collection. No table's budget is spent.

    Every pair of attributes is asked about together, and of larger combinations the fewest that
    cover all pairs. Each respondent draws one by chance. How they randomise is fixed from now on.
    """
    campaign = designed_campaign(
        name, attributes_in(attributes), epsilon=epsilon, size=size, n_answered=answers
    )
    request = tacit_pb2.CreateCollectionRequest(
        campaign=campaign_text(campaign), respondents_max=respondents, by_invitation=by_invitation
    )
    with calling(server) as stub:
        made = stub.CreateCollection(request, metadata=server.metadata)
    n = len(campaign.combinations)
    typer.echo(
        f"{made.name} is open for {made.respondents_max} respondents, each at epsilon "
        f"{made.epsilon:.6g} of their own: {n} combination{'s' * (n > 1)}, campaign {made.digest}."
    )


@app.command(epilog="Example: tacit collection invite survey -n 200 -o tokens.txt")
@asks_server
def invite(
    name: NameArgument,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many tokens to make.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help=("Where to write the tokens, one on each line.")
        ),
    ],
    *,
    server: ServerAddress,
) -> None:
    """Make tokens to hand out, for a collection by invitation. The server keeps none of them."""
    request = tacit_pb2.InviteRespondentsRequest(name=name, n=n)
    with calling(server) as stub:
        tokens = stub.InviteRespondents(request, metadata=server.metadata).tokens
    try:
        output.touch(mode=0o600)
        output.write_text("".join(f"{one}\n" for one in tokens))
    except OSError as error:
        raise not_written(output, error) from None
    typer.echo(f"Wrote {output}: {len(tokens)} tokens, each for one answer.")


@app.command("list", epilog="Example: tacit collection list")
@asks_server
def list_collections(*, server: ServerAddress) -> None:
    """List the collections that you may read."""
    with calling(server) as stub:
        request = tacit_pb2.ListCollectionsRequest()
        found = stub.ListCollections(request, metadata=server.metadata).collections
    shown = Table(header_style="bold")
    for heading in ("collection", "state", "who answers"):
        shown.add_column(heading)
    for heading in ("respondents", "at most", "epsilon of each"):
        shown.add_column(heading, justify="right")
    for one in found:
        state, who = (
            "closed" if one.closed else "open",
            "invited" if one.by_invitation else "anybody",
        )
        numbers = (str(one.respondents), str(one.respondents_max), f"{one.epsilon:.6g}")
        shown.add_row(plain(one.name), state, who, *numbers)
    console().print(shown)


@app.command("close", epilog="Example: tacit collection close survey")
@asks_server
def close_collection(name: NameArgument, *, server: ServerAddress) -> None:
    """Take no further answers."""
    with calling(server) as stub:
        request = tacit_pb2.CloseCollectionRequest(name=name)
        closed = stub.CloseCollection(request, metadata=server.metadata)
    typer.echo(f"{closed.name} is closed with {closed.respondents} answers.")


@app.command(epilog="Example: tacit collection show survey --by education,smokes")
@asks_server
def show(
    name: NameArgument,
    by: Annotated[
        str, typer.Option("--by", metavar="A,B,..", help="Attributes that were asked together.")
    ],
    confidence: ConfidenceOption = None,
    likeliest: Annotated[
        bool,
        typer.Option(
            "--likeliest", help="The likeliest shares: none is below 0, and none has an interval."
        ),
    ] = False,
    *,
    server: ServerAddress,
) -> None:
    """Show the share of respondents in each cell, with intervals. Free.

    Estimates are unbiased, so that a small share may be below 0. The likeliest ones are not.
    """
    names = sorted({one.strip() for one in by.split(",") if one.strip()})
    request = tacit_pb2.EstimateCollectionRequest(
        name=name, attributes=names, confidence=confidence, likeliest=likeliest
    )
    with calling(server) as stub:
        found = stub.EstimateCollection(request, metadata=server.metadata)
    console().print(shares_table(names, found))
    for line in shares_notes(found):
        console().print(plain(line), soft_wrap=True)


@app.command(epilog="Example: tacit collection respond survey --row row.json --epsilon-max 2")
@asks_server
def respond(  # noqa: PLR0913 - one parameter per option
    name: NameArgument,
    row: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Your true answers: a JSON object of attributes and levels."
        ),
    ],
    epsilon_max: Annotated[
        str,
        typer.Option(
            metavar="NUMBER", help=("The most epsilon that all your answers may lose together.")
        ),
    ],
    store: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help=("Where your answers are kept, so that they can be sent again.")
        ),
    ] = Path("tacit-answers.json"),
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", help="Your token, if the collection is by invitation."),
    ] = None,
    *,
    server: ServerAddress,
) -> None:
    """Answer a collection: the campaign is checked here, and the answer randomised here.

    Your true answers stay on this machine. Answering again sends the same answer again, which
    counts once. An answer that is not asked about is sent as one that is, by chance: you are told.
    """
    respondent = Respondent(FileAnswers(store), epsilon_units_max=epsilon_units(epsilon_max))
    truth = _row_in(row)
    with responding(server) as stub:
        first = tacit_pb2.GetAssignmentRequest(name=name, token=token or new_token())
        try:
            try:
                campaign = stub.GetAssignment(first).campaign
                given = respondent.answer(campaign, truth, token or "")
            except grpc.RpcError as late:
                given = _given_before(stub, first, respondent, token or "", late)
        except CampaignRefused as error:
            raise InvalidTarget(f"Nothing was answered: {error}.") from None
        except (AnswersUnreadable, ValueError, OSError) as error:
            raise InvalidRequest(f"Nothing was answered: {error}.") from None
        reply = stub.SubmitAnswer(
            tacit_pb2.SubmitAnswerRequest(name=name, token=given.token, answer=given.answer)
        )
    before = " It was counted before." if reply.counted_before else ""
    typer.echo(f"Your randomised answer to {name} is counted.{before}")
    for remark in given.remarks:
        typer.echo(f"WARNING: {remark}", err=True)


def _given_before(
    stub: tacit_pb2_grpc.RespondentsStub,
    first: tacit_pb2.GetAssignmentRequest,
    respondent: Respondent,
    token: str,
    late: grpc.RpcError,
) -> Given:
    """The answer of a respondent who never heard whether it was counted.

    Anyone who gave none is too late, and nothing is drawn for them.
    """
    if late.code() is not grpc.StatusCode.INVALID_ARGUMENT:
        raise late
    first.for_kept = True
    try:
        return respondent.kept(stub.GetAssignment(first).campaign, token)
    except (grpc.RpcError, NothingKept):
        raise late from None


@app.command(epilog="Example: tacit collection page site")
def page(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help=("The folder of the page; it is created if it is missing.")
        ),
    ],
) -> None:
    """Write the modules with which a web page answers collections. Needs no server.

    They check and randomise in the respondent's browser: serve them from where respondents trust.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from None
    for name in PAGE_MODULES:
        write_bytes(folder / name, resources.files(local_dp).joinpath(name).read_bytes())
        typer.echo(f"Wrote {folder / name}")


def _row_in(path: Path) -> dict[str, str | int | bool | None]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_int=_number)
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise InvalidRequest(
            f"{path} does not hold a row.", hint='Write it like {"education": "school"}.'
        )
    return found


def _number(digits: str) -> float:
    """A whole number; one beyond every level is none, and no reason to be refused for."""
    return int(digits) if len(digits) <= len(str(-INTEGER_MAX)) else float(digits)
