"""The command `tacit plan-collection`: how many respondents, how precise, at which epsilon.

From public numbers alone, before anybody is asked. It needs no server.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from cube.refusals import ConfigurationInvalid
from local_dp.views import PAIR
from proxy.cli.collection import AttributesOption, SizeOption
from proxy.cli.collection_attributes import attributes_in
from proxy.cli.files import check_folder, write_bytes
from proxy.cli.rendering import console, plain
from proxy.collections.plan import CONFIDENCE, Plan, made_plan
from proxy.reporting.make import drawn_with_matplotlib

N_ROWS_SHOWN_MAX: Final = 40
TELLS_NOTHING: Final = (
    "That tells nothing: a share is from 0 to 1. Plan for more respondents, or a larger epsilon."
)

app = typer.Typer()


@app.command(
    epilog="Example: tacit plan-collection --attributes survey.toml --epsilon 1 --half-width 0.03"
)
def plan_collection(  # noqa: PLR0913, PLR0917 - one parameter per option
    attributes: AttributesOption,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="What each respondent loses at most.")
    ] = None,
    respondents: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many will answer.")
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            "--half-width", metavar="SHARE", help="How far the share of a cell may be off."
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="NUMBER", help="With which probability it is not.")
    ] = CONFIDENCE,
    share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="What a typical cell has, if you know it: the plan is for that, "
            "and not for the least favourable share.",
        ),
    ] = None,
    size: SizeOption = PAIR,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also draw it, into a file that ends in .svg."),
    ] = None,
) -> None:
    """Plan a collection: give two of --epsilon, --respondents and --half-width.

    Nobody is asked, and nothing is spent. Half-widths hold whatever the shares of cells
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
        from proxy.cli.collection_chart import plan_svg  # noqa: PLC0415 - needs matplotlib

        return plan_svg
