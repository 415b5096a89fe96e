"""The commands `tacit token` and `tacit limit`: who may come in, and what he may spend.

Both write to the ledger that a configuration names, beside a server that runs or without one. A
running server takes in what they wrote about a second later.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from accountant.ledger.credentials import EVERY_TABLE, Credential, Proof, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from cube.refusals import InvalidRequest
from planner.sql.messages import listed
from proxy.admin.limits import LimitChange, change_limit, limits_of
from proxy.admin.open_ledger import open_configured
from proxy.api.requests import LimitStatus, unknown_table
from proxy.cli.options import ConfigOption
from proxy.cli.rendering import console, plain
from proxy.config.settings import Settings, load
from proxy.identity.issuing import Grant, expiry, issue_certificate, issue_token, revoke
from proxy.protocol import tacit_pb2

COMMAND_LINE: Final = "command line"  # by whom the ledger says it was done
DEFAULT_CONFIG: Final = Path("tacit.toml")

tokens = typer.Typer(
    no_args_is_help=True, help="Issue, list and revoke the credentials of a server's users."
)
limits = typer.Typer(
    no_args_is_help=True, help="Say what an analyst or a group may spend of a table's budget."
)


@tokens.command(epilog="Example: tacit token issue --analyst ann --table adult > ann.token")
def issue(  # noqa: PLR0913 - one parameter an option
    *,
    analyst: Annotated[str, typer.Option(metavar="NAME", help="Whose it is.")],
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A table that it opens; may be there several times."),
    ] = None,
    all_tables: Annotated[
        bool, typer.Option("--all-tables", help="It opens every table, also those of later.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A group whose limits bind him; the same."),
    ] = None,
    role: Annotated[
        Role,
        typer.Option(help="analyst: ask; owner: ask, set limits, read reports; auditor: read."),
    ] = Role.ANALYST,
    expires: Annotated[
        str | None,
        typer.Option(metavar="90d|DATE", help="When it ends; if left out, when it is revoked."),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="No token, but a client certificate with this name in it."
        ),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Issue a token, and print it this once, on standard output.

    It is shown to nobody again: the ledger keeps its hash alone.
    """
    with _opened(config) as (settings, ledger):
        _check_tables(settings, table or [])
        grant = Grant(
            analyst=analyst,
            groups=group or (),
            role=role,
            tables=(EVERY_TABLE,) if all_tables else table or (),
            expires=None if expires is None else expiry(expires),
        )
        if certificate is None:
            credential, token = issue_token(ledger, grant, by=COMMAND_LINE)
            typer.echo(token)
        else:
            credential = issue_certificate(ledger, grant, certificate, by=COMMAND_LINE)
    until = "until it is revoked" if credential.expires is None else f"until {credential.expires}"
    typer.echo(f"Credential {credential.id} opens {_tables(credential)}, {until}.", err=True)


