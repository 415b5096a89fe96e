"""What `tacit serve` tells its owner once it serves: where, to whom, and commands to try."""

import shlex
from pathlib import Path

from proxy.api.requests import BudgetStatus
from proxy.config.server import ServerSettings


def greeting(
    address: str, budgets: tuple[BudgetStatus, ...], server: ServerSettings, config: Path
) -> list[str]:
    """The lines for the server's owner: its address, who has access, and what is left."""
    scheme = "grpc" if server.tls is None else "grpc+tls"
    header = '"adbc.flight.sql.authorization_header": "Bearer TOKEN"'
    shown = "" if server.allow_anonymous else f", db_kwargs={{{header}}}"
    tables = [f"  {budget.table}: {budget.left_text}" for budget in budgets]
    return [
        f"Tacit serves on {address}",
        *tables,
        who_may_come_in(server),
        f"ADBC: adbc_driver_flightsql.dbapi.connect({scheme + '://' + address!r}{shown})",
        *shell_hints(address, server, config),
        "Ctrl-C stops it.",
    ]


def postgres_hint(address: str, server: ServerSettings) -> str:
    """How PostgreSQL's clients connect."""
    host, _, port = address.rpartition(":")
    user = "anonymous" if server.allow_anonymous else "ANALYST"
    tls = "" if server.tls is None else " sslmode=require"
    shown = f"host={host.strip('[]')} port={port} dbname=tacit user={user}{tls}"
    password = "" if server.allow_anonymous else ", with a token as the password"
    return f'PostgreSQL: psql "{shown}"{password}'


def metrics_hint(address: str) -> str:
    """Where the metrics are."""
    return f"Metrics: http://{address}/metrics"


def respondents_hint(address: str) -> str:
    """Where respondents in browsers are served."""
    return f"Respondents: http://{address}/collections/"


def shell_hints(address: str, server: ServerSettings, config: Path) -> list[str]:
    """Commands that work as they are printed; with a certificate, if it is its own authority."""
    options = [f"--server {address}"]
    if server.tls is not None:
        options.append(f"--tls-ca {shlex.quote(str(server.tls.certificate))}")
    hints = []
    if not server.allow_anonymous:
        issue = f"tacit token issue --config {shlex.quote(str(config))} --analyst me --all-tables"
        hints.append(f"A first token: (umask 077; {issue} > me.token)")
        options.append("--token-file me.token")
    return [*hints, f"Shell: tacit tables {' '.join(options)}"]


def who_may_come_in(server: ServerSettings) -> str:
    """One sentence on who has access."""
    if server.allow_anonymous:
        return (
            "ANYBODY on this machine may query without a credential, as the analyst 'anonymous' "
            "(allow_anonymous)."
        )
    if server.tls is not None and server.tls.client_ca is not None:
        return "Clients need a certificate registered with `tacit token issue --certificate`."
    return "Clients need a token issued by `tacit token issue`."
