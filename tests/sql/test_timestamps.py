"""Timestamp columns from a Parquet file to the answer, held against DuckDB on the same rows.

Without noise, the answer is DuckDB's on moments that were cut to the declared step, those with a
zone read on its clock. The file has moments in between, outside, and around a change of clocks.
"""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import CategoryAxis, DateAxis, MeasureAxis, TimestampAxis
from cube.encoding import fingerprint
from cube.refusals import ConfigurationInvalid, OutsideDomain, TooLarge, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.sql.parameters import parameter_of
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.sources.public.table import PublicTable
from proxy.tables.private_table import ServedTable
from tests.planner.people import block_of
from tests.sql.comparing import ABSOLUTE_ERROR_MAX, Row, oracle_rows, rows_of, same_rows
from tests.support.fakes import NoNoise
from tests.support.groupings import each

N_ROWS = 3000
LOW, HIGH = dt.datetime(2024, 3, 1), dt.datetime(2024, 4, 30, 23, 59)  # noqa: DTZ001 - no zone
SCHEMA = Schema(
    table="visits",
    axes=(
        TimestampAxis(name="came", low=LOW, high=HIGH, step="minute", null=True),
        TimestampAxis(
            name="paid",
            low=LOW,
            high=HIGH.replace(minute=0),
            step="hour",
            time_zone="Europe/Oslo",
        ),
        DateAxis(name="booked", low=LOW.date(), high=HIGH.date()),
        CategoryAxis(name="ward", values=("a", "b", "c")),
        MeasureAxis(name="bill", low=0, high=100, step=Fraction(1, 2)),
    ),
    n_records_max=10_000,
)
HOURS = [LOW + dt.timedelta(hours=place) for place in range(24 * 61)]
SHIFTS = PublicTable(
    "shifts",
    "hour",
    pa.table(
        {
            "hour": pa.array(HOURS, pa.timestamp("us")),
            "shift": ["day" if 7 <= hour.hour < 19 else "night" for hour in HOURS],
        }
    ),
)
# PostgreSQL's function, which DuckDB has not, by its definition.
DATE_BIN = """
    CREATE MACRO date_bin(stride, x, origin) AS CAST(origin AS TIMESTAMP)
        + floor(epoch(CAST(x AS TIMESTAMP) - CAST(origin AS TIMESTAMP)) / epoch(stride)) * stride
"""
# What the declaration makes of the file's rows.
CUT = """
    CREATE TABLE visits AS SELECT * FROM (
        SELECT date_trunc('minute', came) AS came,
            date_trunc('hour', timezone('Europe/Oslo', paid)) AS paid, booked, ward, bill
        FROM file
    ) WHERE (came IS NULL OR came BETWEEN TIMESTAMP '2024-03-01' AND TIMESTAMP '2024-04-30 23:59')
        AND paid BETWEEN TIMESTAMP '2024-03-01' AND TIMESTAMP '2024-04-30 23:00'
"""


