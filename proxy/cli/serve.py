"""The command `tacit serve`: from a configuration to the end by signal, in one process or more."""

import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated

import structlog
import typer
from rich.text import Text

from proxy.cli.serving.crew import serve_with_workers
from proxy.cli.serving.ending import EndedEarly, Ending
from proxy.cli.serving.running import running
from proxy.cli.shared.rendering import console
from proxy.config.server import N_WORKERS_MAX
from proxy.config.settings import Settings, load
from proxy.monitoring.logs import GatheredLines, configure_logs

app = typer.Typer()


@app.command(epilog="Example: tacit serve examples/adult/tacit.toml")
def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The TOML file that `tacit init` drafts.")
    ],
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=N_WORKERS_MAX,
            help="Serve with this many processes on one port: try one for each processor core. "
            "Each has the tables in memory. Overrides the file's workers.",
        ),
    ] = None,
) -> None:
    """Serve the tables of a configuration until Ctrl-C, or SIGTERM.

    TACIT_SERVER__LISTEN=HOST:PORT in the environment overrides the file's address.
    """
    settings = load(config)
    if workers is not None:
        settings = replace(settings, server=replace(settings.server, workers=workers))
    configure_logs(GatheredLines(sys.stderr))
    if settings.server.workers > 1:
        serve_with_workers(settings, config, greet=_tell, on_signal=_on_signals)
    else:
        _serve_alone(settings, config)


def _serve_alone(settings: Settings, config: Path) -> None:
    ending = Ending()
    with suppress(EndedEarly), ExitStack() as stack:
        with ending.at_once():
            here = stack.enter_context(running(settings))
        _tell(here.greeting(config))
        structlog.get_logger("tacit").info("serving", address=here.wires.grpc.address)
        ending.wait()


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        console().print(Text(line), soft_wrap=True)


def _on_signals(stop: Callable[[], object]) -> None:
    """Have SIGINT and SIGTERM call a function, which must be one that a handler may call."""

    def note(_number: int, _frame: FrameType | None) -> None:
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
