"""The commands `tacit table` and `tacit ledger`: closed periods, replaced data, and the clock.

How far tables that grow are readable, and data that is replaced: these read the data. All of them
write to the ledger that a configuration names, with or without a running server, which follows
within about a second.

By `tacit ledger set-clock` the owner confirms that the clock is right now: for a ledger whose
entries were stamped by a clock that was ahead, and for one that was idle for so long that the clock
is no longer trusted.
"""

import calendar
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from accountant.ledger.clock import utc_now
from accountant.ledger.ledger import Ledger
from accountant.ledger.mending import correct_clock
from cube.refusals import CannotStart, InvalidRequest
from planner.domain.relations import units_table
from planner.sql.messages import listed
from proxy.admin import periods
from proxy.admin.ledger_admin import open_configured
from proxy.cli.shared.options import ConfigOption
from proxy.config.settings import Settings, load
from proxy.config.table_settings import TableSettings
from proxy.shared.renewal_text import renewal_words

DEFAULT_CONFIG: Final = Path("tacit.toml")
_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
COMMAND_LINE: Final = "command line"  # the author that the ledger records

app = typer.Typer(
    no_args_is_help=True, help="Make more of a growing table readable, or replace a table's data."
)


@app.command(epilog="Example: tacit table advance orders --to 2026-11-30")
def advance(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table with `grows`.")],
    *,
    to: Annotated[
        str, typer.Option(metavar="LEVEL", help="The last day, or number, whose rows are closed.")
    ],
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so; recorded in the ledger.")
    ] = COMMAND_LINE,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Make more of a table readable: the rows through a day.

    From then on, every query means the rows through that day, and no row of it may be added, taken
    away or changed. That costs nothing; a horizon never goes back.
    """
    settings = load(config)
    with open_configured(settings.ledger) as ledger:
        found = periods.advance(ledger, _named(settings, table), to, by=by)
    typer.echo(f"{table} is readable through {found.last}.")


@app.command("accept-changes", epilog="Example: tacit table accept-changes orders --period 2026-10")
def accept_changes(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table with `grows`.")],
    *,
    period: Annotated[
        str,
        typer.Option(
            metavar="PERIOD",
            help="A month, such as 2026-10; a day, moment or number; or FIRST..LAST.",
        ),
    ],
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so; recorded in the ledger.")
    ] = COMMAND_LINE,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Go on with closed rows that were changed, added or taken away.

    What was measured of them no longer answers, and what it cost stays spent: every group of these
    rows counts as if it had cost as much as the dearest of them. Other rows must be as they were.
    """
    settings = load(config)
    first, last = _ends(period)
    with open_configured(settings.ledger) as ledger:
        chosen = _named(settings, table)
        found = periods.accept_changes(ledger, chosen, first, last, by=by)
        if not found:
            typer.echo(f"No closed row of {table} has changed.")
            return
        axis = periods.status(ledger, chosen).axis
    start = periods.level_text(axis, found[0].start)
    end = periods.level_text(axis, found[-1].end - 1)
    typer.echo(f"{table} goes on with its rows from {start} through {end} as they are now.")