def rows() -> pa.Table:
    """Rows with moments to the microsecond, some of them before and after the declared range."""
    rng = np.random.default_rng(20240331)
    n_microseconds = 62 * 86_400 * 10**6
    came, paid = (
        np.datetime64("2024-02-29T12:00", "us") + rng.integers(n_microseconds, size=N_ROWS)
        for _ in range(2)
    )
    # A tenth of the payments around the hour that the clocks of Oslo leave out.
    paid[::10] = np.datetime64("2024-03-30T23:00", "us") + rng.integers(4 * 3600 * 10**6, size=300)
    return pa.table(
        {
            "came": pa.array(came, pa.timestamp("us"), mask=rng.random(N_ROWS) < 0.05),
            "paid": pa.array(paid, pa.timestamp("us", tz="UTC")),
            "booked": pa.array(
                [LOW.date() + dt.timedelta(days=int(n)) for n in rng.integers(61, size=N_ROWS)]
            ),
            "ward": pa.array(np.array(["a", "b", "c"])[rng.integers(3, size=N_ROWS)]),
            "bill": pa.array(rng.integers(201, size=N_ROWS) / 2),
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    pq.write_table(rows(), path)
    return path


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.register("file", rows())
    connection.register("shifts", SHIFTS.data)
    connection.execute(CUT)
    connection.execute(DATE_BIN)
    return connection


@pytest.fixture(scope="module")
def exact(file: Path) -> Iterator[Engine]:
    source = DuckDbSource(SCHEMA, SourceLocation(path=file))
    with open_ledger(file.with_suffix(".ledger")) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(4000), source, NoNoise())
        served = ServedTable(SCHEMA, AccuracyTarget(half_width=25.0, confidence=0.95), gate)
        yield Engine({SCHEMA.table: served}, (SHIFTS,))


STATEMENTS = """
SELECT COUNT(*) AS n FROM visits;
SELECT COUNT(*) AS n FROM visits WHERE came IS NULL;
SELECT COUNT(*) FROM visits WHERE came BETWEEN TIMESTAMP '2024-03-30 10:00' AND TIMESTAMP
'2024-03-31 09:59:30';
SELECT COUNT(*) FROM visits WHERE came BETWEEN '2024-03-30' AND '2024-03-31';
SELECT COUNT(*) FROM visits WHERE came >= TIMESTAMP '2024-04-28 12:00' - INTERVAL 7 DAY;
SELECT COUNT(*) FROM visits WHERE came + INTERVAL '90 minutes' < DATE '2024-03-05';
SELECT COUNT(*) FROM visits WHERE came::date = '2024-03-29' OR ward = 'b';
SELECT COUNT(*) FROM visits WHERE EXTRACT(hour FROM came) BETWEEN 9 AND 16;
SELECT COUNT(*) FROM visits WHERE EXTRACT(minute FROM came) < 30 AND ward = 'a';
SELECT EXTRACT(hour FROM came) AS h, COUNT(*) FROM visits WHERE came IS NOT NULL GROUP BY 1;
SELECT EXTRACT(dow FROM paid) AS d, ward, COUNT(*) FROM visits GROUP BY 1, 2;
SELECT EXTRACT(isodow FROM came) AS d, AVG(bill) AS a FROM visits GROUP BY 1;
SELECT DATE_TRUNC('day', came) AS d, COUNT(*) FROM visits GROUP BY 1;
SELECT DATE_TRUNC('week', came) AS w, SUM(bill) FROM visits GROUP BY 1;
SELECT DATE_TRUNC('month', came) AS m, ward, COUNT(*) FROM visits GROUP BY 1, 2;
SELECT DATE_TRUNC('hour', came) AS h, COUNT(*) FROM visits WHERE came < '2024-03-03' GROUP BY 1;
SELECT CAST(came AS DATE) AS d, SUM(bill) FROM visits GROUP BY 1;
SELECT TO_CHAR(came, 'YYYY-MM-DD HH24') AS d, COUNT(*) FROM visits WHERE came BETWEEN '2024-03-31'
AND '2024-04-01' GROUP BY 1;
SELECT paid, COUNT(*) FROM visits WHERE paid BETWEEN TIMESTAMP '2024-03-31' AND TIMESTAMP
'2024-03-31 12:00' GROUP BY 1;
SELECT AVG(EXTRACT(hour FROM paid)) AS a FROM visits;
SELECT TIME_BUCKET(INTERVAL '15 minutes', came) AS b, COUNT(*) FROM visits
WHERE came < '2024-03-03' GROUP BY 1;
SELECT TIME_BUCKET(INTERVAL 6 HOUR, came, INTERVAL '1 hour') AS b, COUNT(*) FROM visits GROUP BY 1;
SELECT TIME_BUCKET(INTERVAL '10 days', paid, TIMESTAMP '2024-03-30 02:00') AS b, SUM(bill)
FROM visits GROUP BY 1;
SELECT TIME_BUCKET(INTERVAL '2 months', came) AS b, COUNT(*) FROM visits GROUP BY 1;
SELECT TIME_BUCKET(INTERVAL '7 days', booked) AS b, COUNT(*) FROM visits GROUP BY 1;
SELECT DATE_BIN(INTERVAL '36 hours', came, TIMESTAMP '2024-03-30 05:30') AS b, COUNT(*)
FROM visits GROUP BY 1;
SELECT DATE_BIN(INTERVAL '7 days', booked, DATE '2024-03-30') AS b, COUNT(*) FROM visits GROUP BY 1;
SELECT TIME_BUCKET(INTERVAL '1 month', d) AS m, SUM(n) AS n FROM
(SELECT DATE_TRUNC('day', came) AS d, COUNT(*) AS n FROM visits GROUP BY 1) AS t GROUP BY 1;
SELECT SUM(bill) FILTER (WHERE came < TIMESTAMP '2024-03-15') AS s, COUNT(came) FROM visits;
SELECT DATE_TRUNC('month', came) AS m, COUNT(*) AS n FROM visits GROUP BY 1 HAVING
DATE_TRUNC('month', came) >= TIMESTAMP '2024-04-01';
SELECT m + INTERVAL 1 MONTH AS later, n FROM (SELECT DATE_TRUNC('month', came) AS m, COUNT(*) AS n
FROM visits GROUP BY 1) AS t;
SELECT shift, SUM(bill) FROM visits JOIN shifts ON visits.paid = shifts.hour GROUP BY 1;
SELECT COUNT(*) FROM visits WHERE paid IN (SELECT hour FROM shifts WHERE shift = 'night');
SELECT DATE_DIFF('day', came, TIMESTAMP '2024-05-01') AS d, COUNT(*) FROM visits GROUP BY 1;
SELECT CASE WHEN paid < TIMESTAMP '2024-04-01' THEN 'old' ELSE 'new' END AS age, COUNT(*) FROM
visits GROUP BY 1;
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY paid) AS p FROM visits;
SELECT COUNT(DISTINCT DATE_TRUNC('month', paid)) AS n FROM visits;
"""


@pytest.mark.parametrize("sql", [one.strip() for one in STATEMENTS.split(";")[:-1]])
def test_without_noise_the_answer_is_that_of_duckdb(
    sql: str, exact: Engine, oracle: duckdb.DuckDBPyConnection
) -> None:
    written = oracle_dialect(sql)
    answer = exact.answer(QueryRequest(sql=sql)).data
    promised = exact.result_schema(QueryRequest(sql=sql))
    assert promised.equals(answer.schema, check_metadata=False)
    found = [row for row in rows_of(answer) if is_seen(row)]  # groups of no row are shown here
    expected = [row for row in oracle_rows(oracle, written) if is_seen(row)]
    assert expected
    assert same_rows(found, expected), (found[:10], expected[:10])


def is_seen(row: Row) -> bool:
    """Whether the last number of a row is not 0."""
    return not isinstance(row[-1], float) or abs(row[-1]) > ABSOLUTE_ERROR_MAX


def oracle_dialect(sql: str) -> str:
    """The statement with the only function that DuckDB calls something else."""
    return sql.replace("TO_CHAR(came, 'YYYY-MM-DD HH24')", "strftime(came, '%Y-%m-%d %H')")


def test_keys_of_moments_are_timestamps_and_keys_of_days_are_dates(exact: Engine) -> None:
    for key, kind in {
        "paid": pa.timestamp("us"),
        "DATE_TRUNC('day', came)": pa.timestamp("us"),
        "came::date": pa.date32(),
        "DATE_TRUNC('month', booked)": pa.date32(),
    }.items():
        sql = f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY 1"  # noqa: S608 - written above
        assert exact.result_schema(QueryRequest(sql=sql)).field("k").type == kind


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("paid >= TIMESTAMPTZ '2024-03-31 01:00:00+00'", ()),
        ("paid >= TIMESTAMP WITH TIME ZONE '2024-03-31 03:00:00+02:00'", ()),
        ("paid >= $1", (dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC),)),
        ("paid BETWEEN '2024-03-31T01:00:00Z' AND '2024-05-05T00:00:00.000+02:00'", ()),
        ("NOT (paid) < '2024-03-30 23:00-02'", ()),
        ("paid >= '2024-03-31 03:00:00'", ()),
        ("paid >= $1", (dt.datetime(2024, 3, 31, 3),)),  # noqa: DTZ001 - on the column's clock
        ("'2024-03-31 01:00:00Z'::timestamptz - INTERVAL '1 hour' <= paid - INTERVAL '1 hour'", ()),
    ],
)
def test_an_instant_is_a_time_on_the_clock_of_the_column_beside_it(
    sql: str, values: tuple[object, ...], exact: Engine, oracle: duckdb.DuckDBPyConnection
) -> None:
    """The clocks of Oslo went from 2 to 3 at 1 o'clock of UTC."""
    parameters = tuple(map(parameter_of, values))
    request = QueryRequest(
        sql=f"SELECT COUNT(*) FROM visits WHERE {sql}",  # noqa: S608 - written above
        parameters=parameters,
    )
    expected = oracle.execute(
        "SELECT COUNT(*) FROM visits WHERE paid >= TIMESTAMP '2024-03-31 03:00:00'"
    ).fetchone()
    assert expected is not None
    assert exact.answer(request).data.column(0).to_pylist() == pytest.approx(expected)


