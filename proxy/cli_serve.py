"""`tacit serve`: one process from its configuration to its end by signal.

Kept out of `proxy.cli`, so that a client command does not load the engine.
"""

import gc
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import structlog
from rich.console import Console
from rich.text import Text
from threadpoolctl import threadpool_limits

from proxy import config
from proxy.answers import BudgetStatus
from proxy.bootstrap import build
from proxy.logs import configure_logs
from proxy.server import TlsIdentity, start_server

GRACE_SECONDS = 5.0  # for calls in flight; what they bought is in the ledger in any case


def serve(path: Path, console: Console) -> None:
    """Serve the tables of a configuration file until SIGINT or SIGTERM."""
    settings = config.load(path)
    configure_logs()
    # Requests are the parallelism. Two threads of linear algebra each, on matrices this small,
    # wait for one another longer than they compute.
    threadpool_limits(limits=1)
    stop = _stop_on_signals()
    files = settings.server.tls
    tls = None if files is None else TlsIdentity.load(files.certificate, files.key)
    service = build(settings)
    # What is alive now stays: the collector need not look at it again, during a query, for nothing.
    gc.freeze()
    try:
        server, address = start_server(service.engine, settings.server.listen, tls, service.public)
        for line in greeting(address, service.engine.budgets(), is_tls=tls is not None):
            console.print(Text(line), soft_wrap=True)
        structlog.get_logger("tacit").info("serving", address=address)
        stop()
        server.stop(GRACE_SECONDS).wait()
        structlog.get_logger("tacit").info("stopped", address=address)
    finally:
        service.close()
        gc.unfreeze()  # or what native modules hold would be reported as leaked on the way out


def greeting(address: str, budgets: tuple[BudgetStatus, ...], *, is_tls: bool) -> list[str]:
    """What the owner of the data should see: where it listens, what is left, how to connect."""
    scheme = "grpc+tls" if is_tls else "grpc"
    tables = [
        f"  {budget.table}: epsilon {float(budget.left):.6g} of {float(budget.limit):.6g} left"
        for budget in budgets
    ]
    return [
        f"Tacit serves on {address}",
        *tables,
        f"ADBC: adbc_driver_flightsql.dbapi.connect({scheme + '://' + address!r})",
        f"Shell: tacit tables --server {address}",
        "Ctrl-C stops it.",
    ]


def _stop_on_signals() -> Callable[[], None]:
    """Take over SIGINT and SIGTERM; the result waits for the first of them."""
    stopped = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)

    def wait() -> None:
        stopped.wait()

    return wait
