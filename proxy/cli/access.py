"""The commands `tacit token` and `tacit limit`: who has access, and what they may spend.

Both write to the ledger that a configuration names, with or without a running server. A running
server applies the change within about a second.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from accountant.ledger.credentials import EVERY_TABLE, Credential, Proof, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from cube.refusals import InvalidRequest
from planner.sql.messages import listed
from proxy.admin.ledger_admin import (
    LimitChange,
    change_limit,
    limits_of,
    open_configured,
    unused_limits,
)
from proxy.api.requests import LimitStatus, unknown_table
from proxy.cli.shared.options import ConfigOption
from proxy.cli.shared.rendering import console, limits_table, plain
from proxy.config.settings import Settings, load
from proxy.identity.authenticate import ANONYMOUS
from proxy.identity.issuing import (
    Grant,
    expiry,
    issue_certificate,
    issue_token,
    revoke,
    warnings_beside,
    warnings_of,
)
from proxy.identity.roles import WHO_ASKS

COMMAND_LINE: Final = "command line"  # the author that the ledger records
DEFAULT_CONFIG: Final = Path("tacit.toml")

tokens = typer.Typer(
    no_args_is_help=True, help="Issue, list and revoke the credentials of a server's users."
)
limits = typer.Typer(
    no_args_is_help=True, help="Set how much of a table's budget an analyst or a group may spend."
)


@tokens.command(epilog="Example: tacit token issue --analyst ann --table adult > ann.token")
def issue(  # noqa: PLR0913 - one parameter per option
    *,
    analyst: Annotated[str, typer.Option(metavar="NAME", help="The analyst who will use it.")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A table, collection or stream that it opens. May be repeated."
        ),
    ] = None,
    all_tables: Annotated[
        bool, typer.Option("--all-tables", help="Open every table, including those added later.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A group whose limits apply to them. May be repeated."),
    ] = None,
    role: Annotated[
        Role,
        typer.Option(
            help="analyst: query; owner: query, set limits, read reports; auditor: read only; "
            "collector: tell streams who came; federation: buy noisy rows for a coordinator."
        ),
    ] = Role.ANALYST,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="90d|DATE", help="When it expires; if left out, it is valid until revoked."
        ),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Accept a client certificate with this name instead of a token."
        ),
    ] = None,
    no_postgres: Annotated[
        bool,
        typer.Option("--no-postgres", help="Do not make it a password for PostgreSQL clients."),
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Issue a token, and print it, once, on standard output.

    It cannot be shown again: the ledger keeps only what checks it.
    """
    with _opened(config) as (settings, ledger):
        streams = ledger.streams.streams.items()
        there = [name for name, one in streams if not one.is_dropped]
        _check_tables(settings, table or [], [*there, *ledger.collections.by_name])
        grant = Grant(
            analyst=analyst,
            groups=group or (),
            role=role,
            tables=(EVERY_TABLE,) if all_tables else table or (),
            expires=None if expires is None else expiry(expires),
            on_postgres=not no_postgres,
        )
        if certificate is None:
            credential, token = issue_token(ledger, grant, by=COMMAND_LINE)
            typer.echo(token)
        else:
            credential = issue_certificate(ledger, grant, certificate, by=COMMAND_LINE)
        _warn_of_look_alikes(ledger, [analyst, *(group or ())])
    until = "until it is revoked" if credential.expires is None else f"until {credential.expires}"
    typer.echo(f"Credential {credential.id} opens {_tables(credential)}, {until}.", err=True)