def test_beside_a_column_without_a_zone_an_instant_is_a_time_of_utc(
    exact: Engine, oracle: duckdb.DuckDBPyConnection
) -> None:
    request = QueryRequest(
        sql="SELECT COUNT(*) FROM visits WHERE came >= TIMESTAMPTZ '2024-04-01 02:00:00+02'"
    )
    expected = oracle.execute(
        "SELECT COUNT(*) FROM visits WHERE came >= TIMESTAMP '2024-04-01'"
    ).fetchone()
    assert expected is not None
    assert exact.answer(request).data.column(0).to_pylist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("paid >= NOW()", "paid >= TIMESTAMP '2024-03-31 03:00'"),
        ("NOW() - INTERVAL '2 hours' > paid", "paid < TIMESTAMP '2024-03-31 01:00'"),
        ("came >= NOW()", "came >= TIMESTAMP '2024-03-31 01:00'"),
        ("paid >= CURRENT_DATE", "paid >= TIMESTAMP '2024-03-31 00:00'"),
        # An offset of a text is for columns with a zone; any other drops it, as DuckDB does.
        ("came >= '2024-03-31 04:00:00+03'", "came >= TIMESTAMP '2024-03-31 04:00'"),
    ],
)
def test_now_is_what_the_clock_of_the_column_shows(read: str, written: str) -> None:
    target = AccuracyTarget(half_width=25.0, confidence=0.95)
    now = dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC)
    planner = Planner({"visits": SCHEMA}, {"visits": target}, clock=lambda: now)
    one, other = (
        block_of(planner.plan(f"SELECT COUNT(*) FROM visits WHERE {condition}"))  # noqa: S608 - written above
        for condition in (read, written)
    )
    assert fingerprint(one) == fingerprint(other)


