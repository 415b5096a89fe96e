"""The demo: load the Adult census table, start the proxy, run ten queries, run them again.

Everything is real: a DuckDB file, a token of its own for the analyst and for the owner, the ``tacit
serve`` process on a free port, and the ADBC Flight SQL driver as the client. Run it with ``make
demo``.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import duckdb
import grpc
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from accountant.ledger.credentials import EVERY_TABLE, Role
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

HERE = Path(__file__).resolve().parent
ADDRESS = re.compile(r"grpc://([0-9.]+:[0-9]+)")

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
QUESTIONS = (
    ("How many people are in the table?", "SELECT COUNT(*) AS people FROM adult"),
    ("How many are 65 or older?", "SELECT COUNT(*) AS elders FROM adult WHERE age >= 65"),
    (
        "Graduates who earn more than 50K",
        "SELECT COUNT(*) AS graduates FROM adult WHERE education_num >= 13 AND income = '>50K'",
    ),
    (
        "People by marital status",
        "SELECT marital_status, COUNT(*) AS people FROM adult GROUP BY marital_status",
    ),
    (
        "Never married? The groups already say",
        "SELECT COUNT(*) AS unmarried FROM adult WHERE marital_status = 'Never-married'",
    ),
    (
        "Twice the high earners, less ten",
        "SELECT 2 * COUNT(*) FILTER (WHERE income = '>50K') - 10 AS doubled FROM adult",
    ),
    (
        "The sum of all ages, within 20,000",
        f"{DP}(half_width => 20000, confidence => 0.95) SUM(age) AS years FROM adult",
    ),
    (
        "Long weeks by sex, within 150 at 90 %",
        (
            f"{DP}(half_width => 150, confidence => 0.90) sex, "
            "SUM(CASE WHEN hours_per_week > 45 THEN 1 ELSE 0 END) AS long_weeks "
            "FROM adult GROUP BY sex"
        ),
    ),
    (
        "Within half a person: out of budget",
        (
            f"{DP}(half_width => 0.5, confidence => 0.95) COUNT(*) AS divorced "
            "FROM adult WHERE marital_status = 'Divorced' AND age < 30"
        ),
    ),
    ("The oldest person: refused", "SELECT MAX(age) FROM adult"),
)
N_ASKED_AGAIN = 5
N_COLUMNS = 140  # narrower terminals wrap lines instead of words


def main() -> None:
    """Run the demo and leave nothing behind."""
    terminal = Console(highlight=False)
    console = terminal if terminal.width >= N_COLUMNS else Console(highlight=False, width=N_COLUMNS)
    with tempfile.TemporaryDirectory(prefix="tacit-demo-") as folder:
        config = prepare(Path(folder))
        analyst, owner = issue_tokens(config)
        with serving(config) as address:
            console.print(f"[bold]Tacit is serving the Adult census table at grpc://{address}[/]")
            console.print(f"Ann's token: {analyst[:12]}... (shown once, known by its hash)")
            with flight_sql.connect(
                f"grpc://{address}",
                db_kwargs={"adbc.flight.sql.authorization_header": f"Bearer {analyst}"},
                autocommit=True,
            ) as connection:
                ask_all(console, connection, "First time", QUESTIONS)
                ask_all(console, connection, "Again", QUESTIONS[:N_ASKED_AGAIN])
            show_budget(console, address, owner)


def prepare(folder: Path) -> Path:
    """Load the CSV into a DuckDB file and write a configuration that serves it."""
    with duckdb.connect(str(folder / "adult.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE adult AS SELECT * FROM read_csv(?, header = true)",
            [str(HERE / "adult.csv")],
        )
    text = (HERE / "tacit.toml").read_text()
    for pattern, replacement in (
        (r"(?m)^listen = .*$", 'listen = "127.0.0.1:0"'),
        (r"(?m)^allow_anonymous = .*$", "allow_anonymous = false"),
        (r"(?m)^source = .*$", 'source = "adult.duckdb"\nsource_table = "adult"'),
        (r"(?m)^path = .*$", 'path = "demo.ledger"'),
    ):
        text, n_replaced = re.subn(pattern, replacement, text)
        if n_replaced != 1:
            raise RuntimeError(
                f"tacit.toml should have one line that matches {pattern}, and has {n_replaced}"
            )
    config = folder / "tacit.toml"
    config.write_text(text)
    return config


def issue_tokens(config: Path) -> tuple[str, str]:
    """Issue two tokens as ``tacit token issue`` does: for the analyst Ann and the table's owner."""
    with open_configured(load(config).ledger) as ledger:
        grants = (
            Grant(analyst="ann", tables=("adult",)),
            Grant(analyst="owner", role=Role.OWNER, tables=(EVERY_TABLE,)),
        )
        analyst, owner = (issue_token(ledger, grant, by="the demo")[1] for grant in grants)
    return analyst, owner


