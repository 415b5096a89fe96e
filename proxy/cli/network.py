"""The commands `tacit network`: which columns of a table depend on which, and how networks compare.

The tables that a network is learned from, and what they cost, are found whatever kind of table it
is of. That learning from them will take a minute at most is checked before anything is bought or
asked for; of a synthetic table, whose levels are its rows', before anything is learned.
"""

import json
import math
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import ConfigurationInvalid, InvalidRequest, TooLarge
from proxy.api.requests import RANDOMIZED
from proxy.cli.marginals import summary_text
from proxy.cli.network_tables import (
    AnsweredSource,
    Levels,
    asked_of,
    campaign_of,
    check_free,
    check_readable,
    check_together,
    chosen_columns,
    measured_tables,
    read_answers,
    simulation,
    synthetic_rows,
    table_called,
)
from proxy.cli.shared.client import ServerAddress
from proxy.cli.shared.files import check_folder, write_bytes
from proxy.cli.shared.options import TableOrJson, TableOrJsonOption, asks_server
from proxy.cli.shared.rendering import console, general, plain
from proxy.protocol import tacit_pb2
from proxy.reporting.report import drawn_with_matplotlib
from synthesis.networks.comparison import (
    LinkCounts,
    LinkShare,
    class_distance,
    hamming_distance,
    js_distance,
    link_shares,
    total_variation,
)
from synthesis.networks.graph import Dag, skeleton
from synthesis.networks.learned import (
    N_WORK_MAX,
    LearnedNetwork,
    Method,
    Reading,
    learned,
    network_dot,
    network_json,
    work,
)
from synthesis.networks.score import BicScore
from synthesis.networks.search import N_COLUMNS_MAX
from synthesis.networks.source import TableSource
from synthesis.published import (
    READERS,
    NamedNetwork,
    PairOfTables,
    network_in,
    pairs_of_tables,
)

DEGREE_OF_ROWS: Final = 3  # of a synthetic table, whose tables cost nothing


@dataclass(frozen=True, slots=True)
class Search:
    """How a network is searched.

    Parameters
    ----------
    degree : int
        The most parents of a column.
    """

    method: Method
    degree: int

    @classmethod
    def of(
        cls, method: Method, degree: int | None, table: tacit_pb2.Table, n_columns: int
    ) -> "Search":
        """The search that was asked for; without a degree, the usual one of such a table.

        Raises
        ------
        TooLarge, InvalidRequest
        """
        if method is Method.EXACT and n_columns > N_COLUMNS_MAX:
            raise TooLarge(
                f"{n_columns} columns are too many for an exact search: at most {N_COLUMNS_MAX}.",
                hint="Name fewer in --columns, or use --method hill-climbing.",
            )
        if method is Method.CHOW_LIU:
            if degree is not None and degree > 1:
                raise InvalidRequest(
                    "In a tree, a column has one parent at most.",
                    hint="Leave out --degree, or use another --method.",
                )
            return cls(method, 1)
        if degree is None:
            degree = DEGREE_OF_ROWS if table.synthetic_of else 1
        return cls(method, min(degree, n_columns - 1))

    def check(self, sizes: Sequence[int], reading: Reading, *, is_noisy: bool = True) -> None:
        """Refuse what would take too long.

        Raises
        ------
        TooLarge
        """
        needed = work(
            sizes, degree=self.degree, method=self.method, is_noisy=is_noisy, reading=reading
        )
        if needed > N_WORK_MAX:
            raise TooLarge(
                f"To learn a network of these {len(sizes)} columns would take about "
                f"{math.ceil(needed / N_WORK_MAX)} minutes; one is allowed.",
                hint="Name fewer in --columns, lower --degree, or use another --method.",
            )


@dataclass(frozen=True, slots=True)
class Told:
    """What a person is told before there is a network.

    Parameters
    ----------
    step, line : callable
        Called with the present step, and with a line that stays on the screen.
    """

    step: Callable[[str], None]
    line: Callable[[str], None]


def source_of(  # noqa: PLR0913 - what is learned, how, for how much, and who is told
    server: ServerAddress,
    table: tacit_pb2.Table,
    columns: Sequence[tacit_pb2.Column],
    search: Search,
    *,
    epsilon: str,
    told: Told,
) -> tuple[TableSource, Levels, str]:
    """The tables that a network is learned from, their levels, and what is said about their cost.

    Raises
    ------
    Refused, Declined
    """
    if table.synthetic_of:
        check_free(table, epsilon)
        told.step("reading the rows")
        rows, levels = synthetic_rows(server, table, columns)
        sizes = [one.size for one in rows.columns]
        search.check(sizes, lambda scope: rows.n_rows * len(scope), is_noisy=False)
        return (
            rows,
            levels,
            f"Learned from the rows of {table.name}: the network is that of its model. Free.",
        )
    if table.kind == RANDOMIZED:
        check_free(table, epsilon)
        return _answers(server, table, columns, search, told)
    asked = asked_of(table, columns, search.degree + 1, epsilon)
    search.check([one.n_levels for one in columns], lambda _: 0.0)
    told.line(str(asked))
    source, levels, summary = measured_tables(server, asked, told.step)
    return source, levels, summary_text(summary).plain


