"""What each driver does with this wire, cell by cell: a table of the page of clients.

Every cell is a run against one server, and for the drivers that reach a socket, the same against a
real PostgreSQL that holds the same rows. A driver that is not on the machine is skipped. The table
is `tests.clients.matrix`, which prints it; here the page is held to it, and it to the drivers.
"""

import asyncio
import datetime as dt
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import psycopg
import psycopg2
import psycopg2.pool
import pytest
import sqlalchemy as sa

from tests.clients.conftest import Served
from tests.clients.matrix import CELLS, DRIVERS, MARK, page_with_matrix
from tests.support.postgres import PORT, PostgresServer, missing, over_tcp
from tests.support.synthetic import CITIES

Found = dict[str, Any]
JDBC = Path("/usr/share/java/postgresql.jar")
PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
ODBC = "PostgreSQL Unicode"
DUCKDB, DUCKDB_EXTENSION = "1.5.5", "duckdb-extension-postgres-scanner"  # of one version
SECONDS = 120
FROM, TO = dt.date(2025, 3, 1), dt.date(2025, 3, 3)
NOON = dt.datetime(2025, 12, 29, 12)  # noqa: DTZ001 - a timestamp without a zone
DAY = dt.timedelta(days=1)
BY_DATES = "SELECT joined FROM people WHERE joined BETWEEN {} AND {} GROUP BY 1 ORDER BY 1"
BY_MOMENT = "SELECT joined FROM people WHERE joined > {}::timestamp GROUP BY 1 ORDER BY 1"
BY_INTERVAL = (
    "SELECT joined FROM people WHERE joined > DATE '2025-12-29' + {}::interval "
    "GROUP BY 1 ORDER BY 1"
)
BY_LIST = "SELECT city FROM people WHERE city = ANY({}) GROUP BY 1 ORDER BY 1"
ALL_CITIES = "SELECT city FROM people GROUP BY 1 ORDER BY 1"
OF_AGE = "SELECT age FROM people WHERE age = {} GROUP BY 1"
RESET = (
    "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL",
    "SET SESSION AUTHORIZATION DEFAULT",
    "RESET ROLE",
    "DISCARD ALL",
)
EXPECTED: Found = {
    "dates": ["2025-03-01", "2025-03-02", "2025-03-03"],
    "timestamps": ["2025-12-30", "2025-12-31"],
    "intervals": ["2025-12-31"],
    "arrays": ["Oslo", "Rome"],
    "NULLs": ["Oslo", "Paris", "Rome", None],
    "pool reset": True,
    "prepared": [30, 31, 32, 33, 34, 35],
    "metadata": ["city"],
    "cursors": 4,
}


def firsts(rows: Any) -> list[Any]:
    """The first column, days as texts."""
    return [one.isoformat() if isinstance(one := row[0], dt.date) else one for row in rows]


def by_psycopg(connect: Callable[[], psycopg.Connection]) -> Found:
    found: Found = {}
    with connect() as connection:

        def ask(sql: str, *values: object, **how: Any) -> list[Any]:
            asked = sql.format(*["%s"] * len(values))
            return firsts(connection.execute(asked.encode(), values or None, **how))

        found["dates"] = ask(BY_DATES, FROM, TO, binary=True)
        found["timestamps"] = ask(BY_MOMENT, NOON)
        found["intervals"] = ask(BY_INTERVAL, DAY)
        found["arrays"] = ask(BY_LIST, ["Oslo", "Rome"])
        found["NULLs"] = ask(ALL_CITIES)
        found["prepared"] = [ask(OF_AGE, age, prepare=True)[0] for age in range(30, 36)]
        with connection.cursor(name="c") as cursor:
            cursor.execute(ALL_CITIES.encode())
            found["cursors"] = len([*cursor.fetchmany(3), *cursor.fetchall()])
            found["metadata"] = [one.name for one in cursor.description or ()]
        connection.commit()
        for sql in RESET:
            connection.autocommit = True
            connection.execute(sql.encode())
        found["pool reset"] = ask(OF_AGE, 30) == [30]
    return found