STRICT = RequestedTarget(refuse_unknown_values=True)


@pytest.mark.parametrize(
    ("sql", "refusal", "says"),
    [
        (
            "SELECT came, ward, COUNT(*) FROM visits GROUP BY 1, 2",
            TooLarge,
            "DATE_TRUNC('month', came)",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE came = '2024-03-01 00:00:30'",
            OutsideDomain,
            "every minute from 2024-03-01 00:00:00 to 2024-04-30 23:59:00",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE paid = TIMESTAMP '2024-03-01 00:30'",
            OutsideDomain,
            "every hour",
        ),
        ("SELECT MEDIAN(came) FROM visits", UnsupportedSql, "between two moments"),
        ("SELECT COUNT(*) FROM visits WHERE paid > came", TooLarge, "the time between them"),
        (
            "SELECT SUM(came) FROM visits",
            UnsupportedSql,
            "came is a TIMESTAMP, and a number is needed",
        ),
    ],
)
def test_what_is_refused_says_what_works(
    sql: str, refusal: type[Exception], says: str, exact: Engine
) -> None:
    with pytest.raises(refusal) as refused:
        exact.answer(QueryRequest(sql=sql, target=STRICT))
    assert says in refused.value.explain()  # type: ignore[attr-defined]


def test_moments_with_a_zone_need_a_declared_one(file: Path) -> None:
    paid = TimestampAxis(name="paid", low=LOW, high=HIGH.replace(minute=0), step="hour")
    schema = Schema(table="visits", axes=(paid,), n_records_max=10_000)
    with pytest.raises(ConfigurationInvalid, match="without a time_zone"):
        DuckDbSource(schema, SourceLocation(path=file))