def _answers(
    server: ServerAddress,
    table: tacit_pb2.Table,
    columns: Sequence[tacit_pb2.Column],
    search: Search,
    told: Told,
) -> tuple[TableSource, Levels, str]:
    campaign = campaign_of(server, table.name)
    names = sorted(one.name for one in columns)
    check_readable(campaign)
    asked = [one.scope for one in campaign.combinations]
    check_together(campaign, names, search.degree + 1, asked)
    sizes = [len(campaign.by_name[name].levels) for name in names]
    search.check(sizes, lambda scope: simulation(campaign, [names[place] for place in scope]))
    estimates = read_answers(server, campaign, told.step)
    source = AnsweredSource(estimates, names, width_max=search.degree + 1)
    levels = {name: tuple(map(general, campaign.by_name[name].levels)) for name in names}
    return (
        source,
        levels,
        f"Learned from what {estimates.n_respondents} respondents answered. Free.",
    )


DEGREE_MAX: Final = 4

app = typer.Typer(
    no_args_is_help=True, help="Learn which columns of a table depend on which, and compare that."
)


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
            help=(
                "The most parents of a column; its tables of counts then have one column more. "
                f"Default 1, and {DEGREE_OF_ROWS} for a synthetic table."
            ),
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
        source, levels, cost = source_of(server, found, chosen, search, epsilon=epsilon, told=told)
        status.update("learning")
        network = learned(BicScore(source, degree=search.degree), method)
    console().print(Group(network_table(network), plain(cost)))
    if writer is not None:
        writer(network, levels)
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
    lines = [f"No dependence was found for {', '.join(alone)}."] if alone else []
    return Group(*([shown] if network.arcs else []), *map(plain, [*lines, about]))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _drawing() -> Callable[[LearnedNetwork], bytes]:
    """The function that draws; refused before anything is paid for if it cannot."""
    with drawn_with_matplotlib(", or write .dot or .json", what="A drawing of a network"):
        from proxy.cli.shared.charts import network_svg  # noqa: PLC0415 - needs matplotlib

        return network_svg


def _writer(output: Path) -> Callable[[LearnedNetwork, Levels], None]:
    """The function that writes the file; whether it can is found out before anything is paid."""
    encoded: Callable[[LearnedNetwork, Levels], bytes]
    match output.suffix.lower():
        case ".svg":
            draw = _drawing()
            encoded = lambda network, _: draw(network)  # noqa: E731 - as the others are called
        case ".dot":
            encoded = _dot
        case ".json":
            encoded = _json
        case _:
            raise ConfigurationInvalid(
                f"The name {output} does not end in .svg, .dot or .json.", hint="Choose one."
            )
    check_folder(output)
    return lambda network, levels: write_bytes(output, encoded(network, levels))


def _dot(network: LearnedNetwork, _: Levels) -> bytes:
    return network_dot(network).encode()


def _json(network: LearnedNetwork, levels: Levels) -> bytes:
    return (json.dumps(network_json(network, levels), ensure_ascii=False) + "\n").encode()


def _open(svg: bytes) -> None:
    """Show a drawing in a browser, or say where it is."""
    with tempfile.NamedTemporaryFile(prefix="tacit-", suffix=".svg", delete=False) as file:
        file.write(svg)
    if not webbrowser.open(Path(file.name).as_uri()):
        console().print(Text(f"There is no browser; the drawing is in {file.name}."))


N_BYTES_MAX: Final = 2**24  # of a file of a network
N_FILES_MAX: Final = 1000
FORMS: Final = "Use .json (`tacit network learn -o`), .bif, or .txt with an arc A -> B a line."


@app.command(epilog="Example: tacit network compare published.bif network.json")
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B ..",
            help="Files of networks: .json as `tacit network learn -o` writes it, .bif as "
            "published networks are, or .txt with an arc A -> B a line (or bnlearn's [A][B|A]).",
        ),
    ],
    output: TableOrJsonOption = TableOrJson.TABLE,
) -> None:
    """Compare networks of the same columns: what links they share, and how far apart they are.

    Of two networks, the first is taken for the truth. Sensitivity is the share of its arcs that the
    second has; specificity, of the ordered pairs without an arc, those that the second has no arc
    for either; recall, the mean of both; accuracy, the share of ordered pairs that agree. The
    structural distance counts the pairs of columns whose arc must be added, deleted or turned. The
    same between classes leaves out directions that no table can tell. If both files have laws, the
    tables of all pairs of columns are compared, too.

    Of three or more networks, it shows how often each link appears: in networks learned at several
    epsilons, or from several collections, a link that most have is not noise. Needs no server, and
    is free.
    """
    networks = _read_networks(files)
    graphs = [one.dag for one in networks]
    if len(graphs) > 2:  # noqa: PLR2004 - two are compared one to one
        shares = link_shares(graphs)
        if output is TableOrJson.JSON:
            typer.echo(json.dumps(_links_json(shares, len(graphs)), ensure_ascii=False))
        else:
            console().print(_links_table(shares, len(graphs)))
        return
    tables = pairs_of_tables(networks[0], networks[1])
    compared = _comparison(graphs[0], graphs[1], tables)
    if output is TableOrJson.JSON:
        typer.echo(json.dumps(compared, ensure_ascii=False, allow_nan=False))
        return
    shown = Table(header_style="bold")
    shown.add_column("")
    shown.add_column("", justify="right")
    for name, value in compared.items():
        if not isinstance(value, list | dict | None):
            shown.add_row(*map(plain, (name.replace("_", " "), general(value))))
    console().print(shown)
    for name in ("only_in_first", "only_in_second"):
        arcs = ", ".join(f"{one['from']} -> {one['to']}" for one in compared[name])
        console().print(plain(f"{name.replace('_', ' ').capitalize()}: {arcs or 'no arc'}."))
    if isinstance(tables, str):
        console().print(plain(f"Tables are not compared. {tables}"))