@tokens.command("list", epilog="Example: tacit token list --config tacit.toml")
def list_credentials(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List every credential that was ever issued, and whether PostgreSQL clients may use it."""
    with _opened(config) as (_, ledger):
        book, now = ledger.access, ledger.now()
        _warn_of_look_alikes(ledger)
    shown = _grid("id", "analyst", "groups", "role", "tables", "shown by", "PostgreSQL", "ends", "")
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
            "yes" if _is_for_postgres(credential) else "no",
            credential.expires or "",
            state,
        )
        shown.add_row(*map(plain, cells))
    console().print(shown)


@tokens.command("revoke", epilog="Example: tacit token revoke 1f2e3d4c --config tacit.toml")
def revoke_credential(
    credential: Annotated[
        str, typer.Argument(metavar="ID", help="The ID that `tacit token list` shows.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Revoke a credential; a running server applies this within about a second."""
    with _opened(config) as (_, ledger):
        revoke(ledger, credential, by=COMMAND_LINE)
    typer.echo(f"Credential {credential} is revoked.", err=True)


@limits.command(
    "set", epilog="Example: tacit limit set adult analyst:ann --epsilon 0.5 --window week"
)
def set_limit(  # noqa: PLR0913 - one parameter per option
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table whose budget is limited.")
    ],
    subject: Annotated[
        str,
        typer.Argument(
            metavar="WHOM",
            help="analyst:NAME, group:NAME, or each_analyst (everyone without a limit of their "
            "own).",
        ),
    ],
    *,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The most that may be spent in one window.")
    ] = None,
    window: Annotated[
        Window | None,
        typer.Option(help="The window in which spending counts; windows begin at midnight UTC."),
    ] = None,
    per_query: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The most that one query may spend.")
    ] = None,
    clear: Annotated[
        bool,
        typer.Option(
            "--clear",
            help=(
                "First remove the limit's present values; with no other option, remove the whole "
                "limit."
            ),
        ),
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Set a limit; what is left out stays as it is.

    The table's budget applies to everybody together, whatever the limits are. A limit with a window
    spreads the budget over time; it is no guarantee over a lifetime.
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
        console().print(_limits([(table, one) for one in limits_of(ledger, table)]))
        _warn_of_unused(settings, ledger, [table])


@limits.command("list", epilog="Example: tacit limit list --config tacit.toml")
def list_limits(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List the limits in force, and what is spent under each in its window."""
    with _opened(config) as (settings, ledger):
        names = [table.schema.table for table in settings.tables]
        found = [(name, one) for name in names for one in limits_of(ledger, name)]
        console().print(_limits(found))
        _warn_of_unused(settings, ledger, names)


def _limits(found: Iterable[tuple[str, LimitStatus]]) -> Table:
    """Limits with their tables, one line each."""
    return limits_table(
        (name, one.subject, one.window, (one.limit, one.spent, one.left, one.per_query))
        for name, one in found
    )


def _warn_of_unused(settings: Settings, ledger: Ledger, tables: Iterable[str]) -> None:
    """Say on standard error which limits name somebody whom no credential does."""
    known = ANONYMOUS.payer.subjects if settings.server.allow_anonymous else ()
    for table in tables:
        for sentence in unused_limits(ledger, table, known):
            typer.echo(f"WARNING: {table}: {sentence}", err=True)


def _warn_of_look_alikes(ledger: Ledger, of: Iterable[str] = ()) -> None:
    """Say on standard error which names look alike; only with one of some, if these are given."""
    payers = [credential.payer for credential in ledger.access.issued.values()]
    names = [name for payer in payers for name in (payer.analyst, *payer.groups)]
    known = set(of)
    told = warnings_of(names) if not known else warnings_beside(known, names)
    for sentence in told:
        typer.echo(f"WARNING: {sentence}", err=True)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Settings, Ledger]]:
    """A configuration and its ledger, for as long as a command runs."""
    settings = load(path)
    with open_configured(settings.ledger) as ledger:
        yield settings, ledger


def _check_tables(settings: Settings, names: Iterable[str], others: Iterable[str] = ()) -> None:
    known = [*(table.schema.table for table in settings.tables), *others]
    for name in names:
        if name == EVERY_TABLE:
            raise InvalidRequest(
                f"Tables are {listed(known)}.", hint="Use --all-tables for all of them."
            )
        if name not in known:
            raise unknown_table(name, known)


def _tables(credential: Credential) -> str:
    return "every table" if EVERY_TABLE in credential.tables else ", ".join(credential.tables)


def _is_for_postgres(credential: Credential) -> bool:
    """Whether it lets somebody in on the PostgreSQL wire: to query, with a password of theirs."""
    is_shown = credential.proof is Proof.CERTIFICATE or credential.verifier is not None
    return is_shown and credential.role in WHO_ASKS


def _grid(*headings: str) -> Table:
    shown = Table(header_style="bold")
    for heading in headings:
        shown.add_column(heading)
    return shown
