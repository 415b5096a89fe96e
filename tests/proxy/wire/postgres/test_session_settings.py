"""What clients set by themselves: how values are written then, and what pools send at a release.

How values are written is compared with a real PostgreSQL under the same settings.
"""

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pytest

from accountant.noise.lattice_noise import SystemNoise
from planner.sql.settings import every_default
from proxy.engine.engine import Engine
from proxy.wire.postgres.backend import Column
from proxy.wire.postgres.client_settings import canonical, checked, style_of
from proxy.wire.postgres.pg_types import BYTEA, FLOAT4, FLOAT8, INTERVAL, TIMESTAMPTZ, PgType
from proxy.wire.postgres.values import rows_of
from tests.sql import world
from tests.support.fakes import KnownTable
from tests.support.postgres import PostgresServer
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import RawClient, Reply, query, raw_client

# One statement, or several in one text, as drivers and their pools send them.
SENT = (
    "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
    "CLOSE ALL;\n DEALLOCATE ALL; UNLISTEN *; RESET ALL; SELECT pg_advisory_unlock_all()",
    "SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;DISCARD TEMP",
    "SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP",
    "DISCARD ALL",
    "UNLISTEN some_channel",
    "RESET ROLE",
    "SET ROLE NONE",
    "SET SESSION ROLE 'none'",
    "SET LOCAL ROLE NONE",
    "RESET SESSION AUTHORIZATION",
    "SET SESSION SESSION AUTHORIZATION DEFAULT",
    "SET client_min_messages TO 'warning'",
    "SET standard_conforming_strings = on",
    "SET SESSION intervalstyle = iso_8601",
    "SET intervalstyle TO 'iso_8601'; SET jit = off; SET row_security = off",
    "SET synchronous_commit TO off",
    "SET enable_nestloop = 0; SET work_mem = '256MB'; SET lock_timeout = '3s'",
    "SET idle_in_transaction_session_timeout TO '5min'",
    "SET default_transaction_isolation TO 'repeatable read'",
    "SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE",
    "SET timezone='Europe/Oslo'; SET datestyle = ISO; SET extra_float_digits = 3",
    "SELECT set_config('bytea_output','hex',false) FROM pg_settings WHERE name = 'bytea_output'",
    "SELECT pg_catalog.set_config('search_path', '', false)",
    "SELECT current_setting('no.such_thing', true)",
    "SHOW lc_collate",
    "SHOW ALL",
)
STYLES = (
    {"timezone": "Europe/Oslo"},
    {"timezone": "Asia/Kolkata", "intervalstyle": "iso_8601"},
    {"timezone": "America/St_Johns", "intervalstyle": "postgres_verbose"},
    {"timezone": "+02", "bytea_output": "escape", "extra_float_digits": "0"},
    {"timezone": "GMT+01:00", "extra_float_digits": "-7"},
    {"timezone": "UTC"},
)
MONTHS = (0, 1, -1, 12, 14, -14, 25)
DAYS = (0, 1, -1, 3)
MICROS = (0, 1_000_000, -1_000_000, 61_500_000, -3_600_000_001, 90_061_000_000)
NUMBERS = (
    *(0.1, 1 / 3, -2.5e-17, 1e20, 123456789.125, 1e300, 100.0, 1e15, 1e14, 0.0, -0.0, 0.0001),
    *(0.00001, 1e6, 999999.0, -1234567.0, 123456789012345.6, 1234567890123456.7, 1e16, 5e-324),
)
MOMENTS = ("2024-01-15 12:00:00", "2024-07-15 23:30:00.25", "1890-05-01 00:00:00")
BYTES = (b"", b"a'b\\c", bytes(range(0, 256, 5)))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("set"), source, SystemNoise()) as engine:
        yield engine


@pytest.fixture
def client(engine: Engine) -> Iterator[RawClient]:
    with postgres_serving(engine) as address, raw_client(address) as client:
        client.log_in()
        yield client


def errors(replies: list[Reply]) -> list[str]:
    return [reply.fields["C"] for reply in replies if reply.tag == "E"]


def value(replies: list[Reply]) -> str | None:
    """The one value of an answer."""
    (row,) = (reply for reply in replies if reply.tag == "D")
    return None if row.values[0] is None else row.values[0].decode()


@pytest.mark.parametrize("sql", SENT)
def test_what_drivers_and_pools_send_is_taken(client: RawClient, sql: str) -> None:
    assert errors(client.ask(query(sql))) == []