@contextmanager
def serving(config: Path) -> Iterator[str]:
    """Run ``tacit serve`` as its own process; yields the address it printed."""
    command = [sys.executable, "-m", "proxy", "serve", str(config)]
    log = config.with_name("server.log")  # a pipe that is not read would block the server
    with (
        log.open("w") as log_file,
        subprocess.Popen(  # noqa: S603 - our own command on our own file
            command, stdout=subprocess.PIPE, stderr=log_file, text=True
        ) as process,
    ):
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout or ())), None)
            if address is None:
                raise RuntimeError(
                    f"tacit serve stopped before it printed an address: {log.read_text()}"
                )
            yield address[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def ask_all(
    console: Console,
    connection: flight_sql.Connection,
    title: str,
    questions: tuple[tuple[str, str], ...],
) -> None:
    """Run each query and show the answers in one table."""
    table = Table(title=title, title_justify="left", show_lines=True)
    for heading in ("question", "answer", "interval", "confidence", "epsilon", "source"):
        is_text = heading in {"question", "answer"}
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=not is_text)
    for question, sql in questions:
        table.add_row(question, *ask(connection, sql))
    console.print(table)


def ask(connection: flight_sql.Connection, sql: str) -> tuple[str, str, str, str, str]:
    """Run one query through ADBC: answer, interval, confidence, epsilon and source as text."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
            result = cursor.fetch_arrow_table()
        except adbc_driver_manager.Error as error:
            text = str(error).removeprefix("INVALID_ARGUMENT: ").partition("[FlightSQL] ")[2]
            reason = text.rpartition(" (")[0] or str(error)
            return (escape(reason), "", "", "0", "refused")
    receipt = json.loads(result.schema.metadata[b"tacit.receipt"])
    column = receipt["columns"][0]
    rows = result.to_pylist()
    answers = [row[column["name"]] for row in rows]
    labels = [next(iter(row.values())) if len(row) > 1 else "" for row in rows]
    intervals = zip(column["low"], column["high"], strict=True)
    return (
        "\n".join(
            f"{label} {answer:,.0f}".strip() for label, answer in zip(labels, answers, strict=True)
        ),
        "\n".join(f"{low:,.0f} .. {high:,.0f}" for low, high in intervals),
        f"{column['confidence']:.0%}",
        f"{receipt['epsilon_spent']:.4f}" if receipt["epsilon_spent"] else "0",
        column["source"],
    )


def show_budget(console: Console, address: str, token: str) -> None:
    """Ask the proxy's own service what was spent."""
    with grpc.insecure_channel(address) as channel:
        reply = tacit_pb2_grpc.TacitStub(channel).GetBudget(
            tacit_pb2.GetBudgetRequest(), metadata=(("authorization", f"Bearer {token}"),)
        )
    for budget in reply.budgets:
        console.print(
            f"[bold]Budget of {budget.table}[/]: epsilon {budget.epsilon_spent:.4f} of "
            f"{budget.epsilon_limit:g} spent on {budget.n_measurements} measurements, "
            f"{budget.epsilon_left:.4f} left."
        )


if __name__ == "__main__":
    main()
