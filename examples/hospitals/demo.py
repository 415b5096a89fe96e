"""The demo of federated tables: three hospitals, a coordinator, and a session with all of them.

Everything is real: four ``tacit serve`` processes, each with a ledger of its own; a token with a
limit from each hospital for the coordinator; an analyst who asks the coordinator by SQL. The
patients are made up (`patients.py`). Run it with ``python -m examples.hospitals.demo``.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from rich.markup import escape

import tacit_client
from accountant.ledger.credentials import Role
from examples.adult.demo import serving
from examples.hospitals.patients import (
    HOSPITALS,
    TABLE,
    Hospital,
    coordinator_config,
    holder_config,
    write_holder,
)
from proxy.admin.ledger_admin import LimitChange, change_limit, open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token

ROOT: Final = Path(__file__).resolve().parents[2]
COUNT: Final = "SELECT COUNT(*) AS patients FROM patients"
BY_WARD: Final = "SELECT ward, COUNT(*) AS patients FROM patients GROUP BY ward ORDER BY ward"
OLD_AT_HEART: Final = f"{COUNT} WHERE ward = 'heart' AND age IN ('65-79', '80+')"
LONG_STAYS: Final = f"{COUNT} WHERE days > 7"
BY_AGE: Final = "SELECT age, AVG(days) AS days, COUNT(*) AS n"
ANY: Final = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(holders => 'any')"
EPSILON: Final = "0.3"  # of each synthetic table
EVALUATE: Final = "0.05"  # of how far its rows are
WAYS: Final = {
    "pairs": "method => 'pairwise'",
    "sums": "method => 'privbayes', structure => 'statistics'",
    "votes": "method => 'privbayes', structure => 'votes'",
    "models": "method => 'privbayes', structure => 'models'",
}
N_COLUMNS: Final = 140


@dataclass
class Running:
    """A server of the demo, which can be stopped and started again at the same address."""

    config: Path
    address: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start the process."""
        self.address = self._stack.enter_context(serving(self.config))

    def stop(self) -> None:
        """End the process."""
        self._stack.close()


def main() -> int:
    """Run the demo and leave nothing behind; the exit code of the audit."""
    terminal = Console(highlight=False)
    console = terminal if terminal.width >= N_COLUMNS else Console(highlight=False, width=N_COLUMNS)
    with tempfile.TemporaryDirectory(prefix="tacit-hospitals-") as folder:
        session(console, Path(folder))
        return compare(console, Path(folder))


def session(console: Console, folder: Path) -> None:
    """Start all servers, ask, and stop them."""
    with hospitals(folder) as (holders, tokens, owners):
        addresses = {name: one.address for name, one in holders.items()}
        for name, at in addresses.items():
            console.print(f"The hospital {name} serves patients that it shows nobody, at {at}")
        config = coordinator_config(folder / "coordinator", addresses, tokens)
        analyst = issued(config, Grant(analyst="ann", tables=(TABLE,)))
        with (
            serving(config) as address,
            tacit_client.connect(address, token=analyst) as connection,
        ):
            console.print(f"A coordinator without a patient of its own: {address}")
            ask_all(console, connection, holders["valley"])
            show_budgets(console, addresses, owners)
            synthetic_tables(console, connection)
            show_budgets(console, addresses, owners)


@contextmanager
def hospitals(
    folder: Path,
) -> Iterator[tuple[dict[str, Running], dict[str, str], dict[str, str]]]:
    """The hospitals' servers by name, with the tokens of the coordinator and of the owners."""
    draw = np.random.default_rng(7)  # of the made-up patients; no noise has a seed
    with ExitStack() as stack:
        running, tokens, owners = {}, {}, {}
        for hospital in HOSPITALS:
            config = holder_config(folder / hospital.name, hospital, draw)
            one = running[hospital.name] = Running(config)
            stack.callback(one.stop)
            one.start()
            tokens[hospital.name] = granted(config, hospital)
            owner = Grant(analyst="owner", role=Role.OWNER, tables=(TABLE,))
            owners[hospital.name] = issued(config, owner)
            write_holder(config, hospital, one.address)  # it starts again where it was
        yield running, tokens, owners


