"""The command `tacit plan-robustness`: whether noise would turn a dependence into none, or has.

From a file of counts that are public, made up, or released already. It needs no server.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.table import Table

from cube.refusals import ConfigurationInvalid, InvalidRequest, TooLarge
from local_dp.channels.channel import Floats
from local_dp.robustness import Flip
from proxy.cli.files import check_folder, write_bytes
from proxy.cli.rendering import console
from proxy.collections.robustness import LEVEL, NoiseKind, NoisyTest
from proxy.reporting.make import drawn_with_matplotlib

N_BYTES_MAX: Final = 2**16  # 256 counts of 200 digits
HINT: Final = "Write counts separated by commas, a line for each row of the table."
ALL_ANSWER: Final = (
    "Respondents' noise is as if all of them had been asked about this table. Where each is asked "
    "about one pair of several, it is larger: say with --answers how many are asked about this one."
)
WHOSE = {NoiseKind.CENTRAL: "a server's", NoiseKind.LOCAL: "the respondents'"}

app = typer.Typer()


@app.command(
    epilog="Example: tacit plan-robustness counts.csv --epsilon 0.5, of a file with 538,462 on one "
    "line and 462,538 on the next"
)
def plan_robustness(  # noqa: PLR0913, PLR0917 - options of a command
    counts: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Counts separated by commas, a line for each row; whole, unless released.",
        ),
    ],
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="Of the noise.")],
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
    level: Annotated[
        float, typer.Option(metavar="NUMBER", help="How often the test rejects what is true.")
    ] = LEVEL,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also draw it, into a file that ends in .svg."),
    ] = None,
) -> None:
    """How often noise changes what a test of dependence says of a table.

    The test is the usual one (likelihood ratio), which knows nothing of noise. Nothing is spent. If
    it changes its mind often, use DP_CHI2_TEST, which knows the noise, or more epsilon.
    """
    draw = None if out is None else _drawer(out)
    test = NoisyTest.at(counts_in(counts), epsilon, level, answers)
    if released is None:
        flips = {kind: test.flip(kind) for kind in NoiseKind}
        console().print(flips_table(flips))
        typer.echo(_outcome(flips[NoiseKind.CENTRAL], "Without noise,"))
    else:
        doubt = test.doubt(released)
        typer.echo(_outcome(doubt, "Of the release,"))
        typer.echo(
            f"Of the table without noise it would say otherwise with probability "
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
        raise TooLarge(f"{path} has more than {N_BYTES_MAX} bytes: it is no table of counts.")
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is no text in UTF-8.", hint=HINT) from None
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
        f"{of_which} the test finds {what}: its statistic is {flip.statistic:.4g}, and "
        f"{flip.critical:.4g} is critical."
    )


def _drawer(out: Path) -> Callable[[NoisyTest, NoiseKind | None], bytes]:
    """The function that draws; refused first if it cannot."""
    if out.suffix.lower() != ".svg":
        raise ConfigurationInvalid(f"The name {out} does not end in .svg.")
    check_folder(out)
    with drawn_with_matplotlib("", what="A drawing of a plan"):
        from proxy.cli.robustness_chart import doubt_svg, flips_svg  # noqa: PLC0415 - matplotlib

    return lambda test, kind: flips_svg(test) if kind is None else doubt_svg(test, kind)