@tokens.command("list", epilog="Example: tacit token list --config tacit.toml")
def list_credentials(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List every credential that was ever issued."""
    with _opened(config) as (_, ledger):
        book, now = ledger.access, ledger.now()
    shown = _grid("id", "analyst", "groups", "role", "tables", "shown by", "ends", "")
    for credential in book.issued.values():
        state = "in force"
        if credential.id in book.revoked:
            state = "revoked"
        elif credential.is_expired(now):
            state = "expired"
        cells = (
            credential.id,
            credential.payer.analyst,
            ", ".join(credential.payer.groups),
            credential.role.value,
            _tables(credential),
            "token" if credential.proof is Proof.TOKEN else f"certificate {credential.shown_as}",
            credential.expires or "",
            state,
        )
        shown.add_row(*map(plain, cells))
    console().print(shown)


@tokens.command("revoke", epilog="Example: tacit token revoke 1f2e3d4c --config tacit.toml")
def revoke_credential(
    credential: Annotated[str, typer.Argument(metavar="ID", help="As `tacit token list` has it.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Let a credential open nothing any more; a running server knows within about a second."""
    with _opened(config) as (_, ledger):
        revoke(ledger, credential, by=COMMAND_LINE)
    typer.echo(f"Credential {credential} opens nothing any more.", err=True)


@limits.command(
    "set", epilog="Example: tacit limit set adult analyst:ann --epsilon 0.5 --window week"
)
def set_limit(  # noqa: PLR0913 - one parameter an option
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table whose budget it is.")],
    subject: Annotated[
        str,
        typer.Argument(
            metavar="WHOM",
            help="analyst:NAME, group:NAME, or each_analyst (who has no limit of his own).",
        ),
    ],
    *,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The most in one window.")
    ] = None,
    window: Annotated[
        Window | None,
        typer.Option(help="How long spending counts; windows begin at midnight UTC."),
    ] = None,
    per_query: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The most that one query may add.")
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="First take away what is set; alone, the whole limit.")
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Set a limit; what is left out stays as it is.

    The table's budget binds everybody together whatever the limits say. A limit with a window
    spreads the budget over time; it promises nothing about what is learnt in a lifetime.
    """
    change = LimitChange(
        subject=subject,
        epsilon=epsilon,
        window=None if window is None else window.value,
        per_query=per_query,
        clear=clear,
    )
    with _opened(config) as (settings, ledger):
        _check_tables(settings, [table])
        change_limit(ledger, table, change, by=COMMAND_LINE)
        console().print(limits_table([(table, one) for one in limits_of(ledger, table)]))


@limits.command("list", epilog="Example: tacit limit list --config tacit.toml")
def list_limits(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List the limits in force, and what was spent under each in its window."""
    with _opened(config) as (settings, ledger):
        names = [table.schema.table for table in settings.tables]
        found = [(name, one) for name in names for one in limits_of(ledger, name)]
    console().print(limits_table(found))


def limits_table(found: Iterable[tuple[str, LimitStatus]]) -> Table:
    """Limits with their tables, a line each."""
    lines = []
    for name, one in found:
        numbers = (one.limit, one.spent, one.left, one.per_query)
        lines.append((name, one.subject, one.window, *map(_number, numbers)))
    return _limits(lines)


def binding_table(budgets: Iterable[tacit_pb2.Budget]) -> Table | None:
    """The limits that bind whoever asked for budgets; None if none does."""
    lines = []
    for budget in budgets:
        for one in budget.limits:
            names = ("epsilon_limit", "epsilon_spent", "epsilon_left", "per_query")
            numbers = (getattr(one, name) if one.HasField(name) else None for name in names)
            lines.append((budget.table, one.subject, one.window, *map(_number, numbers)))
    return _limits(lines) if lines else None


def _limits(lines: Iterable[tuple[str, ...]]) -> Table:
    shown = _grid("table", "for", "window", "epsilon", "spent", "left", "a query")
    for line in lines:
        shown.add_row(*map(plain, line))
    return shown


def _number(value: Fraction | float | None) -> str:
    return "" if value is None else f"{float(value):.6g}"


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Settings, Ledger]]:
    """A configuration and its ledger, for as long as a command runs."""
    settings = load(path)
    with open_configured(settings.ledger) as ledger:
        yield settings, ledger


def _check_tables(settings: Settings, names: Iterable[str]) -> None:
    known = [table.schema.table for table in settings.tables]
    for name in names:
        if name == EVERY_TABLE:
            raise InvalidRequest(f"There are {listed(known)}.", hint="Say --all-tables for all.")
        if name not in known:
            raise unknown_table(name, known)


def _tables(credential: Credential) -> str:
    return "every table" if EVERY_TABLE in credential.tables else ", ".join(credential.tables)


def _grid(*headings: str) -> Table:
    shown = Table(header_style="bold")
    for heading in headings:
        shown.add_column(heading)
    return shown
