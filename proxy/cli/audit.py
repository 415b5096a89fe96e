"""The commands `tacit audit ...`: verify a ledger, sign its head, export and import it.

A thin layer over accountant/auditor/: it opens files and prints findings, and uses no server. Every
command may run beside one. `claim` is the exception: it asks a server, which has the declarations
that a condition is about.
"""

import datetime as dt
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from accountant.auditor import signed_head
from accountant.auditor.compare import compared
from accountant.auditor.signed_head import Head, SignedHead
from accountant.auditor.transfer import exported, import_into
from accountant.auditor.verdict import CollectionVerdict, StreamVerdict, TableVerdict, Verdict
from accountant.auditor.verify import verify
from accountant.ledger.limits import Window
from accountant.ledger.opening import open_store
from accountant.ledger.stores import durable_file
from cube.refusals import ConfigurationInvalid, InvalidRequest, LedgerCorrupt
from cube.runtime import uncollected
from proxy.cli import ledger as cli_report
from proxy.cli import ledger as cli_rollback
from proxy.cli.ledger import (
    EXPORT_SUFFIX,
    LedgerArgument,
    PublicKeyOption,
    SignedHeadsOption,
    open_entries,
    read_heads,
)
from proxy.cli.shared import client as cli_client
from proxy.cli.shared import rendering
from proxy.cli.shared.client import ServerAddress
from proxy.cli.shared.options import FormatOption, OutputFormat, asks_server, fails_in_json
from proxy.protocol import tacit_pb2
from proxy.shared.amounts import TWICE
from proxy.shared.renewal_text import a_window, renewal_words

OWNER_ONLY: Final = 0o600  # an export contains analysts' names and their queries

PROBABILITY: Final = "probability"
EPSILON_MAX: Final = 700.0  # e to it is still a double

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Verify what a ledger says was spent, without trusting the server that wrote it.",
    epilog="Start with: tacit audit verify adult.ledger",
)
app.command("accept-rollback", epilog="Example: tacit audit accept-rollback adult.ledger --by ann")(
    cli_rollback.accept_rollback
)
app.command("report", epilog="Example: tacit audit report adult.ledger -o report.html")(
    cli_report.report
)


@app.command(
    "verify",
    epilog="Example: tacit audit verify adult.ledger --public-key owner.pub --signed-head may.json",
)
def verify_ledger(
    location: LedgerArgument,
    public_key: PublicKeyOption = None,
    signed_heads: SignedHeadsOption = None,
) -> None:
    """Check every entry of a ledger, and add up again what was spent.

    Changes nothing. Recomputed from the text of the entries: the chain of digests, every sum,
    budget and limit, the noise of every measurement, and the cost of its rows after every charge.
    The first error is reported with the number of its entry, and the command fails.

    A ledger cannot show by itself that its last entries are missing, or that all of it was
    rewritten. To detect that, keep the head that this prints, or a head that the owner signed
    (`tacit audit sign`), where those who can write the ledger cannot reach it.
    """
    verdict = _verified(location, read_heads(public_key, signed_heads or ()))
    for warning in verdict.warnings:
        typer.echo(f"WARNING: {warning}.")
    typer.echo(f"{verdict.n_entries} entries, head {verdict.head}")
    rendering.console().print(audit_table(verdict.tables))
    if verdict.tables:
        typer.echo(f"Epsilon is for one row or unit, added or removed; {TWICE}.")
    for table in verdict.tables:
        if table.delta is not None:
            typer.echo(
                f"{table.table}: epsilon {float(table.gaussian):.6g} of it for Gaussian noise, "
                f"private but for a probability of {float(table.delta):g}."
            )
        if table.unit_counts:
            typer.echo(
                f"{table.table}: epsilon {float(table.unit_counts):.6g} of it for counts of units."
            )
    for name, tables in verdict.shared_budgets.items():
        spent = float(sum(one.spent for one in tables))
        who = ", ".join(one.table for one in tables)
        deltas = [one.delta for one in tables if one.delta is not None]
        but_for = f", private but for a probability of {float(sum(deltas)):g}" if deltas else ""
        typer.echo(f"Budget {name}: epsilon {spent:.6g} spent together by {who}{but_for}.")
    for line in (*renewals_told(verdict), *streams_told(verdict)):
        typer.echo(line)
    for collection in verdict.collections:
        typer.echo(collection_told(collection))
    for note in verdict.notes:
        typer.echo(f"note: {note}")
    _refuse_problem(verdict)
    typer.echo("Every entry follows from those before it.")


