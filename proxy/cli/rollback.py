"""The command `tacit audit accept-rollback`: continue with a ledger that lacks entries.

It is the only audit command that writes to the ledger: an entry that records the loss.
accountant/ledger/mending.py determines what is missing.
"""

from pathlib import Path
from typing import Annotated

import typer

from accountant.ledger.mending import Loss
from accountant.ledger.mending import accept_rollback as accept
from accountant.ledger.stores.mark import Position
from accountant.ledger.stores.postgres_location import is_postgres
from cube.refusals import ConfigurationInvalid
from proxy.cli.ledger import PublicKeyOption, SignedHeadsOption, read_heads


def accept_rollback(  # noqa: PLR0913 - one parameter per option
    location: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER", help="The ledger's file, or postgresql://USER@HOST/DATABASE."
        ),
    ],
    *,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The key of a ledger in PostgreSQL; its mark is a file beside it.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who accepts it; recorded in the ledger.")
    ] = "command line",
    public_key: PublicKeyOption = None,
    signed_heads: SignedHeadsOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Continue with a ledger that was set back, such as a restored backup.

    What was spent in the missing entries is unknown, and the ledger no longer counts it, but
    whoever received those answers still has them. This adds an entry that records the loss, which
    every audit and report shows from then on. If there is any way to, restore the newer ledger
    instead; otherwise lower the budgets by what may have been spent.

    Stop every server of the ledger first, and keep the evidence: the mark, signed heads, and the
    files that were replaced.
    """
    if is_postgres(location) != (key is not None):
        raise ConfigurationInvalid(
            "--key is needed for a ledger in PostgreSQL, and only there: a file's key is beside it."
        )
    heads = [
        Position(signed.head.n_entries, signed.head.digest)
        for signed in read_heads(public_key, signed_heads or ())
    ]

    def confirm(loss: Loss) -> bool:
        typer.echo(_told(loss))
        return yes or typer.confirm("Continue with this ledger all the same?")

    loss = accept(location, key, heads, by=by, confirm=confirm)
    if loss is None:
        typer.echo("The ledger was not changed.")
        raise typer.Exit(1)
    typer.echo(f"Recorded as entry {loss.found.n_entries + 1}; the mark now matches the ledger.")
    for path in signed_heads or ():
        typer.echo(f"Keep {path} under another name: a server that signs there refuses to start.")


def _told(loss: Loss) -> str:
    found = f"The ledger ends with entry {loss.found.n_entries}, digest {loss.found.digest}."
    if loss.vouched is None:
        return f"{found}\nNothing shows how many entries there had been."
    vouched = loss.vouched
    n_gone = max(0, vouched.n_entries - loss.found.n_entries)
    gone = f"At least {n_gone} are missing" if n_gone else "A different entry is in its place"
    return (
        f"{found}\nEntry {vouched.n_entries}, digest {vouched.digest}, was vouched for. {gone}, "
        "and what was spent in them is unknown."
    )
