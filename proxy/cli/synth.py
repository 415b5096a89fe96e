"""The commands `tacit synth ...`: make synthetic tables, inspect them, download them.

A thin layer over `synth_client`, with the text that people read: price, result and provenance. The
server decides what a table costs.
"""

import json
import math
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final

import pyarrow as pa
import typer
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from cube.refusals import InvalidRequest
from cube.statistic import N_PARENTS_MAX, Score
from proxy.cli.models.held_out import held_out_scores, kept_out_rows
from proxy.cli.shared import synth_client
from proxy.cli.shared.client import ServerAddress
from proxy.cli.shared.files import check_folder, is_model, table_writer, write_bytes
from proxy.cli.shared.options import (
    SpreadsheetOption,
    TableOrJson,
    TableOrJsonOption,
    asks_server,
)
from proxy.cli.shared.rendering import after_cost, console, general, plain
from proxy.cli.shared.statements import statements_in
from proxy.cli.shared.synth_options import (
    ClipOption,
    DeltaOption,
    EpsilonOption,
    HoldersOption,
    MethodOption,
    ModelArgument,
    NameArgument,
    NewNameOption,
    OutputOption,
    PublicRowsOption,
    RowsOption,
    SeedOption,
    SmoothingOption,
    StructureOption,
    VotesOption,
)
from proxy.protocol import tacit_pb2

N_SHARES_SHOWN: Final = 40  # of a law; a file has all of them


def preview_table(reply: tacit_pb2.PreviewSyntheticReply) -> RenderableType:
    """One line per step, and the total price below."""
    shown = Table(header_style="bold")
    shown.add_column("step")
    shown.add_column("epsilon", justify="right")
    shown.add_column("tables", justify="right")
    for step in reply.steps:
        shown.add_row(plain(step.name), f"{step.epsilon:.6g}", str(step.n_tables))
    told = f"would spend at most epsilon {reply.epsilon:.6g}{after_cost(reply)}"
    return Group(shown, Text(told))


def created_text(made: tacit_pb2.SyntheticProgress) -> RenderableType:
    """The table that was made, its cost, and facts about it."""
    table = made.table
    unknown = [column.name for column in table.columns if column.unknown]
    lines = [
        f"Made {table.name}: {table.rows} rows of {len(table.columns)} columns, a table in SQL.",
        f"spent epsilon {table.epsilon_spent:.6g}{after_cost(made.receipt)}",
    ]
    if table.HasField("evaluation"):
        lines.append(f"Mean distance of pairs of columns: {_evaluated(table.evaluation)}.")
    if unknown:
        lines.append(f"Nothing is known of {', '.join(unknown)}: drawn uniformly from the levels.")
    if table.incomplete:
        lines.append(f"Less than requested: {table.incomplete}")
    return Group(*map(plain, lines))


def tables_table(tables: Iterable[tacit_pb2.SyntheticTable]) -> Table:
    """One line per synthetic table."""
    shown = Table(header_style="bold")
    for heading in ("table", "of", "method", "rows", "epsilon spent", "made by", "made at"):
        is_number = heading in {"rows", "epsilon spent"}
        shown.add_column(heading, justify="right" if is_number else "left")
    for table in tables:
        spent = f"{table.epsilon_spent:.6g}"
        cells = (table.name, table.source, table.method, str(table.rows), spent)
        shown.add_row(*map(plain, (*cells, table.made_by, table.made_at)))
    return shown


def provenance_table(table: tacit_pb2.SyntheticTable) -> Table:
    """Everything in a synthetic table's record."""
    shown = Table(show_header=False)
    shown.add_column(style="bold")
    shown.add_column()
    columns = ", ".join(f"{column.name} {column.sql_type}" for column in table.columns)
    unknown = ", ".join(column.name for column in table.columns if column.unknown)
    for heading, text in (
        ("table", table.name),
        ("of", table.source),
        ("method", table.method),
        ("rows", str(table.rows)),
        ("columns", columns),
        ("epsilon requested, spent", f"{table.epsilon:.6g}, {table.epsilon_spent:.6g}"),
        ("delta", f"{table.delta:g}" if table.HasField("delta") else "-"),
        ("options", table.options),
        ("fitted to", table.model),
        ("nothing known of", unknown or "-"),
        ("evaluated", _evaluated(table.evaluation) if table.HasField("evaluation") else "-"),
        ("incomplete", table.incomplete or "-"),
        ("seed", str(table.seed)),
        ("made by", table.made_by),
        ("made at", f"{table.made_at}, {_made_after(table)}"),
    ):
        shown.add_row(heading, plain(text))
    return shown