@app.command(
    epilog="Example: tacit audit compare coordinator.ledger --holder north.jsonl "
    "--holder south.jsonl"
)
def compare(
    location: LedgerArgument,
    holders: Annotated[
        list[str],
        typer.Option(
            "--holder", metavar="LEDGER", help="The ledger of a holder, or its export; once each."
        ),
    ],
) -> None:
    """Lay the ledger of a coordinator of federated tables beside those of its holders.

    Each is verified by itself first. Then every receipt of the coordinator is looked up in the
    holder's ledger: the same rows, the same noise, the same values, and the head that was told. A
    contradiction is reported with the numbers of its entries, and the command fails.
    """
    for one in (location, *holders):
        _refuse_problem(_verified(one))
    with ExitStack() as stack, uncollected():
        opened = [stack.enter_context(open_entries(one)) for one in (location, *holders)]
        found = compared(opened[0], dict(zip(holders, opened[1:], strict=True)))
    shown = Table("holder", "table", "epsilon", "measured", "waiting", "given up")
    for holder in found.holders:
        numbers = holder.n_measured, holder.n_waiting, holder.n_given_up
        epsilon = f"{float(holder.epsilon):.6g}"
        names = rendering.plain(holder.ledger), rendering.plain(holder.table)
        shown.add_row(*names, epsilon, *map(str, numbers))
    rendering.console().print(shown)
    if found.n_waiting:
        typer.echo(f"{found.n_waiting} charges of the coordinator wait; no holder has them yet.")
    if found.n_elsewhere:
        typer.echo(f"{found.n_elsewhere} measurements are of holders whose ledger was not given.")
    if found.problems:
        raise LedgerCorrupt(f"{'; '.join(found.problems)}.")
    typer.echo("The ledgers agree.")


@app.command(epilog="Example: tacit audit keygen -o owner")
def keygen(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="NAME", help="Makes NAME.key (private) and NAME.pub (public)."
        ),
    ],
) -> None:
    """Make the keys for signed heads.

    The signer keeps the private key secret, and off the server if possible; auditors get the public
    key from the signer, not from the server.
    """
    private, public = (output.with_name(output.name + suffix) for suffix in (".key", ".pub"))
    signed_head.generate_keys(private, public)
    typer.echo(f"Wrote {private}, which only you may read, and {public}, which is public.")


@app.command(epilog="Example: tacit audit sign adult.ledger --key owner.key -o adult-may.json")
def sign(
    location: LedgerArgument,
    key: Annotated[
        Path, typer.Option(help="The private key that `tacit audit keygen` made.", metavar="FILE")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write; if left out, it is printed."
        ),
    ] = None,
) -> None:
    """Verify a ledger, and sign its current head.

    Anyone who has the signed head can check later that the ledger still contains everything it
    contained today: `tacit audit verify --signed-head`. The signed head contains nothing about the
    data or the queries.
    """
    private_key = signed_head.read_private_key(key)
    verdict = _verified(location)
    _refuse_problem(verdict)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
    signed = signed_head.sign_head(private_key, Head(verdict.n_entries, verdict.head, now))
    if output is None:
        typer.echo(signed.to_json(), nl=False)
        return
    with _new_file(output) as path:
        path.write_text(signed.to_json(), encoding="ascii")
    typer.echo(f"Wrote {output}: {verdict.n_entries} entries, head {verdict.head}")


@app.command(epilog="Example: tacit audit export adult.ledger -o adult.jsonl")
def export(
    location: LedgerArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; ends in .jsonl."),
    ],
) -> None:
    """Write every entry of a ledger as a line of JSON.

    The texts are byte for byte those that were chained. An auditor needs nothing else: all of
    `tacit audit` reads such a file too, and docs/auditing.md says how to read it without Tacit. The
    ledger is not verified here; an invalid one is exported as well.
    """
    if output.suffix != EXPORT_SUFFIX:
        raise ConfigurationInvalid(f"The name {output} does not end in {EXPORT_SUFFIX}.")
    with (
        open_entries(location) as entries,
        _new_file(output) as path,
        path.open("w", encoding="ascii") as file,
    ):
        n_lines = sum(bool(file.write(line)) for line in exported(entries))
        file.flush()
        durable_file.sync(file.fileno())
    typer.echo(f"Wrote {output}: {n_lines - 2} entries.")


@app.command("import", epilog="Example: tacit audit import adult.jsonl restored.ledger")
def import_ledger(
    file: Annotated[
        str,
        typer.Argument(metavar="EXPORT", help="A file that `tacit audit export` wrote (.jsonl)."),
    ],
    location: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER", help="A new ledger's file, or postgresql://USER@HOST/DATABASE."
        ),
    ],
) -> None:
    """Verify an export, and make a new ledger of all of it.

    This is also the way from SQLite to PostgreSQL and back. To serve the new ledger, put the key
    and the mark of the old one beside it: without the key, the server cannot recognise its data,
    and without the mark, it cannot tell whether this is all of its ledger.
    """
    with open_entries(file) as entries:
        verdict = import_into(lambda: open_store(location), entries)
    typer.echo(f"Wrote {location}: {verdict.n_entries} entries, head {verdict.head}")
    typer.echo("Its key and its mark are still missing: copy them from the old ledger.")