def _read_networks(files: Sequence[Path]) -> list[NamedNetwork]:
    """The networks of files, all of the same columns.

    Raises
    ------
    InvalidRequest, TooLarge, ConfigurationInvalid
    """
    if len(files) < 2:  # noqa: PLR2004 - two or more
        raise InvalidRequest("Two networks or more are compared.", hint="Name another file.")
    if len(files) > N_FILES_MAX:
        raise TooLarge(f"At most {N_FILES_MAX} networks are compared at a time.")
    found: list[NamedNetwork] = []
    for path in files:
        one = _read_network(path)
        if found and set(one.dag.columns) != set(found[0].dag.columns):
            other = min(set(one.dag.columns) ^ set(found[0].dag.columns))
            raise InvalidRequest(
                f"{files[0]} and {path} are networks of different columns: only one of them has "
                f"{other!a}.",
                hint="Learn both of the same --columns. In .txt, name a column without an arc on a "
                "line of its own.",
            )
        found.append(one)
    return found


def _read_network(path: Path) -> NamedNetwork:
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ConfigurationInvalid(f"The name {path} does not say what it holds.", hint=FORMS)
    try:
        with path.open("rb") as file:
            content = file.read(N_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > N_BYTES_MAX:
        raise TooLarge(f"{path} has more than {N_BYTES_MAX} bytes: it is too large for a network.")
    try:
        return network_in(content.decode("utf-8-sig"), suffix)
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8.", hint=FORMS) from None
    except ValueError as error:
        raise InvalidRequest(f"{path} holds no network: {error}.", hint=FORMS) from None


def _comparison(truth: Dag, found: Dag, tables: Sequence[PairOfTables] | str) -> dict[str, Any]:
    """Two networks beside each other, as JSON values."""
    counts = LinkCounts.of(truth, found)
    told: dict[str, Any] = {
        "arcs_in_both": counts.true_positives,
        "arcs_only_in_first": counts.false_negatives,
        "arcs_only_in_second": counts.false_positives,
        "links_in_both": len(skeleton(truth) & skeleton(found)),
        "sensitivity": counts.sensitivity,
        "specificity": counts.specificity,
        "recall": counts.average_recall,
        "accuracy": counts.accuracy,
        "structural_distance": hamming_distance(truth, found),
        "structural_distance_of_classes": class_distance(truth, found),
        "only_in_first": _arcs_json(truth.arcs - found.arcs),
        "only_in_second": _arcs_json(found.arcs - truth.arcs),
        "tables": None,
    }
    if not isinstance(tables, str) and tables:
        distances = [total_variation(one.one, one.other) for one in tables]
        farthest = max(range(len(tables)), key=lambda place: distances[place])
        divergences = [js_distance(one.one, one.other) for one in tables]
        told |= {
            "mean_distance_of_pairs": math.fsum(distances) / len(tables),
            "largest_distance_of_a_pair": distances[farthest],
            "farthest_pair": ", ".join(tables[farthest].columns),
            "mean_js_distance_of_pairs": math.fsum(divergences) / len(tables),
            "tables": [
                {"columns": list(one.columns), "distance": distance, "js_distance": divergence}
                for one, distance, divergence in zip(tables, distances, divergences, strict=True)
            ],
        }
    return told


def _arcs_json(arcs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"from": one, "to": other} for one, other in sorted(arcs)]


def _links_json(shares: Sequence[LinkShare], n_graphs: int) -> dict[str, Any]:
    return {
        "networks": n_graphs,
        "links": [
            {
                "columns": list(one.columns),
                "share": one.share,
                "forward": one.n_forward,
                "backward": one.n_backward,
            }
            for one in shares
        ],
    }


def _links_table(shares: Sequence[LinkShare], n_graphs: int) -> RenderableType:
    """One line per link, the most frequent first."""
    shown = Table(header_style="bold")
    shown.add_column("link")
    for heading in ("share", "this way", "other way"):
        shown.add_column(heading, justify="right")
    for one in shares:
        first, second = one.columns
        numbers = f"{one.share:.3f}", str(one.n_forward), str(one.n_backward)
        shown.add_row(*map(plain, (f"{first} -> {second}", *numbers)))
    return Group(shown, plain(f"Of {n_graphs} networks. Pairs without a link are left out."))
