"""The command `tacit ledger set-clock`: the owner confirms that the clock is right now.

For a ledger whose entries were stamped by a clock that was ahead, and for one that was idle for so
long that the clock is no longer trusted.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from accountant.ledger.clock import utc_now
from accountant.ledger.mending import correct_clock
from proxy.admin.open_ledger import open_configured
from proxy.cli.options import ConfigOption
from proxy.config.settings import load

DEFAULT_CONFIG: Final = Path("tacit.toml")

app = typer.Typer(no_args_is_help=True, help="Correct the time of a ledger.")


@app.callback()
def _group() -> None:
    """Keep the name of the only command: typer would leave it out."""


@app.command("set-clock", epilog="Example: tacit ledger set-clock --config tacit.toml --by ann")
def set_clock(
    *,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who confirms it; recorded in the ledger.")
    ] = "command line",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Stamp entries with this machine's time from now on, whatever the last stamp was.

    Set the machine's clock right first. If the last entry has a later time, charges stamped in the
    future count as of now: in the windows of limits that are open now, and in no later ones. If it
    has a much earlier time, this records that the ledger was idle meanwhile. Budgets do not depend
    on the time.
    """
    with open_configured(load(config).ledger) as ledger:
        last = ledger.last_at or "there is none"
        typer.echo(f"Last entry:   {last}\nClock here:   {utc_now()}")
        if not yes and not typer.confirm("Is this clock right?"):
            typer.echo("The ledger was not changed.")
            raise typer.Exit(1)
        correct_clock(ledger, by=by)
    typer.echo("Recorded. A running server applies it within about a second.")