@app.command(
    epilog='Example: tacit audit claim adult "COUNT(*) >= 4" --where "age >= 85 AND sex = \'Male\'"'
)
@fails_in_json
@asks_server
def claim(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The private table.")],
    condition: Annotated[
        str,
        typer.Argument(
            metavar="CONDITION",
            help="What DP_PROBABILITY takes: a comparison of counts, sums or formulas of them, "
            'such as "COUNT(*) > 3".',
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option(metavar="PREDICATE", help="The rows that the claim is about; else all."),
    ] = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Show what anybody who pools all released answers can say of a claim.

    For owners, about a claim that they would rather not have answered. The probability is that of
    DP_PROBABILITY, by every noisy count and sum in the history together, before which every value
    is equally plausible. Nothing is measured or charged, and no private row is read.

    Tacit refuses no query because of such a figure. A figure that is near 0 or 1 says what is so of
    many people together. What answers say of one of them is bounded by epsilon, whatever else
    anybody knows: the factors below the figure.
    """
    found = cli_client.query(
        server,
        claim_sql(table, condition, where),
        cli_client.target_of(None, None, "0", fallback="history"),
    )
    if found.data.column_names != [PROBABILITY] or found.receipt is None:
        raise InvalidRequest(
            "The condition and the predicate must each be a single expression.",
            hint="Send other statements with `tacit query`.",
        )
    told = claim_fields(found.data.column(0)[0].as_py(), found.receipt)
    if output is OutputFormat.JSON:
        rendering.print_text(f"{json.dumps({'condition': condition, 'where': where, **told})}\n")
    elif output is OutputFormat.TABLE:
        for line in claim_told(condition, told).splitlines():
            rendering.console().print(rendering.plain(line))
    else:
        values = ("" if value is None else f"{value}" for value in told.values())
        rendering.print_text(f"{','.join(told)}\n{','.join(values)}\n")


def claim_sql(table: str, condition: str, where: str | None) -> str:
    """The SELECT that asks for the probability of a claim, from the history alone.

    >>> print(claim_sql("t", "COUNT(*) > 3", "a = 1"))
    SELECT DP_PROBABILITY(
    COUNT(*) > 3
    ) AS probability FROM "t" WHERE (
    a = 1
    )
    """
    # On lines of their own, so that a comment at the end of one does not swallow the rest.
    rows = "" if where is None else f" WHERE (\n{where}\n)"
    name = table.replace('"', '""')
    return f'SELECT DP_PROBABILITY(\n{condition}\n) AS {PROBABILITY} FROM "{name}"{rows}'  # noqa: S608 - the caller's own SQL, planned like any


def claim_fields(probability: float | None, receipt: tacit_pb2.Receipt) -> dict[str, Any]:
    """What a claim's probability is, and what epsilon bounds, for a program."""
    budget = receipt.budget
    in_all = budget.renewal.HasField("epsilon_spent_in_all")
    spent = budget.renewal.epsilon_spent_in_all if in_all else budget.epsilon_spent
    return {
        "table": receipt.table,
        PROBABILITY: probability,
        "epsilon_charged": receipt.epsilon_spent,
        "epsilon_spent": spent,
        "factor_for_a_row": _factor(spent),
        "factor_for_a_changed_row": _factor(2 * spent),
    }


def claim_told(condition: str, told: Mapping[str, Any]) -> str:
    """The same for people."""
    probability, spent = told[PROBABILITY], told["epsilon_spent"]
    says = (
        "The released counts and sums determine no estimate of it, or the law of its error is not "
        "known."
        if probability is None
        else f"By all released counts and sums together: probability {probability:.6g}."
    )
    return (
        f"{told['table']}: {condition}\n{says}\n"
        f"Epsilon {spent:.6g} is spent. Whatever anybody knows beside the answers, all of them "
        f"change the odds that one row is in the table by a factor of at most "
        f"{_shown(told['factor_for_a_row'])}, and the odds of a row's values by at most "
        f"{_shown(told['factor_for_a_changed_row'])}: {TWICE}. With Gaussian noise, this holds "
        "but for the delta that the owner offers."
    )


def _factor(epsilon: float) -> float | None:
    """The largest factor by which odds change; None beyond what a double holds."""
    return math.exp(epsilon) if epsilon < EPSILON_MAX else None


def _shown(factor: float | None) -> str:
    return "no useful number" if factor is None else f"{factor:.4g}"


def collection_told(collection: CollectionVerdict) -> str:
    """What a collection costs each of its respondents, whose budget is no table's."""
    n_respondents = collection.n_respondents
    counted = f"{n_respondents} answer{'' if n_respondents == 1 else 's'}"
    state = "open" if n_respondents is None else f"closed with {counted}"
    name, epsilon = rendering.plain(collection.name), float(collection.epsilon)
    return (
        f"Collection {name}: epsilon {epsilon:.6g} for each "
        f"respondent, of their own ({float(collection.recomputed):.6g} by its channels); {state}. "
        f"Campaign {collection.campaign}."
    )


def renewals_told(verdict: Verdict) -> Iterator[str]:
    """A line for each budget that renews: the present window, the last 12 months, and in all."""
    shared = verdict.shared_budgets
    alone = ((one.table, (one,)) for one in verdict.tables if not one.shared_budget)
    for name, tables in (*alone, *((f"Budget {name}", one) for name, one in shared.items())):
        renewals = [one.renewal for one in tables if one.renewal is not None]
        if renewals:
            window = renewals[0].renews
            in_window = float(sum(one.spent for one in renewals))
            in_year = float(sum(one.spent_in_year for one in renewals))
            in_all = float(sum(one.spent for one in tables))
            end = Window(window).end(verdict.at)[: len("2027-01-01")]
            yield (
                f"{name}: epsilon {float(tables[0].budget):.6g} a {window}, {in_window:.6g} of "
                f"it spent in the {window} of the last entry; "
                f"{renewal_words(end, in_year, in_all)}."
            )


def streams_told(verdict: Verdict) -> Iterator[str]:
    """A line for each stream: what an epoch loses, computed again, and what all of them do."""
    for one in verdict.streams:
        each = "an epoch" if one.epochs == "never" else f"a {one.epochs}"
        most = "" if one.budget is None else f" of {float(one.budget):.6g}"
        yield (
            f"Stream {rendering.plain(one.stream)}: epsilon {float(one.epsilon):.6g} {each}, "
            f"recomputed from its bits and noise{_by_predicates(one)}; "
            f"{float(one.spent):.6g}{most} spent in {one.n_epochs} "
            f"epoch{'' if one.n_epochs == 1 else 's'}, {one.n_released} of them released."
        )


def _by_predicates(stream: StreamVerdict) -> str:
    """How an epsilon is divided: everybody's bits are as dear as those of a predicate."""
    n = stream.n_predicates
    if not n:
        return ""
    each = f"{float(stream.epsilon / (1 + n)):.6g}"
    held = "its predicate" if n == 1 else f"each of {n} predicates"
    return f" ({each} for everybody, {each} for {held})"


def audit_table(verdicts: Iterable[TableVerdict]) -> Table:
    """The sums of a ledger, one line per private table."""
    shown = Table(header_style="bold")
    numbers = ("epsilon limit", "charged", "recomputed", "measurements", "raised", "pending")
    for heading in ("table", *numbers):
        shown.add_column(heading, justify="left" if heading == "table" else "right")
    for verdict in verdicts:
        shown.add_row(
            f"{rendering.plain(verdict.table)}{_generations(verdict)}",
            f"{float(verdict.budget):.6g}{_renewing(verdict)}{_shared_by(verdict)}",
            f"{float(verdict.spent):.6g}",
            f"{'' if verdict.exact else 'at most '}{float(verdict.recomputed):.6g}",
            str(verdict.n_measurements),
            str(verdict.n_raised),
            str(verdict.n_pending),
        )
    return shown


def _renewing(verdict: TableVerdict) -> str:
    """That a limit is for each window."""
    return "" if verdict.renewal is None else a_window(verdict.renewal.renews)


def _shared_by(verdict: TableVerdict) -> str:
    """That a limit is for several tables together."""
    return f" ({rendering.plain(verdict.shared_budget)})" if verdict.shared_budget else ""


def _generations(verdict: TableVerdict) -> str:
    """That its sums are over several generations."""
    n_generations = verdict.n_generations
    return f" ({n_generations} generations)" if n_generations > 1 else ""


def _verified(location: str, heads: Sequence[SignedHead] = ()) -> Verdict:
    """The verdict on a ledger, with progress shown on a terminal."""
    with (
        uncollected(),
        open_entries(location) as entries,
        Console(stderr=True).status("Reading") as status,
    ):
        return verify(
            entries,
            heads=heads,
            watch=lambda what, how_far: status.update(f"Checked {how_far} {what}"),
        )


def _refuse_problem(verdict: Verdict) -> None:
    if verdict.problem is not None:
        raise LedgerCorrupt(f"{verdict.problem}.")


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A new file; it is removed if writing it fails."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY))
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be written: {error.strerror}.") from None
    try:
        yield path
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise ConfigurationInvalid(f"{path} cannot be written: {error.strerror}.") from None
        raise