def _made_after(table: tacit_pb2.SyntheticTable) -> str:
    """What there was to make it of: a private table has charges, a collection has answers."""
    if not table.HasField("respondents"):
        return f"after {table.n_charges} charge{'s' * (table.n_charges != 1)}"
    return f"of the answers of {table.respondents} respondent{'s' * (table.respondents != 1)}, free"


def _evaluated(found: tacit_pb2.SyntheticEvaluation) -> str:
    at_most = "at most " if found.is_bound else ""
    return (
        f"{at_most}{found.estimate:.4f} +- {found.half_width:.4f} "
        f"({found.pairs} of {found.pairs_all} pairs)"
    )


def law_table(data: pa.Table, basis: tacit_pb2.SyntheticLawBasis) -> RenderableType:
    """The largest shares of a law, and how it was obtained below."""
    *columns, share = data.column_names
    shown = Table(header_style="bold")
    for name in columns:
        shown.add_column(plain(name))
    shown.add_column(share, justify="right")
    largest = data.sort_by([(share, "descending")]).slice(0, N_SHARES_SHOWN).to_pylist()
    for row in largest:
        shown.add_row(*(plain(general(row[name])) for name in columns), f"{row[share]:.4f}")
    lines = [_basis(basis), "No interval: the error of the model is unknown."]
    n_more = data.num_rows - len(largest)
    if n_more:
        lines.insert(0, f"and {n_more} more; a file has all of them")
    return Group(shown, *map(plain, lines))


def _basis(basis: tacit_pb2.SyntheticLawBasis) -> str:
    match basis.way:
        case "exact":
            return "The model's exact law."
        case "weighted":
            return f"The model's law, approximated by {basis.n_rows:.0f} effective draws."
        case _:
            return f"Counted among {basis.n_rows:.0f} rows of the table."


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make synthetic tables whose counts are close to a private table's. Using them is free.",
    epilog="Start with: tacit synth create adult --epsilon 1 --preview",
)


