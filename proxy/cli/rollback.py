"""The command `tacit audit accept-rollback`: go on with a ledger that lacks entries.

The one of the audit commands that writes: an entry that says from then on what is not known. What
that is, accountant/ledger/mending.py finds out.
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


def accept_rollback(  # noqa: PLR0913 - one parameter an option
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
            help="The key of a ledger in PostgreSQL; its mark lies beside it.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who accepts it, as the ledger will say.")
    ] = "command line",
    public_key: PublicKeyOption = None,
    signed_heads: SignedHeadsOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Go on with a ledger that was set back, such as a backup that was restored.

    What was spent in the entries that are gone is not known any more, and the
    ledger forgets it: anybody who was given those answers still has them. This
    adds an entry that says so, which every audit and report shows from then
    on. Restore the newer ledger instead, if there is any way to; and set the
    budgets lower by what may have been spent.

    Stop every server of the ledger first, and keep what it refused: the mark,
    signed heads, and the files that were replaced.
    """
    if is_postgres(location) != (key is not None):
        raise ConfigurationInvalid(
            "A ledger in PostgreSQL is named with its key, and a file without: its key lies beside."
        )
    heads = [
        Position(signed.head.n_entries, signed.head.digest)
        for signed in read_heads(public_key, signed_heads or ())
    ]

    def confirm(loss: Loss) -> bool:
        typer.echo(_told(loss))
        return yes or typer.confirm("Go on with this ledger all the same?")

    loss = accept(location, key, heads, by=by, confirm=confirm)
    if loss is None:
        typer.echo("The ledger was not changed.")
        raise typer.Exit(1)
    typer.echo(f"Noted as entry {loss.found.n_entries + 1}; the mark is what the ledger is now.")
    for path in signed_heads or ():
        typer.echo(f"Keep {path} under another name: a server that signs there refuses to start.")


def _told(loss: Loss) -> str:
    found = f"The ledger ends with entry {loss.found.n_entries}, digest {loss.found.digest}."
    if loss.vouched is None:
        return f"{found}\nNothing is left that tells how many entries there had been."
    vouched = loss.vouched
    n_gone = max(0, vouched.n_entries - loss.found.n_entries)
    gone = f"At least {n_gone} are gone" if n_gone else "Another one stands in its place"
    return (
        f"{found}\nEntry {vouched.n_entries}, digest {vouched.digest}, was vouched for. {gone}, "
        "and what was spent in them is not known."
    )