def by_psycopg2(pool: psycopg2.pool.SimpleConnectionPool) -> Found:
    found: Found = {}
    connection = pool.getconn()
    with connection.cursor() as cursor:

        def ask(sql: str, *values: object) -> list[Any]:
            cursor.execute(sql.format(*["%s"] * len(values)), values or None)
            return firsts(cursor.fetchall())

        found["dates"] = ask(BY_DATES, FROM, TO)
        found["timestamps"] = ask(BY_MOMENT, NOON)
        found["intervals"] = ask(BY_INTERVAL, DAY)
        found["arrays"] = ask(BY_LIST, ["Oslo", "Rome"])
        found["NULLs"] = ask(ALL_CITIES)
        found["metadata"] = [one.name for one in cursor.description or ()]
        ask("PREPARE p(int) AS " + OF_AGE.replace("{}", "$1") + "; SELECT 1")
        found["prepared"] = [ask("EXECUTE p({})", age)[0] for age in range(30, 36)]
    with connection.cursor(name="c") as cursor:
        cursor.execute(ALL_CITIES)
        found["cursors"] = len([*cursor.fetchmany(3), *cursor.fetchall()])
    connection.reset()
    pool.putconn(connection)
    again = pool.getconn()
    with again.cursor() as cursor:
        cursor.execute("SELECT 1")
        found["pool reset"] = again is connection
    pool.putconn(again)
    pool.closeall()
    return found


def by_asyncpg(**address: Any) -> Found:
    async def run() -> Found:
        found: Found = {}
        async with asyncpg.create_pool(min_size=1, max_size=1, **address) as pool:
            async with pool.acquire() as connection:

                async def ask(sql: str, *values: object) -> list[Any]:
                    marks = [f"${place}" for place in range(1, len(values) + 1)]
                    return firsts(await connection.fetch(sql.format(*marks), *values))

                found["dates"] = await ask(BY_DATES, FROM, TO)
                found["timestamps"] = await ask(BY_MOMENT, NOON)
                found["intervals"] = await ask(BY_INTERVAL, DAY)
                found["arrays"] = await ask(BY_LIST, ["Oslo", "Rome"])
                found["NULLs"] = await ask(ALL_CITIES)
                prepared = await connection.prepare(OF_AGE.replace("{}", "$1"))
                found["prepared"] = [await prepared.fetchval(age) for age in range(30, 36)]
                cities = await connection.prepare(ALL_CITIES)
                found["metadata"] = [one.name for one in cities.get_attributes()]
                async with connection.transaction():
                    found["cursors"] = len([row async for row in connection.cursor(ALL_CITIES)])
            async with pool.acquire() as connection:
                found["pool reset"] = await connection.fetchval("SELECT 1") == 1
        return found

    return asyncio.run(run())


def by_sqlalchemy(engine: sa.Engine) -> Found:
    found: Found = {}
    people = sa.table("people", sa.column("joined", sa.Date), sa.column("city", sa.String))
    joined, city = people.c.joined, people.c.city

    def days(*conditions: Any) -> Any:
        return sa.select(joined).where(*conditions).group_by(joined).order_by(joined)

    with engine.connect() as connection:
        found["dates"] = firsts(connection.execute(days(joined.between(FROM, TO))))
        found["timestamps"] = firsts(connection.execute(days(joined > sa.cast(NOON, sa.TIMESTAMP))))
        shifted = sa.cast(dt.date(2025, 12, 29), sa.Date) + sa.cast(DAY, sa.Interval)
        found["intervals"] = firsts(connection.execute(days(joined > shifted)))
        listed = sa.text(BY_LIST.format(":names")).bindparams(names=["Oslo", "Rome"])
        found["arrays"] = firsts(connection.execute(listed))
        cities = connection.execute(sa.select(city).group_by(city).order_by(city))
        found["metadata"], found["NULLs"] = [*cities.keys()], firsts(cities)
        aged = sa.text(OF_AGE.format(":age"))
        found["prepared"] = [connection.scalar(aged, {"age": age}) for age in range(30, 36)]
        streamed = connection.execution_options(stream_results=True, max_row_buffer=3)
        found["cursors"] = len(streamed.execute(sa.text(ALL_CITIES)).all())
    with engine.connect() as connection:  # the same, given back to the pool and taken again
        found["pool reset"] = connection.scalar(sa.text("SELECT 1")) == 1
    engine.dispose()
    return found