@app.command(
    epilog="Example: tacit synth create adult --epsilon 1 --columns age,sex,income -o adult.parquet"
)
@asks_server
def create(  # noqa: PLR0913, PLR0917 - one parameter per option
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The private table.")],
    epsilon: EpsilonOption = "0",
    delta: DeltaOption = None,
    method: Annotated[
        MethodOption,
        typer.Option(
            help="auto: what fits; pairwise: noisy tables of columns and of pairs; "
            "privbayes: a network."
        ),
    ] = MethodOption.AUTO,
    target: Annotated[
        str, typer.Option(metavar="A,B,..", help="Columns to be learned from the others.")
    ] = "",
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="SELECTs on the private table that the rows are to answer well."
        ),
    ] = None,
    evaluate: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="Also buy, for an epsilon of its own, how far the rows are from the private ones.",
        ),
    ] = "0",
    score: Annotated[
        Score | None,
        typer.Option(
            case_sensitive=False,
            help="privbayes: the score that finds dependent columns; default R.",
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=N_PARENTS_MAX,
            help="privbayes: the most columns that one column depends on; default 3.",
        ),
    ] = None,
    hierarchies: Annotated[
        bool | None,
        typer.Option(
            "--hierarchies/--no-hierarchies",
            help="privbayes: columns may also depend on merged ranges of numbers and dates.",
        ),
    ] = None,
    theta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="privbayes: a cell's average count is so many times its noise; default 4. More "
            "makes smaller tables.",
        ),
    ] = None,
    structure_share: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="privbayes: the share of epsilon that chooses parents; default 0.3.",
        ),
    ] = None,
    groups: Annotated[
        str,
        typer.Option(
            metavar="T.C,..",
            help="privbayes: columns of public tables; categories may also be parents by the "
            "groups that these make, such as cities.region.",
        ),
    ] = "",
    structure: StructureOption = None,
    votes: VotesOption = None,
    clip: ClipOption = None,
    smoothing: SmoothingOption = None,
    public_rows: PublicRowsOption = None,
    holders: HoldersOption = None,
    rows: RowsOption = None,
    seed: SeedOption = None,
    columns: Annotated[
        str, typer.Option(metavar="A,B,..", help="The columns; if left out, every column.")
    ] = "",
    name: NewNameOption = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a synthetic table of that name.")
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what it would cost. Spends nothing.")
    ] = False,
    output: OutputOption = None,
    spreadsheet: SpreadsheetOption = False,
    *,
    server: ServerAddress,
) -> None:
    """Make a synthetic table, and keep it on the server.

    What is bought for it is remembered: counts of the pairs of columns that it measured are then
    answered for free, with intervals. What is known already is used, so a table may be better than
    its epsilon alone would buy.

    Counts of one or two columns are close to the private ones; combinations of three and more
    columns are not measured. No row describes a real person.
    """
    write = _writer(output, is_for_spreadsheets=spreadsheet)
    request = tacit_pb2.CreateSyntheticRequest(
        table=table,
        name=name,
        replace=replace,
        epsilon=epsilon,
        delta=delta,
        method=method.value,
        rows=rows,
        seed=seed,
        columns=_names(columns),
        score=None if score is None else score.value,
        degree=degree,
        theta=theta,
        structure_share=structure_share,
        groups=_names(groups),
        structure=_value(structure),
        votes=_value(votes),
        clip=_value(clip),
        smoothing=_value(smoothing),
        public_rows=public_rows,
        holders=_value(holders),
        target=_names(target),
        workload=None if workload is None else statements_in(workload),
        evaluate=evaluate,
    )
    if hierarchies is not None:
        request.hierarchies = hierarchies
    if preview:
        console().print(preview_table(synth_client.preview(server, request)))
        return
    made = _made(synth_client.create(server, request))
    console().print(created_text(made))
    write(lambda: synth_client.rows(server, _full_name(made.table)))


@app.command("list", epilog="Example: tacit synth list")
@asks_server
def list_tables(*, server: ServerAddress) -> None:
    """List the synthetic tables that you may read."""
    console().print(tables_table(synth_client.listed(server)))


@app.command(epilog="Example: tacit synth show adult_1")
@asks_server
def show(name: NameArgument, *, server: ServerAddress) -> None:
    """Show what a synthetic table was made of, how, by whom and at what cost."""
    (table,) = synth_client.listed(server, name)
    console().print(provenance_table(table))


@app.command(epilog="Example: tacit synth get adult_1 -o adult.csv")
@asks_server
def get(
    name: NameArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file; ends in .parquet or .csv, or in .model for the model of the rows.",
        ),
    ],
    spreadsheet: SpreadsheetOption = False,
    *,
    server: ServerAddress,
) -> None:
    """Write the rows of a synthetic table to a file, or the model that they are drawn from. Free.

    A model is made of noisy answers and public names alone: whoever may read the rows may have it.
    `resample`, `law` and `evaluate` use its file without a server, and `merge` joins several.
    """
    if is_model(output):
        check_folder(output)
        write_bytes(output, synth_client.model(server, name))
        typer.echo(f"Wrote {output}")
        return
    _writer(output, is_for_spreadsheets=spreadsheet)(lambda: synth_client.rows(server, name))


