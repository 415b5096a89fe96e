"""Programs that speak PostgreSQL: psql, and what uses JDBC or ODBC."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import BY_CITY, Served
from tests.support.postgres import missing

JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = "PostgreSQL Unicode"
SECONDS = 120


def psql(served: Served, *statements: str) -> str:
    """What psql prints, columns apart by a bar; errors behind it."""
    program = shutil.which("psql")
    if program is None:
        missing("there is no psql on this machine")
    told = [part for sql in statements for part in ("-c", sql)]
    done = subprocess.run(  # noqa: S603 - a program that was looked for
        [program, "-X", "-A", "-v", "VERBOSITY=verbose", served.uri, *told],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return done.stdout + done.stderr


def test_psql(served: Served) -> None:
    shown = psql(served, BY_CITY).splitlines()
    head, first, *rest, footer = (one for one in shown if not one.startswith("NOTICE"))
    assert any("n: half-width" in one for one in shown)
    assert head == "city|n"
    assert first.startswith("Oslo|")
    assert all(line.split("|")[1].isdecimal() for line in (first, *rest))
    assert footer == "(4 rows)"
    refused = psql(served, "SELECT town FROM people")
    assert "ERROR:  42703" in refused
    assert "HINT:" in refused
    stale = psql(served, "SELECT COUNT(*) FROM people WHERE city = 'Osol'")
    assert "WARNING:  01000: city never equals 'Osol'. Did you mean 'Oslo'?" in stale
    assert "25006" in psql(served, "DELETE FROM people")
    assert "53400" in psql(served, "SET tacit.half_width = 0.001", BY_CITY)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (r"\dt", "public|people|table|tacit"),
        (r"\d people", "joined|date||not null|"),
        (r"\d+ people", "date: 2025-01-01 .. 2025-12-31"),
        (r"\d cities", '"cities_pkey" PRIMARY KEY'),
        (r"\dn", "data_privacy|tacit"),
        (r"\dv data_privacy.*", "data_privacy|budgets|view|tacit"),
        (r"\du", "ann|"),
        (r"\l", "tacit|tacit|UTF8"),
        (r"\dt+", "Private."),
        (r"\df", ""),
        (r"\di", "cities_pkey"),
        (r"\dp people", "=r/tacit"),
    ],
)
def test_what_psql_describes(served: Served, command: str, said: str) -> None:
    printed = psql(served, command)
    assert "ERROR" not in printed
    assert said in printed


def test_pgjdbc(served: Served, tmp_path: Path) -> None:
    java, javac = shutil.which("java"), shutil.which("javac")
    if java is None or javac is None or not JDBC.is_file():
        missing("there is no JDBC driver of PostgreSQL on this machine")
    source = Path(__file__).with_name("Jdbc.java")
    subprocess.run([javac, "-d", tmp_path, source], check=True, timeout=SECONDS)  # noqa: S603 - a program that was looked for
    url = f"jdbc:postgresql://{served.host}:{served.port}/tacit?{served.tls}"
    done = subprocess.run(  # noqa: S603 - the same
        [
            java,
            "-cp",
            os.pathsep.join((str(JDBC), str(tmp_path))),
            "Jdbc",
            url,
            "ann",
            served.token,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert said["groups"].startswith("Oslo=")
    assert len(set(said["prepared"].split())) == 1
    assert said["state"] == "42703"
    assert said["tables"] == "cities people"
    assert said["columns"] == "age city joined"
    assert said["types"] == "int8 text date"
    assert said["keys"] == "city"
    assert said["indexes"] == "city"
    assert said["imported"] == said["exported"] == said["procedures"] == ""
    assert said["privileges"] == "SELECT"
    assert said["typeinfo"] == "true"
    assert said["pieces"] == "100"
    assert said["warning"] == "city never equals 'Osol'. Did you mean 'Oslo'?"
    assert said["time"] == "2025-12-31 2025-12-31"


def test_psqlodbc(served: Served) -> None:
    pyodbc = pytest.importorskip("pyodbc", exc_type=ImportError)
    if ODBC not in pyodbc.drivers():
        missing("there is no ODBC driver of PostgreSQL on this machine")
    login = f"SERVER={served.host};PORT={served.port};DATABASE=tacit;UID=ann;PWD={served.token}"
    tls = f"SSLmode=verify-full;pqopt={{sslrootcert={served.authority}}}"
    connection = pyodbc.connect(f"DRIVER={{{ODBC}}};{login};{tls}")
    cursor = connection.cursor()
    rows = cursor.execute(BY_CITY).fetchall()
    assert rows[0].city == "Oslo"
    one = cursor.execute("SELECT COUNT(*) FROM people WHERE age > ? AND city = ?", 30, "Oslo")
    assert one.fetchone()[0] > 0
    assert {"people", "cities"} <= {row.table_name for row in cursor.tables()}
    assert [row.column_name for row in cursor.columns(table="people")] == ["age", "city", "joined"]
    assert [row.column_name for row in cursor.primaryKeys("cities")] == ["city"]
    with pytest.raises(pyodbc.ProgrammingError) as caught:
        cursor.execute("SELECT town FROM people")
    assert caught.value.args[0] == "42703"
    connection.close()
