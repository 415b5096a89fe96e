"""`tacit serve` with several workers: the process that starts them, and what each of them does.

The first process holds the ports, the metrics' page and nothing else: no table, no ledger. The
workers listen beside each other, and the system gives each connection to one of them.
"""

import gc
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import structlog

from cube.refusals import CannotStart, TacitError
from proxy.cli.serving.ending import EndedEarly, Ending
from proxy.cli.serving.running import Running, metrics_hint, running
from proxy.cli.shared.failures import EXIT_CANNOT_START
from proxy.config.settings import Settings
from proxy.monitoring.logs import GatheredLines, configure_logs
from proxy.monitoring.service import application, serving_metrics
from proxy.workers.crew import Crew, Seat
from proxy.workers.port import held
from proxy.workers.supervisor import (
    CannotServe,
    End,
    Hear,
    Message,
    Orders,
    Roll,
    Serves,
    Supervisor,
    Vitals,
    WorkerProcess,
)

VITALS_SECONDS: Final = 1.0


def serve_with_workers(
    settings: Settings,
    config: Path,
    *,
    greet: Callable[[Iterable[str]], None],
    on_signal: Callable[[Callable[[], object]], None],
) -> None:
    """Serve with as many processes as the settings say, until a signal.

    Parameters
    ----------
    config : Path
        Where they are from, for the greeting.
    greet : callable
        Shows lines to the server's owner, once all workers serve.
    on_signal : callable
        Has a function called by the signals that end a server.

    Raises
    ------
    CannotStart
        Whichever of the processes finds what is wrong.
    """
    roll, n_places, server = Roll(), settings.server.workers, settings.server
    with ExitStack() as stack:
        listen = stack.enter_context(held(server.listen))
        postgres_listen = server.postgres_listen
        if postgres_listen is not None:
            postgres_listen = stack.enter_context(held(postgres_listen))
        metrics_address = None
        if server.metrics_listen is not None:
            pages = application(roll.registry, lambda: roll.is_ready)
            metrics_address = stack.enter_context(serving_metrics(server.metrics_listen, pages))
        # Its mode lets only this user in.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-")))
        own = replace(server, listen=listen, postgres_listen=postgres_listen, metrics_listen=None)

        def begin(place: int, hear: Hear) -> WorkerProcess:
            orders = Orders(
                replace(settings, server=own),
                config,
                Seat(place, n_places, folder),
                tells_metrics=metrics_address is not None,
            )
            return WorkerProcess(work, orders, hear)

        def tell(lines: tuple[str, ...]) -> None:
            told = list(lines)
            if metrics_address is not None:
                told.insert(-1, metrics_hint(metrics_address))
            greet(told)
            structlog.get_logger("tacit").info("serving", address=listen)

        supervisor = Supervisor(n_places, begin, roll)
        on_signal(supervisor.stop)
        supervisor.run(tell)
        structlog.get_logger("tacit").info("stopped", address=listen)


def work(orders: Orders, pipe: Connection) -> None:
    """What a worker's process does from its start to its end."""
    ended = Ending((signal.SIGTERM,))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process decides
    threading.Thread(target=_listen, args=(pipe, ended), name="tacit-orders", daemon=True).start()
    lines = GatheredLines(sys.stderr)
    configure_logs(lines, worker=orders.seat.place)
    try:
        _serve(orders, pipe, ended)
    except EndedEarly:
        pass
    except TacitError as why:
        _tell(pipe, CannotServe(why))
        sys.exit(EXIT_CANNOT_START)
    except Exception as error:  # noqa: BLE001 - its text may hold private data
        kind = type(error).__name__
        text = f"Something unexpected went wrong ({kind}). Nothing more is shown."
        _tell(pipe, CannotServe(CannotStart(text)))
        sys.exit(EXIT_CANNOT_START)
    finally:
        lines.write_out()  # such a process ends without what is registered for its exit
    gc.collect()  # otherwise objects of native modules would be reported as leaked at exit


def _serve(orders: Orders, pipe: Connection, ended: Ending) -> None:
    with ExitStack() as stack:
        with ended.at_once():
            crew = stack.enter_context(Crew(orders.seat))
            here = stack.enter_context(running(orders.settings, crew))
        _tell(pipe, Serves(tuple(here.greeting(orders.config))))
        while not ended.wait(VITALS_SECONDS):
            _tell(pipe, _vitals(here, orders))


def _vitals(here: Running, orders: Orders) -> Vitals:
    metrics = tuple(here.metrics.registry.collect()) if orders.tells_metrics else ()
    return Vitals(here.readiness.is_ready, metrics)


def _tell(pipe: Connection, message: Message) -> None:
    with suppress(OSError):  # the other process has stopped listening and is about to end
        pipe.send(message)


def _listen(pipe: Connection, ended: Ending) -> None:
    """Note the order to end, or that the process that gives it is gone."""
    with suppress(EOFError, OSError):
        while not isinstance(pipe.recv(), End):
            pass
    ended.ask()
