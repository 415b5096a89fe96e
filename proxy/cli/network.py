"""The command `tacit network learn`: which columns of a table depend on which."""

import json
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import ConfigurationInvalid
from proxy.cli.client import ServerAddress
from proxy.cli.files import check_folder, write_bytes
from proxy.cli.network_sources import DEGREE_OF_ROWS, Search, Told, source_of
from proxy.cli.network_tables import chosen_columns, table_called
from proxy.cli.options import asks_server
from proxy.cli.rendering import console, plain
from proxy.reporting.make import drawn_with_matplotlib
from synthesis.networks.exact_search import N_COLUMNS_MAX
from synthesis.networks.learned import LearnedNetwork, Method, learned
from synthesis.networks.learned_text import network_dot, network_json
from synthesis.networks.score import BicScore

DEGREE_MAX: Final = 4

app = typer.Typer(no_args_is_help=True, help="Learn which columns of a table depend on which.")


@app.callback()
def _group() -> None:
    """Keep the name of the only command: typer would leave it out."""


@app.command(epilog="Example: tacit network learn adult --columns age,sex,income --epsilon 0.5")
@asks_server
def learn(  # noqa: PLR0913, PLR0917 - one parameter per option
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="A private table, a collection, or a synthetic table."
        ),
    ],
    columns: Annotated[
        str,
        typer.Option(
            metavar="A,B,..", help="The columns; if left out, every one that can be counted by."
        ),
    ] = "",
    epsilon: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="The most that counts of a private table may cost. 0: free, from what is known.",
        ),
    ] = "0",
    method: Annotated[
        Method,
        typer.Option(
            help="chow-liu: the tree of the strongest pairs; hill-climbing: arcs changed while "
            f"that helps; exact: the best of all, for at most {N_COLUMNS_MAX} columns."
        ),
    ] = Method.HILL_CLIMBING,
    degree: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=DEGREE_MAX,
            help="The most parents of a column; counts are then by one column more. Default 1, and "
            f"{DEGREE_OF_ROWS} for a synthetic table.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Also write the network; .svg is a drawing, .dot is for Graphviz, .json for "
            "programs. Replaces the file.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Draw the network, and open the drawing in a browser.")
    ] = False,
    *,
    server: ServerAddress,
) -> None:
    """Learn a Bayesian network of a table's columns.

    Of a private table, it is learned from noisy counts by pairs of columns, or by more with a
    higher degree. Those that are bought are remembered: SQL answers from them for free. Learning is
    free. An arc is there if it shows several times what noise and chance would on average, as many
    times as the logarithm of the number of rows that noise leaves; small counts show few.

    Of a collection, it is learned from what respondents answered, for free: columns have to be
    asked about together. Of a synthetic table, it is learned from the rows, for free, and is the
    network of its model.
    """
    writer = _writer(output) if output is not None else None
    draw = _drawing() if show else None
    found = table_called(server, table)
    chosen = chosen_columns(found, _names(columns))
    search = Search.of(method, degree, found, len(chosen))
    errors = Console(stderr=True)
    with errors.status("asking") as status:
        told = Told(status.update, lambda line: errors.print(plain(line)))
        source, cost = source_of(server, found, chosen, search, epsilon=epsilon, told=told)
        status.update("learning")
        network = learned(BicScore(source, degree=search.degree), method)
    console().print(Group(network_table(network), plain(cost)))
    if writer is not None:
        writer(network)
        console().print(plain(f"Wrote {output}."))
    if draw is not None:
        _open(draw(network))


def network_table(network: LearnedNetwork) -> RenderableType:
    """One line per arc, the strongest first, and what the network rests on below."""
    shown = Table(header_style="bold")
    for heading in ("from", "to", "direction"):
        shown.add_column(heading)
    shown.add_column("support", justify="right")
    for arc in sorted(network.arcs, key=lambda one: -one.support):
        direction = "this way" if arc.is_directed else "either way"
        shown.add_row(*map(plain, (arc.parent, arc.child, direction, f"{arc.support:.1f}")))
    parents = "one parent" if network.degree == 1 else f"{network.degree} parents"
    about = (
        f"{network.method.value}, at most {parents} of a column; as certain as "
        f"{network.n_effective:.0f} rows without noise."
    )
    joined = {name for arc in network.dag.arcs for name in arc}
    alone = [name for name in network.dag.columns if name not in joined]
    lines = [f"Nothing is seen of a dependence of {', '.join(alone)}."] if alone else []
    return Group(*([shown] if network.arcs else []), *map(plain, [*lines, about]))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _drawing() -> Callable[[LearnedNetwork], bytes]:
    """The function that draws; refused before anything is paid for if it cannot."""
    with drawn_with_matplotlib(", or write .dot or .json", what="A drawing of a network"):
        from proxy.cli.network_chart import network_svg  # noqa: PLC0415 - needs matplotlib

        return network_svg


def _writer(output: Path) -> Callable[[LearnedNetwork], None]:
    """The function that writes the file; whether it can is found out before anything is paid."""
    match output.suffix.lower():
        case ".svg":
            encoded = _drawing()
        case ".dot":
            encoded = _dot
        case ".json":
            encoded = _json
        case _:
            raise ConfigurationInvalid(
                f"The name {output} does not end in .svg, .dot or .json.", hint="Choose one."
            )
    check_folder(output)
    return lambda network: write_bytes(output, encoded(network))


def _dot(network: LearnedNetwork) -> bytes:
    return network_dot(network).encode()


def _json(network: LearnedNetwork) -> bytes:
    return (json.dumps(network_json(network), indent=2, ensure_ascii=False) + "\n").encode()


def _open(svg: bytes) -> None:
    """Show a drawing in a browser, or say where it is."""
    with tempfile.NamedTemporaryFile(prefix="tacit-", suffix=".svg", delete=False) as file:
        file.write(svg)
    if not webbrowser.open(Path(file.name).as_uri()):
        console().print(Text(f"There is no browser; the drawing is in {file.name}."))