def test_a_csv_file_may_write_moments_with_and_without_an_offset(tmp_path: Path) -> None:
    """An offset needs a zone; what is no moment, or has an offset without one, stops the start."""
    texts = ["2024-03-31 00:59", "2024-03-31T00:59:59.999Z", "2024-03-31 03:00:00+02", "2024-03-31"]
    written = tmp_path / "visits.csv"
    written.write_text("paid\n" + "".join(f"{text}\n" for text in [*texts, "2024-03-31 01:00Z"]))
    location = SourceLocation(path=written)

    def counted(zone: str | None) -> dict[int, int]:
        low = dt.datetime(2024, 3, 31)  # noqa: DTZ001
        axis = TimestampAxis(
            name="paid", low=low, high=low.replace(hour=5), step="hour", time_zone=zone
        )
        schema = Schema(table="visits", axes=(axis,), n_records_max=10)
        found = DuckDbSource(schema, location).measure(each(schema, "paid"))
        return dict(zip(found.levels[0].tolist(), found.counts.tolist(), strict=True))

    assert counted("Europe/Oslo") == {0: 2, 1: 1, 3: 2}
    with pytest.raises(ConfigurationInvalid, match="not of type TIMESTAMP"):
        counted(None)
    written.write_text("paid\n" + "".join(f"{text}\n" for text in (texts[0], texts[3])))
    assert counted(None) == {0: 2}
    written.write_text("paid\n2024-03-31 00:59\nyesterday\n")
    with pytest.raises(ConfigurationInvalid, match="not of type TIMESTAMP"):
        counted("Europe/Oslo")


CONFIGURATION = """[ledger]
path = "visits.ledger"
[tables.visits]
source = "visits.parquet"
budget = "10"
n_records_max = 10000
half_width = 100
[tables.visits.columns.came]
kind = "timestamp"
low = 2024-03-01
high = 2024-04-30
step = "minute"
null = true
"""


def test_what_was_bought_is_free_after_a_restart_and_the_auditor_finds_its_cost(
    tmp_path: Path,
) -> None:
    """A week is a sum of bought days; a range of 88,000 minutes takes little room in the ledger."""
    pq.write_table(rows(), tmp_path / "visits.parquet")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    spent = []
    for sql in (
        "SELECT DATE_TRUNC('day', came) AS d, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE came >= '2024-03-04' AND came < '2024-03-05'",
    ):
        service = build(load(tmp_path / "tacit.toml"))
        try:
            assert service.engine.answer(QueryRequest(sql=sql)).data.num_rows in (1, 62)
            (budget,) = service.budgets()
            spent.append(budget.spent)
            verdict = verify(service.ledger.entries())
            longest = max(len(entry.body) for entry in service.ledger.entries())
        finally:
            service.close()
        assert verdict.problem is None
        assert longest < 10_000
    assert spent[0] == spent[1] > 0
