"""The command `tacit serve`: one process from its configuration to its end by signal."""

import ctypes
import gc
import resource
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import structlog
import typer
from rich.text import Text
from threadpoolctl import threadpool_limits

from proxy.api.requests import BudgetStatus
from proxy.bootstrap import build
from proxy.cli.rendering import console
from proxy.cli.wires import start_wires, tls_identity
from proxy.config.server import ServerSettings
from proxy.config.settings import load
from proxy.monitoring.gathered_lines import GatheredLines
from proxy.monitoring.health import Monitoring, Readiness
from proxy.monitoring.logs import configure_logs
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import watching
from proxy.wire.server import SERVICES

# Parameters of glibc's <malloc.h>, and their values.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
BLOCK_BYTES: Final = 2**24  # smaller blocks are too frequent to request each from the system
N_ARENAS: Final = 2
GRACE_SECONDS: Final = 5.0  # for calls in flight; their purchases are in the ledger in any case


app = typer.Typer()


@app.command(epilog="Example: tacit serve examples/adult/tacit.toml")
def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The TOML file that `tacit init` drafts.")
    ],
) -> None:
    """Serve the tables of a configuration until Ctrl-C.

    TACIT_SERVER__LISTEN=HOST:PORT in the environment overrides the file's address.
    """
    settings = load(config)
    configure_logs(GatheredLines(sys.stderr))
    # Requests run in parallel. On matrices this small, several threads of linear algebra per
    # request would wait for one another longer than they compute.
    threadpool_limits(limits=1)
    give_memory_back()
    allow_many_connections()
    wait = _wait_for_signals()
    tls = tls_identity(settings.server)
    metrics = Metrics(table.schema.table for table in settings.tables)
    service = build(settings, metrics)
    readiness = Readiness(SERVICES)
    # What is alive now stays alive: the collector need not scan it again during queries.
    gc.freeze()
    try:
        with (
            service.advancing,
            service.renewing,
            watching(
                service, metrics, readiness, settings.server.metrics_listen
            ) as metrics_address,
        ):
            wires = start_wires(settings, service, tls, Monitoring(metrics, readiness))
            address = wires.grpc.address
            try:
                told = greeting(address, service.budgets(), settings.server, config)
                if wires.postgres is not None:
                    told.insert(-1, postgres_hint(wires.postgres.address, settings.server))
                if metrics_address is not None:
                    told.insert(-1, f"Metrics: http://{metrics_address}/metrics")
                for line in told:
                    console().print(Text(line), soft_wrap=True)
                structlog.get_logger("tacit").info("serving", address=address)
                wait()
                readiness.end()
            finally:
                wires.stop(GRACE_SECONDS)
                structlog.get_logger("tacit").info("stopped", address=address)
    finally:
        service.close()
        gc.unfreeze()  # otherwise objects of native modules would be reported as leaked at exit


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


def allow_many_connections() -> None:
    """Raise the process's limit on open files, and so on connections, as far as allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems report a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def give_memory_back() -> None:
    """Make the C library return large blocks to the system, if it supports that.

    By default glibc keeps what one heavy statement needed, for each of many threads.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_ARENA_MAX, N_ARENAS)


def _wait_for_signals() -> Callable[[], object]:
    """Handle SIGINT and SIGTERM; the result waits for the first of them."""
    stopped = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    return stopped.wait