def by_pg8000(**address: Any) -> Found:
    native = pytest.importorskip("pg8000.native")
    found: Found = {}
    connection = native.Connection(**address)

    def ask(sql: str, **values: object) -> list[Any]:
        return firsts(connection.run(sql.format(*(f":{name}" for name in values)), **values))

    found["dates"] = ask(BY_DATES, a=FROM, b=TO)
    found["timestamps"] = ask(BY_MOMENT, a=NOON)
    found["intervals"] = ask(BY_INTERVAL, a=DAY)
    found["arrays"] = ask(BY_LIST, a=["Oslo", "Rome"])
    found["NULLs"] = ask(ALL_CITIES)
    found["metadata"] = [one["name"] for one in connection.columns]
    prepared = connection.prepare(OF_AGE.format(":age"))
    found["prepared"] = [prepared.run(age=age)[0][0] for age in range(30, 36)]
    connection.run("BEGIN")
    connection.run(f"DECLARE c CURSOR FOR {ALL_CITIES}")
    found["cursors"] = len([*connection.run("FETCH 3 FROM c"), *connection.run("FETCH ALL FROM c")])
    connection.run("COMMIT")
    for sql in RESET[1:]:
        connection.run(sql)
    found["pool reset"] = ask(OF_AGE, a=30) == [30]
    connection.close()
    return found


def by_odbc(pyodbc: Any, login: str) -> Found:
    found: Found = {}
    connection = pyodbc.connect(f"{login};UseDeclareFetch=1;Fetch=3", autocommit=True)
    cursor = connection.cursor()

    def ask(sql: str, *values: object) -> list[Any]:
        return firsts(cursor.execute(sql.format(*["?"] * len(values)), *values).fetchall())

    found["dates"] = ask(BY_DATES, FROM, TO)
    found["timestamps"] = ask(BY_MOMENT, NOON)
    found["intervals"] = ask(BY_INTERVAL, "1 day")
    found["arrays"] = ask(BY_LIST, "{Oslo,Rome}")
    found["NULLs"] = ask(ALL_CITIES)
    found["prepared"] = [ask(OF_AGE, age)[0] for age in range(30, 36)]
    found["metadata"] = [one[0] for one in cursor.execute(ALL_CITIES).description]
    found["cursors"] = len([*cursor.fetchmany(3), *cursor.fetchall()])
    for sql in RESET:
        cursor.execute(sql)
    found["pool reset"] = ask(OF_AGE, 30) == [30]
    connection.close()
    return found


def by_adbc(uri: str) -> Found:
    found: Found = {}
    with adbc.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:

        def ask(sql: str, *values: object) -> list[Any]:
            marks = [f"${place}" for place in range(1, len(values) + 1)]
            cursor.execute(sql.format(*marks), values or None)
            return firsts(cursor.fetchall())

        found["dates"] = ask(BY_DATES, FROM, TO)
        found["timestamps"] = ask(BY_MOMENT, NOON)
        found["intervals"] = ask(BY_INTERVAL, DAY)
        found["arrays"] = ask(BY_LIST, ["Oslo", "Rome"])
        found["NULLs"] = ask(ALL_CITIES)
        cursor.adbc_prepare(OF_AGE.format("$1"))
        found["prepared"] = [ask(OF_AGE, age)[0] for age in range(30, 36)]
        cursor.execute(ALL_CITIES)
        found["metadata"] = [one[0] for one in cursor.description or ()]
        found["cursors"] = len([*cursor.fetchmany(3), *cursor.fetchall()])
        cursor.execute("DISCARD ALL")
        found["pool reset"] = ask(OF_AGE, 30) == [30]
    return found


def by_connectorx(connectorx: Any, uri: str) -> Found:
    def read(sql: str, protocol: str = "binary") -> Any:
        return connectorx.read_sql(uri, sql, return_type="arrow", protocol=protocol)

    def ask(sql: str, *values: str) -> list[Any]:
        columns = read(sql.format(*values)).to_pydict().values()
        return firsts(zip(*columns, strict=True))

    return {
        "dates": ask(BY_DATES, f"DATE '{FROM}'", f"DATE '{TO}'"),
        "timestamps": ask(BY_MOMENT, f"'{NOON}'"),
        "intervals": ask(BY_INTERVAL, "'1 day'"),
        "arrays": ask(BY_LIST, "ARRAY['Oslo', 'Rome']"),
        "NULLs": ask(ALL_CITIES),
        "metadata": read(ALL_CITIES).schema.names,
        "cursors": read(ALL_CITIES, "cursor").num_rows,
    }


@pytest.fixture(scope="module")
def real(postgres_server: PostgresServer, served: Served) -> Iterator[PostgresServer]:
    """A real PostgreSQL with the same rows."""
    rows = served.authority.parent / "people.csv"
    with postgres_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE people (age bigint, city text, joined date)")
        with cursor.copy("COPY people FROM STDIN WITH (FORMAT csv, HEADER)") as copy:
            copy.write(rows.read_bytes())
        cursor.execute("CREATE TABLE cities (city text PRIMARY KEY, country text)")
        for row in CITIES.data.to_pylist():
            cursor.execute("INSERT INTO cities VALUES (%(city)s, %(country)s)", row)
        cursor.execute("ANALYZE cities")
        yield postgres_server
        cursor.execute("DROP TABLE people, cities")


