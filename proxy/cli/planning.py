"""The commands `tacit plan-collection` and `tacit plan-robustness`, which need no server.

A plan for a collection says how many respondents, how precise, at which epsilon: from public
numbers alone, before anybody is asked.

Robustness is whether noise would turn a dependence into none, or has: from a file of counts that
are public, made up, or released already.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.table import Table

from cube.refusals import ConfigurationInvalid, InvalidRequest, TooLarge
from local_dp.campaign import PAIR
from local_dp.channels.channel import Floats
from local_dp.robustness import Flip
from proxy.cli.collection import AttributesOption, SizeOption, attributes_in
from proxy.cli.shared.files import check_folder, write_bytes
from proxy.cli.shared.rendering import console, plain
from proxy.collections.plan import (
    CONFIDENCE,
    LEVEL,
    NoiseKind,
    NoisyTest,
    Plan,
    made_plan,
    stacked_tables,
)
from proxy.reporting.report import drawn_with_matplotlib

N_ROWS_SHOWN_MAX: Final = 40
TELLS_NOTHING: Final = (
    "Such an interval says nothing: a share is from 0 to 1. Plan for more respondents, or a "
    "larger epsilon."
)

app = typer.Typer()


@app.command(
    epilog="Example: tacit plan-collection --attributes survey.toml --epsilon 1 --half-width 0.03"
)
def plan_collection(  # noqa: PLR0913, PLR0917 - one parameter per option
    attributes: AttributesOption,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help=("The most epsilon that each respondent loses.")),
    ] = None,
    respondents: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many will answer.")
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            "--half-width",
            metavar="SHARE",
            help=("The half-width of a cell's share: how far it may be from the truth."),
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(metavar="NUMBER", help=("The probability of staying within the half-width.")),
    ] = CONFIDENCE,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help=(
                "The share of a typical cell, if you know it; without it, the plan is for the "
                "least favourable share."
            ),
        ),
    ] = None,
    size: SizeOption = PAIR,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also draw it, into a file that ends in .svg."),
    ] = None,
) -> None:
    """Plan a collection: give two of --epsilon, --respondents and --half-width.

    No one is asked, and nothing is spent. Half-widths hold whatever the shares of cells
    are: they are those of the least favourable share, which is a large one. Small shares are more
    precise; with --share the plan is for cells of that share.
    """
    draw = None if out is None else _drawer(out)
    plan = made_plan(
        attributes_in(attributes),
        epsilon=epsilon,
        n_respondents=respondents,
        width=width,
        confidence=confidence,
        size=size,
        share=share,
    )
    console().print(plan_table(plan))
    of_what = "whatever they are" if share is None else f"of cells that have {share:g}"
    typer.echo(
        f"{plan.n_respondents} respondents at epsilon {float(plan.campaign.epsilon):.6g} each: "
        f"shares to within {plan.widest:.4g}, {of_what}, "
        f"each with probability {plan.confidence:g}."
    )
    if plan.widest >= 1:
        typer.echo(TELLS_NOTHING)
    if draw is not None and out is not None:
        write_bytes(out, draw(plan))
        typer.echo(f"Wrote {out}.")


def plan_table(plan: Plan) -> Table:
    """A line for each combination, the least precise first."""
    shown = Table(header_style="bold")
    shown.add_column("asked together")
    shown.add_column("channel")
    for heading in ("cells", "truth told", "answers", "half-width"):
        shown.add_column(heading, justify="right")
    places = sorted(range(len(plan.campaign.combinations)), key=lambda one: -plan.half_width(one))
    for place in places[:N_ROWS_SHOWN_MAX]:
        one = plan.campaign.combinations[place]
        numbers = (str(one.channel.n_cells), f"{plan.keep(place):.4g}", str(plan.n_answers(place)))
        names = plain(", ".join(one.scope))
        shown.add_row(names, plan.channel_name(place), *numbers, f"{plan.half_width(place):.4g}")
    return shown


def _drawer(out: Path) -> Callable[[Plan], bytes]:
    """The function that draws; refused first if it cannot."""
    if out.suffix.lower() != ".svg":
        raise ConfigurationInvalid(f"The name {out} does not end in .svg.")
    check_folder(out)
    with drawn_with_matplotlib("", what="A drawing of a plan"):
        from proxy.cli.shared.charts import collection_svg as plan_svg  # noqa: PLC0415 - needs matplotlib

        return plan_svg


N_BYTES_MAX: Final = 2**16  # 256 counts of 200 digits
HINT: Final = "Write counts separated by commas, a line for each row of the table."
ALL_ANSWER: Final = (
    "The respondents' noise is computed as if all of them were asked about this table. If each "
    "is asked about one pair of several, the noise is larger: say with --answers how many are "
    "asked about this one."
)
WHOSE = {NoiseKind.CENTRAL: "a server's", NoiseKind.LOCAL: "the respondents'"}

robustness = typer.Typer()


@robustness.command(
    epilog="Example: tacit plan-robustness counts.csv --epsilon 0.5, of a file with 538,462 on one "
    "line and 462,538 on the next"
)
def plan_robustness(  # noqa: PLR0913, PLR0917 - options of a command
    counts: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help=(
                "A file of counts separated by commas, a line for each row; whole numbers, "
                "unless they are a release."
            ),
        ),
    ],
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="The epsilon of the noise.")],
    released: Annotated[
        NoiseKind | None,
        typer.Option(help="The counts are a release with a server's, or with respondents' noise."),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many of the respondents are asked about these attributes together; without "
            "it, all of them. In most collections each is asked about one pair.",
        ),
    ] = None,
    given: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="The file has N tables of one size, one below the other: one for each value of a "
            "column that is given, as in DP_CHI2_TEST(a, b, GIVEN => c).",
        ),
    ] = 1,
    level: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help=("The level of the test: how often it rejects independence that holds."),
        ),
    ] = LEVEL,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also draw it, into a file that ends in .svg."),
    ] = None,
) -> None:
    """Show how often noise changes the result of a test of dependence.

    The test is the usual one (likelihood ratio), which knows nothing of noise; with --given, it
    adds up the tests of the given values. Nothing is spent. If
    it changes its mind often, use DP_CHI2_TEST, which knows the noise, or more epsilon.
    """
    draw = None if out is None else _robustness_drawer(out)
    test = NoisyTest.at(stacked_tables(counts_in(counts), given), epsilon, level, answers)
    if released is None:
        flips = {kind: test.flip(kind) for kind in NoiseKind}
        console().print(flips_table(flips))
        typer.echo(_outcome(flips[NoiseKind.CENTRAL], "Without noise,"))
    else:
        doubt = test.doubt(released)
        typer.echo(_outcome(doubt, "In the release,"))
        typer.echo(
            "On the table without noise the test would say otherwise with probability "
            f"{doubt.probability:.3g} (+- {doubt.standard_error:.2g}), if nothing else is known."
        )
    if answers is None and released is not NoiseKind.CENTRAL:
        typer.echo(ALL_ANSWER)
    if draw is not None and out is not None:
        write_bytes(out, draw(test, released))
        typer.echo(f"Wrote {out}.")


def flips_table(flips: dict[NoiseKind, Flip]) -> Table:
    """A line for each noise."""
    shown = Table(header_style="bold")
    shown.add_column("noise")
    shown.add_column("the test says otherwise", justify="right")
    shown.add_column("+-", justify="right")
    for kind, flip in flips.items():
        shown.add_row(WHOSE[kind], f"{flip.probability:.4f}", f"{flip.standard_error:.4f}")
    return shown


def counts_in(path: Path) -> Floats:
    """The table of a file.

    Raises
    ------
    InvalidRequest
    """
    try:
        with path.open("rb") as file:
            content = file.read(N_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > N_BYTES_MAX:
        raise TooLarge(
            f"{path} has more than {N_BYTES_MAX} bytes: it is too large for a table of counts."
        )
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8.", hint=HINT) from None
    rows = [
        [_count(path, (at, place), one) for place, one in enumerate(line.split(","), start=1)]
        for at, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if len({len(row) for row in rows}) != 1:
        raise InvalidRequest(f"{path} does not hold rows of one length.", hint=HINT)
    return np.array(rows)


def _count(path: Path, where: tuple[int, int], text: str) -> float:
    """A count. Which text stands there instead is not said: the file may be another one."""
    line, place = where
    if not text.strip():
        raise InvalidRequest(
            f"Line {line} of {path} has no count in place {place}.",
            hint="There may be a comma too many.",
        )
    try:
        return float(text)
    except ValueError:
        raise InvalidRequest(
            f"Line {line} of {path} has no number in place {place}.", hint=HINT
        ) from None


def _outcome(flip: Flip, of_which: str) -> str:
    what = "a dependence" if flip.is_dependent else "no dependence"
    return (
        f"{of_which} the test finds {what}: its statistic is {flip.statistic:.4g}, and the "
        f"critical value is {flip.critical:.4g}."
    )


def _robustness_drawer(out: Path) -> Callable[[NoisyTest, NoiseKind | None], bytes]:
    """The function that draws; refused first if it cannot."""
    if out.suffix.lower() != ".svg":
        raise ConfigurationInvalid(f"The name {out} does not end in .svg.")
    check_folder(out)
    with drawn_with_matplotlib("", what="A drawing of a plan"):
        from proxy.cli.shared.charts import doubt_svg, flips_svg  # noqa: PLC0415 - matplotlib

    return lambda test, kind: flips_svg(test) if kind is None else doubt_svg(test, kind)