@app.command(epilog="Example: tacit synth resample adult_1 --rows 1000 --seed 7 -o small.csv")
@asks_server
def resample(  # noqa: PLR0913, PLR0917 - one parameter per option
    table: ModelArgument,
    rows: RowsOption = None,
    seed: SeedOption = None,
    name: NewNameOption = "",
    output: OutputOption = None,
    spreadsheet: SpreadsheetOption = False,
    *,
    server: ServerAddress,
) -> None:
    """Draw new rows from the model of a synthetic table, or of a .model file. Free.

    Rows of a file are drawn here, and are no table of a server: write them with --output.
    """
    write = _writer(output, is_for_spreadsheets=spreadsheet)
    if is_model(table):
        if name or output is None:
            raise InvalidRequest(
                "Rows of a model's file are not kept on a server.",
                hint="Leave --name out, and write them: --output rows.csv.",
            )
        write(lambda: _from_files().rows_of(Path(table), rows, seed))
        return
    request = tacit_pb2.ResampleSyntheticRequest(table=table, name=name, rows=rows, seed=seed)
    made = synth_client.resample(server, request)
    console().print(Text(f"Made {made.name}: {made.rows} rows like those of {table}. Free."))
    write(lambda: synth_client.rows(server, _full_name(made)))


@app.command(epilog="Example: tacit synth report adult_1 -o adult_1.html")
@asks_server
def report(
    name: NameArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the page.")
    ],
    *,
    server: ServerAddress,
) -> None:
    """Compare a synthetic table with what is known of the private table. Free.

    The page is one file that needs nothing else. It is made from noisy answers that were bought
    before, and reads no private row.
    """
    page = synth_client.report(server, name)
    write_bytes(output, page)
    typer.echo(f"Wrote {output}")


@app.command(
    epilog="Example: tacit synth law adult_1 --of income --given age=39 --given sex=Female"
)
@asks_server
def law(
    name: ModelArgument,
    of: Annotated[str, typer.Option(metavar="A,B,..", help="The columns whose law is requested.")],
    given: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="A given value of another column. May be repeated."
        ),
    ] = None,
    output: OutputOption = None,
    *,
    server: ServerAddress,
) -> None:
    """Show the law of some columns given values of others, by a table's model. Free.

    A table made by privbayes has a model that gives the law without rows; for other tables, shares
    are counted among the rows. There are no intervals.
    """
    write = _writer(output)
    request = tacit_pb2.SyntheticLawRequest(
        name=name, of=_names(of), given=[_given(text) for text in given or []]
    )
    asked = _from_files().law_of if is_model(name) else partial(synth_client.law, server)
    data, basis = asked(request)
    console().print(law_table(data, basis))
    write(lambda: data)


