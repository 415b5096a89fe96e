"""Texts of days and moments: each is what a real PostgreSQL reads, or is refused as there."""

import datetime as dt
from zoneinfo import ZoneInfo

import psycopg
import pytest

from planner.sql.moment_texts import Moment, NoMoment, read_moment
from tests.support.postgres import PostgresServer

OSLO = ZoneInfo("Europe/Oslo")
TEXTS = (
    *("2024-06-01", "2024-6-1", "20240601", "2024/06/01", "2024.06.01", "240601", "2024.153"),
    *("2024-06-01 10:20:30", "2024-06-01T10:20:30", "2024-06-01T10:20:30Z", "2024-153"),
    *("2024-06-01T10:20:30.123Z", "2024-06-01T10:20:30.123456789Z", "2024-06-01 10:20:30.5+02"),
    *(
        "2024-06-01 10:20:30+0530",
        "2024-06-01 10:20:30-05:30",
        "2024-06-01T10:20",
        "2024-06-01 +00",
    ),
    *("2024-06-01 23:59:59.9999999", "2024-06-01+02", "2024-06-01Z", "2024-06-01 Z"),
    *("2024-06-01 10:20:30 UTC", "2024-06-01 10:20:30 America/New_York", "2024-06-01 10:20:30 EST"),
    *("2024-06-01 10:20 PM", "2024-06-01 12:00 AM", "2024-06-01 0:30 am", "2024-06-01 13:00 pm"),
    *("June 1, 2024", "Jun 1 2024", "1 Jun 2024", "1 June 2024 10:20", "2024 Jun 1", "01JUN2024"),
    *("Sat Jun 01 2024", "Sat, 01 Jun 2024 10:20:30 GMT", "Sat Jun 01 2024 10:20:30 GMT+0000"),
    *("6/1/2024", "06/01/24", "13/01/2024", "1-6-2024", "01.06.2024", "2024-Jun-01", "12/31/99"),
    *("24-06-01", "2024-02-30", "2024-13-01", "0000-01-01", "2024-06-01 25:00", "2024-06-01 10:60"),
    *("20240601T102030", "20240601 102030", "2024-06-01 1020", "2024-06-01 24:00:00"),
    *("2024-06-01 10:20:60", "epoch", "  2024-06-01  ", "2024-06-01 10:20:30.123 +02:00"),
    *("2024-06-01T10:20:30+02:00:30", "", "abc", "10:20", "2024-06", "2024", "2024-06-01 AD"),
    *("J2460463", "2024-06-01t10:20:30z", "2024-W23-6", "2024-06-01 10:20:30,5", "2024-06-01-05"),
    *("2024-06-01 allballs", "2024-06-01 10h", "+2024-06-01", "2024-06-01 10:20:30 +2"),
    *("2024-06-01 5:6:7", "10:20 2024-06-01", "2024-06-01, 10:20", "2024-06-01 10:20:30 UTC+2"),
    *("2024-06-01 10:20:30 UTC +2", "2024-06-01 10:20:30+16", "2024-06-01 10:20:30 nowhere/land"),
    *("Thu Nov 26 01:50:52 2026", "1999-01-08 04:05:06 -8:00", "January 8, 1999", "2024-06-01x"),
    *("2024-06-01T", "2024-06-01T10", "1e5", "NaN", "2024-06-0112", "04:05:06.789-8"),
)


def read(text: str, order: str) -> Moment | None:
    try:
        return read_moment(text, order)
    except NoMoment:
        return None


@pytest.mark.parametrize("order", ["MDY", "DMY", "YMD"])
def test_texts_are_read_as_postgresql_reads_them(
    postgres_server: PostgresServer, order: str
) -> None:
    with postgres_server.connect() as connection:
        connection.execute("SET timezone = 'Europe/Oslo'")
        connection.execute(f"SET datestyle = 'ISO, {order}'")

        def there(text: str) -> tuple[object, ...] | None:
            asked = "SELECT %s::date, %s::timestamp, %s::timestamptz"
            try:
                return connection.execute(asked, (text, text, text)).fetchone()
            except psycopg.DataError:
                return None

        for text in TEXTS:
            found = read(text, order)
            here = found and (found.day, found.local, found.instant(OSLO))
            assert here == there(text), text


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0044-03-15 BC", "99999-01-01", "١٢"])
def test_what_no_column_holds_is_refused(text: str) -> None:
    with pytest.raises(NoMoment):
        read_moment(text)


def test_a_zone_is_the_session_s_where_a_text_names_none() -> None:
    found = read_moment("2024-06-01 10:20")
    assert found.instant(OSLO) == dt.datetime(2024, 6, 1, 8, 20, tzinfo=dt.UTC)