@pytest.fixture(scope="module")
def real_port(real: PostgresServer) -> Iterator[int]:
    """The same, for drivers that reach no socket."""
    with over_tcp(real) as port:
        yield port


def checked(driver: str, here: Found, there: Found | None = None) -> None:
    """The cells that the table says work are as expected, and as on a real PostgreSQL."""
    wanted = {cell: EXPECTED[cell] for cell in CELLS if DRIVERS[driver][cell] == MARK}
    assert {cell: here.get(cell) for cell in wanted} == wanted
    assert there is None or {cell: there.get(cell) for cell in wanted} == wanted


def test_psycopg(served: Served, real: PostgresServer) -> None:
    there = by_psycopg(lambda: psycopg.connect(real.location()))
    checked("psycopg 3", by_psycopg(lambda: psycopg.connect(served.uri)), there)


def test_psycopg2(served: Served, real: PostgresServer) -> None:
    here, there = (
        by_psycopg2(psycopg2.pool.SimpleConnectionPool(1, 1, where))
        for where in (served.uri, real.location())
    )
    checked("psycopg2", here, there)


def test_asyncpg(served: Served, real: PostgresServer) -> None:
    there = by_asyncpg(host=str(real.folder), port=PORT, user="owner", database="postgres")
    context = ssl.create_default_context(cafile=str(served.authority))
    here = by_asyncpg(
        host=served.host,
        port=served.port,
        user="ann",
        password=served.token,
        database="tacit",
        ssl=context,
    )
    checked("asyncpg, with its pool", here, there)


def test_pg8000(served: Served, real: PostgresServer) -> None:
    there = by_pg8000(user="owner", database="postgres", unix_sock=f"{real.folder}/.s.PGSQL.{PORT}")
    context = ssl.create_default_context(cafile=str(served.authority))
    here = by_pg8000(
        host=served.host,
        port=served.port,
        user="ann",
        password=served.token,
        database="tacit",
        ssl_context=context,
    )
    checked("pg8000", here, there)


def test_sqlalchemy(served: Served, real: PostgresServer) -> None:
    tls = {"sslmode": "verify-full", "sslrootcert": str(served.authority)}
    here = by_sqlalchemy(sa.create_engine(served.sqlalchemy("psycopg2"), connect_args=tls))
    socket = {"host": str(real.folder), "port": PORT, "user": "owner"}
    there = by_sqlalchemy(sa.create_engine("postgresql+psycopg2:///postgres", connect_args=socket))
    checked("SQLAlchemy", here, there)


def test_psqlodbc(served: Served, real: PostgresServer) -> None:
    pyodbc = pytest.importorskip("pyodbc", exc_type=ImportError)
    if ODBC not in pyodbc.drivers():
        missing("there is no ODBC driver of PostgreSQL on this machine")
    driver = f"DRIVER={{{ODBC}}}"
    login = f"SERVER={served.host};PORT={served.port};DATABASE=tacit;UID=ann;PWD={served.token}"
    tls = f"SSLmode=verify-full;pqopt={{sslrootcert={served.authority}}}"
    here = by_odbc(pyodbc, f"{driver};{login};{tls}")
    there = f"SERVER={real.folder};PORT={PORT};DATABASE=postgres;UID=owner"
    checked("psqlODBC, through pyodbc", here, by_odbc(pyodbc, f"{driver};{there}"))


def test_adbc(served: Served, real: PostgresServer) -> None:
    checked("ADBC", by_adbc(served.uri), by_adbc(real.location()))


def test_connectorx(served: Served, real_port: int) -> None:
    connectorx = pytest.importorskip("connectorx")
    here = by_connectorx(connectorx, served.uri.replace("verify-full", "require"))
    there = f"postgresql://owner@127.0.0.1:{real_port}/postgres?sslmode=disable"
    checked("connectorx", here, by_connectorx(connectorx, there))


@pytest.mark.slow
def test_duckdb(served: Served, real: PostgresServer, tmp_path: Path) -> None:
    install(tmp_path, "--no-deps", f"duckdb=={DUCKDB}", f"{DUCKDB_EXTENSION}=={DUCKDB}")
    here, there = (
        run_script("matrix_duckdb.py", tmp_path, where) for where in (served.uri, real.location())
    )
    assert here["scanned"] == there["scanned"]
    checked("DuckDB's postgres extension", here, there)