@app.command(epilog="Example: tacit synth evaluate adult_1 --rows kept_out.csv")
@asks_server
def evaluate(
    name: ModelArgument,
    rows: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Rows of yours that the private table has not; .csv or .parquet."
        ),
    ],
    shown_as: TableOrJsonOption = TableOrJson.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Compare a synthetic table with rows that were kept out of the private table. Free.

    The file stays on this machine: only the synthetic rows are fetched. For every column and every
    pair of columns it shows the cross entropy (the bits that a kept-out row costs if it is coded by
    the synthetic rows), the Kullback-Leibler divergence (how many of them are the model's fault),
    and the distance (the share of rows that lie elsewhere, from 0 to 1). Columns of more than 32
    values are compared in 32 groups.
    """
    made = (
        _from_files().rows_of(Path(name), None, None)
        if is_model(name)
        else synth_client.rows(server, name)
    )
    kept_out = kept_out_rows(rows, made.schema)
    found = held_out_scores(kept_out, made)
    if shown_as is TableOrJson.JSON:
        typer.echo(json.dumps({"rows": kept_out.num_rows, "scores": found}, ensure_ascii=False))
        return
    shown = Table(header_style="bold")
    shown.add_column("columns")
    for heading in ("cross entropy", "divergence", "distance"):
        shown.add_column(heading, justify="right")
    for width, told in ((1, "columns"), (2, "pairs")):
        of_width = [one for one in found if len(one["columns"]) == width]
        if of_width:
            means = [
                math.fsum(one[key] for one in of_width) / len(of_width)
                for key in ("cross_entropy", "divergence", "distance")
            ]
            shown.add_row(f"mean of {len(of_width)} {told}", *(f"{one:.4f}" for one in means))
    for one in sorted(found, key=lambda one: -one["divergence"])[:N_SHARES_SHOWN]:
        numbers = (f"{one[key]:.4f}" for key in ("cross_entropy", "divergence", "distance"))
        shown.add_row(plain(", ".join(one["columns"])), *numbers)
    console().print(shown)


@app.command(
    epilog="Example: tacit synth merge north.model south.model --weights sizes -o both.model"
)
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE..", help="Models, as `tacit synth get -o FILE.model` writes."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write; ends in .model.")
    ],
    weights: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="sizes: what each model estimates as its number of rows; equal; or a number for "
            "each model, like 3,1.",
        ),
    ] = "sizes",
    degree: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=N_PARENTS_MAX,
            help="For networks: the most columns that one column depends on; default: one more "
            "than in the models.",
        ),
    ] = None,
    by_rows: Annotated[
        bool,
        typer.Option(
            "--by-rows",
            help="Learn a network from rows drawn of the models, even where tables of the joined "
            "model could be computed exactly.",
        ),
    ] = False,
) -> None:
    """Join models of separate tables into one model of all their rows. Free.

    Hospitals or branches that may not show each other their rows each make a synthetic table of
    their own, and give away its model: noisy numbers alone. The joined model is what a model of
    all rows together would be, as far as the models know. No server is asked, no budget is spent,
    and no guarantee changes.

    A model counts for as many rows as it estimates, with noise; no exact size is in it. A small
    table's model is noisier, so it had better count for less.

    The models must be of the same columns with the same levels, and a row in one table only.
    Pairwise models are joined table by table, networks by the network that is nearest to their
    mixture. `tacit synth resample`, `law` and `evaluate` take the result.
    """
    if not is_model(output):
        raise InvalidRequest(f"The name {output} does not end in .model.", hint="Rename it.")
    check_folder(output)
    merged = _from_files().merge_files(files, weights, degree=degree, by_rows=by_rows)
    write_bytes(output, merged.content)
    console().print(merged.told)
    typer.echo(f"Wrote {output}")


def _from_files() -> ModuleType:
    """What is done with files of models; loads the engine's libraries, so only if it is needed."""
    return import_module("proxy.cli.models.files")


@app.command(epilog="Example: tacit synth drop adult_1")
@asks_server
def drop(name: NameArgument, *, server: ServerAddress) -> None:
    """Drop a synthetic table. What was measured for it stays known."""
    synth_client.drop(server, name)
    typer.echo(f"Dropped {name}.")


def _full_name(table: tacit_pb2.SyntheticTable) -> str:
    """The name that is unique among all synthetic tables."""
    return f"{table.source}.{table.name}"


def _names(text: str) -> list[str]:
    """The names in a comma-separated text."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(option: StrEnum | None) -> str | None:
    """What a request says for an option; nothing if it was left out."""
    return None if option is None else option.value


def _given(text: str) -> tacit_pb2.GivenValue:
    """A column and its value, from ``column=value``."""
    column, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(f"{text!a} gives no value.", hint="Write it like sex=Female.")
    return tacit_pb2.GivenValue(column=column.strip(), value=value)


def _made(steps: Iterable[tacit_pb2.SyntheticProgress]) -> tacit_pb2.SyntheticProgress:
    """The last message, after all others, with progress shown on a terminal."""
    last = tacit_pb2.SyntheticProgress()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("epsilon {task.fields[epsilon]:.4g}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("asking", total=1.0, epsilon=0.0)
        for last in steps:
            bar.update(task, completed=last.done, description=last.step, epsilon=last.epsilon_spent)
    return last


def _writer(
    output: Path | None, *, is_for_spreadsheets: bool = False
) -> Callable[[Callable[[], pa.Table]], None]:
    """The function that writes rows to a file; whether it can is checked before it is called."""
    if output is None:
        return lambda _rows: None
    write_table = table_writer(output, is_for_spreadsheets=is_for_spreadsheets)

    def write(rows: Callable[[], pa.Table]) -> None:
        write_table(rows())
        typer.echo(f"Wrote {output}")

    return write