@pytest.mark.parametrize("name", sorted(every_default()))
def test_every_setting_is_shown(client: RawClient, name: str) -> None:
    shown = client.ask(query(f"SHOW {name}"))
    assert errors(shown) == []
    assert value(client.ask(query(f"SELECT current_setting('{name}')"))) == value(shown)


def test_what_is_set_is_shown(client: RawClient) -> None:
    client.ask(query("SET jit = off"))
    assert value(client.ask(query("SHOW jit"))) == "off"
    client.ask(query("SELECT set_config('work_mem', '64MB', false)"))
    assert value(client.ask(query("SHOW work_mem"))) == "64MB"
    assert value(client.ask(query("SELECT current_setting('jit')"))) == "off"
    client.ask(query("SELECT set_config('tacit.half_width', '25', false)"))
    assert value(client.ask(query("SHOW tacit.half_width"))) == "25"
    client.ask(query("BEGIN"))
    client.ask(query("SELECT set_config('jit', 'on', true)"))
    assert value(client.ask(query("SHOW jit"))) == "on"
    client.ask(query("COMMIT"))
    assert value(client.ask(query("SHOW jit"))) == "off"
    client.ask(query("RESET ALL"))
    assert value(client.ask(query("SHOW jit"))) == "on"


def test_a_value_that_is_none_sets_nothing(client: RawClient) -> None:
    assert errors(client.ask(query("SELECT set_config('jit', 'maybe', false)"))) == ["22023"]
    assert errors(client.ask(query("SELECT set_config('no_such', 'x', false)"))) == ["42704"]
    assert errors(client.ask(query("SELECT set_config(relname, 'x', false) FROM pg_class"))) == [
        "0A000"
    ]
    assert errors(client.ask(query("SELECT current_setting('no_such')"))) == ["42704"]
    assert errors(client.ask(query("SET search_path = nowhere"))) == ["22023"]
    assert errors(client.ask(query("SET ROLE somebody"))) == ["42501"]
    assert value(client.ask(query("SHOW jit"))) == "on"


def test_options_of_a_connection_may_have_what_is_ignored(engine: Engine) -> None:
    with postgres_serving(engine) as address, raw_client(address) as client:
        client.log_in(options="-c jit=off -c enable_sort=off --statement-timeout=5s -cTimeZone=UTC")
        assert value(client.ask(query("SHOW enable_sort"))) == "off"


def test_values_are_written_as_postgresql_writes_them(postgres_server: PostgresServer) -> None:
    intervals = [
        pa.MonthDayNano((months, days, micros * 1000))
        for months in MONTHS
        for days in DAYS
        for micros in MICROS
    ]
    spelled = [
        f"interval '{one.months} mons {one.days} days {one.nanoseconds // 1000} us'"
        for one in intervals
    ]
    singles = [one for one in NUMBERS if one < 1e30 and one != 5e-324]
    moments = [dt.datetime.fromisoformat(f"{one}+00:00") for one in MOMENTS]
    columns: list[tuple[PgType, pa.Array, list[str]]] = [
        (INTERVAL, pa.array(intervals, pa.month_day_nano_interval()), spelled),
        (FLOAT8, pa.array(NUMBERS), [f"'{one!r}'::float8" for one in NUMBERS]),
        (FLOAT4, pa.array(singles, pa.float32()), [f"'{one!r}'::float4" for one in singles]),
        (TIMESTAMPTZ, pa.array(moments), [f"'{one}+00'::timestamptz" for one in MOMENTS]),
        (BYTEA, pa.array(BYTES), [f"'\\x{one.hex()}'::bytea" for one in BYTES]),
    ]
    with postgres_server.connect() as connection:
        for style in STYLES:
            for name, wanted in style.items():
                connection.execute(f"SET {name} = '{wanted}'")
            kept = tuple((canonical(name), checked(name, one)) for name, one in style.items())
            for kind, array, spelled in columns:
                listed = ", ".join(f"({one})" for one in spelled)
                asked = f"SELECT x::text FROM (VALUES {listed}) AS t(x)"  # noqa: S608 - our own
                rows = connection.execute(asked)
                expected = [text for (text,) in rows.fetchall()]
                column = Column("x", kind, 0)
                written = rows_of(pa.table({"x": array}), (column,), style_of(kept))
                assert [(one or b"").decode() for (one,) in written] == expected, (kind, style)
            connection.execute("RESET ALL")