@pytest.mark.slow
def test_django(served: Served, real: PostgresServer, tmp_path: Path) -> None:
    install(tmp_path, "django>=5.2,<6")
    tls = {"sslmode": "verify-full", "sslrootcert": str(served.authority)}
    login = {"NAME": "tacit", "USER": "ann", "PASSWORD": served.token}
    here = {**login, "HOST": served.host, "PORT": served.port, "OPTIONS": tls}
    socket = {"NAME": "postgres", "USER": "owner", "HOST": str(real.folder), "PORT": PORT}
    found, known = (
        run_script("matrix_django.py", tmp_path, json.dumps(where))
        for where in (here, {**socket, "OPTIONS": {}})
    )
    checked("Django", found, known)


def install(folder: Path, *packages: str) -> None:
    """Install packages of Python into a folder; skipped where that cannot be done."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
    done = subprocess.run([*pip, *packages], check=False, timeout=SECONDS, capture_output=True)  # noqa: S603 - of this interpreter
    if done.returncode:
        pytest.skip(f"{packages[-1]} cannot be installed on this machine")


def run_script(name: str, packages: Path, database: str) -> Found:
    """What a script prints whose packages lie in a folder."""
    done = subprocess.run(  # noqa: S603 - of this interpreter
        [sys.executable, str(Path(__file__).with_name(name))],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(packages), "MATRIX_DATABASE": database},
    )
    assert done.returncode == 0, done.stderr
    return told(done.stdout)


@pytest.mark.parametrize(
    "mode", ["simple", "extended", "extendedForPrepared", "extendedCacheEverything"]
)
def test_pgjdbc(served: Served, real_port: int, compiled: Path, mode: str) -> None:
    here = f"{served.host}:{served.port}/tacit?{served.tls}", "ann", served.token
    there = f"127.0.0.1:{real_port}/postgres?sslmode=disable", "owner", ""

    def by_jdbc(where: str, *login: str) -> Found:
        url = f"jdbc:postgresql://{where}&preferQueryMode={mode}"
        done = subprocess.run(  # noqa: S603 - a program that was looked for
            [
                *(str(shutil.which("java")), "-cp", os.pathsep.join((str(JDBC), str(compiled)))),
                *("Matrix", url, *login),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return told(done.stdout)

    checked(f"pgjdbc, {mode}", by_jdbc(*here), by_jdbc(*there))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    javac = shutil.which("javac")
    if javac is None or not JDBC.is_file():
        missing("there is no JDBC driver of PostgreSQL on this machine")
    folder = tmp_path_factory.mktemp("java")
    source = Path(__file__).with_name("Matrix.java")
    subprocess.run([javac, "-cp", JDBC, "-d", folder, source], check=True, timeout=SECONDS)  # noqa: S603 - a program that was looked for
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["node-postgres", "postgres.js"])
def test_node(served: Served, node_packages: Path, driver: str) -> None:
    script = Path(__file__).with_name("matrix.mjs")
    shutil.copy(script, node_packages / script.name)
    done = subprocess.run(  # noqa: S603 - a program that was looked for
        [str(shutil.which("node")), str(node_packages / script.name), driver],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={
            **os.environ,
            "PGHOST": served.host,
            "PGPORT": str(served.port),
            "PGPASSWORD": served.token,
            "AUTHORITY": str(served.authority),
        },
    )
    assert done.returncode == 0, done.stderr
    checked(driver, told(done.stdout))


@pytest.fixture(scope="module")
def node_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of both drivers; skipped where they cannot be installed."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("there is no Node.js on this machine")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module"}')
    install = [npm, "install", "--no-audit", "--no-fund", "pg@8", "postgres@3"]
    done = subprocess.run(install, check=False, cwd=folder, timeout=SECONDS, capture_output=True)  # noqa: S603 - a program that was looked for
    if done.returncode:
        pytest.skip("packages of Node.js cannot be installed on this machine")
    return folder


def told(printed: str) -> Found:
    """The cells that a program printed, one a line: a name, a tab, and JSON."""
    cells = (line.partition("\t") for line in printed.splitlines() if "\t" in line)
    return {name: json.loads(value) for name, _, value in cells}


def test_the_page_has_the_table_that_the_drivers_are_held_to() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_matrix(page), "run python -m tests.clients.matrix"