@app.command(epilog="Example: tacit table renew customers")
def renew(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table without `grows`.")],
    *,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who says so; recorded in the ledger.")
    ] = COMMAND_LINE,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Go on with data that was replaced: a new generation of a table, under the same budget.

    What was measured of the earlier data answers only AS OF a day of its own. What it cost stays
    spent: a person may be in both, and has paid for both.
    """
    settings = load(config)
    with open_configured(settings.ledger) as ledger:
        tables = _with_units(ledger, settings, _named(settings, table))
        found = periods.renew(ledger, tables, by=by)
    for one, begun in zip(tables, found, strict=True):
        _say_begun(one.schema.table, begun)


def _say_begun(table: str, begun: periods.GenerationStatus | None) -> None:
    if begun is None:
        typer.echo(f"The data of {table} has not changed.")
        return
    typer.echo(f"{table} begins generation {begun.number}, with its data as it is now.")
    budget, renewing_on = begun.budget, ""
    if (when := budget.renewal) is not None:
        words = renewal_words(when.next_day, when.spent_in_year, when.spent_in_all)
        renewing_on = f"; {words}"
    typer.echo(
        f"  budget: {float(budget.spent):.6g} of {float(budget.limit):.6g} spent, "
        f"{float(budget.left):.6g} left, for all generations together{renewing_on}"
    )
    typer.echo(f"  earlier answers: FROM {table} AS OF a day or moment before {begun.since} UTC")


def _ends(period: str) -> tuple[str, str]:
    """The first and the last level of a period, as text.

    >>> _ends("2026-02"), _ends("2026-02-03"), _ends("3..7")
    (('2026-02-01', '2026-02-28'), ('2026-02-03', '2026-02-03'), ('3', '7'))
    >>> _ends("2026-02..2026-03")
    ('2026-02-01', '2026-03-31')
    """
    first, _, last = period.partition("..")
    return _days(first)[0], _days(last or first)[1]


def _days(written: str) -> tuple[str, str]:
    """The first and the last day of a month; a level twice."""
    if _MONTH.fullmatch(written) is None:
        return written, written
    year, month = map(int, written.split("-"))
    return f"{written}-01", f"{written}-{calendar.monthrange(year, month)[1]}"


@app.command(epilog="Example: tacit table status")
def status(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A private table; all, if left out.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Show how far tables are readable, and whether their data has changed.

    Exits with 1 if some has: nothing is measured of such a table.
    """
    settings = load(config)
    chosen = settings.tables if table is None else [_named(settings, table)]
    with open_configured(settings.ledger) as ledger:
        has_changed = [_shown(ledger, one, is_one=table is not None) for one in chosen]
    if any(has_changed):
        raise typer.Exit(1)


def _shown(ledger: Ledger, table: TableSettings, *, is_one: bool) -> bool:
    """Print the status of a table; of several, what is wrong with one hides no other."""
    show = _show_generation if table.closing is None else _show
    try:
        return show(ledger, table)
    except (CannotStart, InvalidRequest) as refusal:
        if is_one:
            raise
        typer.echo(f"{table.schema.table}: {refusal.explain()}", err=True)
        return True


def _show_generation(ledger: Ledger, table: TableSettings) -> bool:
    """Print the generation of a table that does not grow; whether its data has changed."""
    found, is_same = periods.generation(ledger, table)
    name = table.schema.table
    typer.echo(f"{name} is in generation {found.number}, since {found.since} UTC.")
    if not is_same:
        typer.echo(f"  its data has been replaced since: accept it with `tacit table renew {name}`")
    return not is_same


def _show(ledger: Ledger, table: TableSettings) -> bool:
    """Print the status of a table; whether closed rows have changed."""
    found = periods.status(ledger, table)
    name = table.schema.table
    typer.echo(
        f"{name} is readable through {found.axis.name} {found.last}; {found.n_periods} "
        f"period{'' if found.n_periods == 1 else 's'}."
    )
    for period in found.changed:
        first = periods.level_text(found.axis, period.start)
        last = periods.level_text(found.axis, period.end - 1)
        typer.echo(f"  changed since it was closed: {first} to {last}")
    return bool(found.changed)


def _named(settings: Settings, name: str) -> TableSettings:
    for table in settings.tables:
        if table.schema.table == name:
            return table
    known = listed([one.schema.table for one in settings.tables])
    raise InvalidRequest(f"There is no table {name}.", hint=f"Tables are {known}.")


def _with_units(ledger: Ledger, settings: Settings, table: TableSettings) -> list[TableSettings]:
    """A table, and that of its units, which has the same data, once it has been served."""
    own = units_table(table.schema.table)
    if ledger.history(own).opened is None:
        return [table]
    return [table, *(one for one in settings.tables if one.schema.table == own)]


CLOCK_CONFIG: Final = Path("tacit.toml")

clock = typer.Typer(no_args_is_help=True, help="Correct the time of a ledger.")


@clock.callback()
def _group() -> None:
    """Keep the name of the only command: typer would leave it out."""


@clock.command("set-clock", epilog="Example: tacit ledger set-clock --config tacit.toml --by ann")
def set_clock(
    *,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who confirms it; recorded in the ledger.")
    ] = "command line",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    config: ConfigOption = CLOCK_CONFIG,
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