def granted(config: Path, hospital: Hospital) -> str:
    """What the hospital's owner does for the coordinator: a limit, and a token of its own role.

    On the command line, it is ``tacit limit set`` and ``tacit token issue --role federation``.
    """
    limit = LimitChange(subject="analyst:coordinator", epsilon=hospital.limit, window="never")
    with open_configured(load(config).ledger) as ledger:
        change_limit(ledger, TABLE, limit, by="the demo")
    return issued(config, Grant(analyst="coordinator", role=Role.FEDERATION, tables=(TABLE,)))


def issued(config: Path, grant: Grant) -> str:
    """A new token, as ``tacit token issue`` makes it."""
    with open_configured(load(config).ledger) as ledger:
        return issue_token(ledger, grant, by="the demo")[1]


def ask_all(console: Console, connection: tacit_client.Connection, valley: Running) -> None:
    """The questions of the analyst."""
    show(console, connection, "How many patients do all hospitals have?", COUNT)
    show(console, connection, "By ward", BY_WARD)
    show(console, connection, "The same again: free", BY_WARD)
    show(console, connection, "Old patients of the heart wards, narrower", OLD_AT_HEART, 80)
    valley.stop()
    show(console, connection, "valley's server is stopped: what is known is answered", BY_WARD)
    show(console, connection, "What is not known needs all three hospitals", LONG_STAYS)
    some = LONG_STAYS.replace("SELECT", ANY, 1)
    show(console, connection, "or those that can answer, which the answer says", some)
    valley.start()
    show(console, connection, "valley is back: it alone is asked", LONG_STAYS)


def show(
    console: Console,
    connection: tacit_client.Connection,
    title: str,
    sql: str,
    half_width: float | None = None,
) -> None:
    """Ask, and print the answer with its interval and cost; or its refusal."""
    heading(console, title)
    within = "" if half_width is None else f"   (within {half_width:g})"
    console.print(f"[dim]{escape(sql)}{within}[/]")
    try:
        console.print(escape(str(connection.sql(sql, half_width=half_width))))
    except tacit_client.Refused as refusal:
        console.print(f"refused: {escape(refusal.message)}")


def synthetic_tables(console: Console, connection: tacit_client.Connection) -> None:
    """A synthetic table of all patients by each way, and one question to all of them."""
    for name, way in WAYS.items():
        options = f"epsilon => {EPSILON}, evaluate => {EVALUATE}, {way}"
        sql = f"CREATE SYNTHETIC TABLE {name} FROM {TABLE} WITH ({options})"
        heading(console, f"A synthetic table: {way}")
        console.print(f"[dim]{escape(sql)}[/]")
        (made,) = connection.sql(sql).to_arrow().to_pylist()
        console.print(f"Mean distance of pairs of columns: {made['evaluated']}")
        found = connection.sql(f"{BY_AGE} FROM {name} GROUP BY age ORDER BY age")
        console.print(escape(str(found)))


def show_budgets(console: Console, addresses: dict[str, str], owners: dict[str, str]) -> None:
    """Ask each hospital's server, as its owner, what was spent there."""
    heading(console, "What each hospital's own ledger says")
    for hospital in HOSPITALS:
        name = hospital.name
        with tacit_client.connect(addresses[name], token=owners[name]) as connection:
            (row,) = connection.budget().to_arrow().to_pylist()
        console.print(
            f"{name}: epsilon {row['spent']:.4f} of {row['budget']:g} spent; "
            f"the coordinator may spend {hospital.limit}"
        )


def heading(console: Console, title: str) -> None:
    """A line of its own above what follows."""
    console.print(f"\n[bold]{escape(title)}[/]")


def compare(console: Console, folder: Path) -> int:
    """Lay the ledgers side by side with the command that an auditor uses; its exit code."""
    heading(console, "The ledgers of the coordinator and of the hospitals, side by side")
    held = [f"{one.name}/{one.name}.ledger" for one in HOSPITALS]
    given = [part for one in held for part in ("--holder", one)]
    arguments = ["audit", "compare", "coordinator/coordinator.ledger", *given]
    console.print(f"[dim]tacit {' '.join(arguments)}[/]")
    done = subprocess.run(  # noqa: S603 - our own command on our own files
        [sys.executable, "-m", "proxy", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(N_COLUMNS)},
        capture_output=True,
        text=True,
        check=False,
    )
    console.print(escape(done.stdout + done.stderr))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
