"""Several quantiles at once, as lists over both wires; separate ones share what is bought."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from adbc_driver_flightsql import dbapi

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.sql import world
from tests.support.fakes import KnownTable, NoNoise
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving

LIST = "SELECT PERCENTILE_CONT(ARRAY[.25, .5, .75]) WITHIN GROUP (ORDER BY age) AS p FROM patients"
DAYS = "SELECT PERCENTILE_DISC('{0.5,1}') WITHIN GROUP (ORDER BY admitted) AS p FROM patients"
AGES = [row[4] for row in world.records(world.positions())]
EXPECTED = np.quantile(np.array(AGES, dtype=np.float64), [0.25, 0.5, 0.75]).tolist()


@contextmanager
def patients(folder: Path) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with open_ledger(folder / "patients.ledger") as ledger:
        gate = open_table(ledger, world.SCHEMA, Fraction(100), source, NoNoise())
        yield Engine({"patients": ServedTable(world.SCHEMA, world.DEFAULT, gate)})


def test_a_list_of_quantiles_is_an_array_in_text_and_in_binary(tmp_path: Path) -> None:
    with patients(tmp_path) as engine, postgres_serving(engine) as address:
        host, port = address.split(":")
        with psycopg.connect(host=host, port=int(port), user="a", dbname="tacit") as connection:
            for is_binary in (False, True):
                cursor = connection.cursor(binary=is_binary)
                assert cursor.execute(LIST).fetchall() == [(EXPECTED,)]
                assert cursor.description is not None
                assert cursor.description[0].type_code == psycopg.adapters.types["float8"].array_oid
            (days,) = connection.execute(DAYS).fetchall()[0]
    assert days[1] == world.SCHEMA.by_name["admitted"].levels[-1]


def test_a_list_of_quantiles_is_a_list_of_doubles_over_flight_sql(tmp_path: Path) -> None:
    with (
        patients(tmp_path) as engine,
        serving(engine) as address,
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(LIST)
        found = cursor.fetch_arrow_table()
    assert found.schema.field("p").type.value_type == pa.float64()
    assert found.to_pylist() == [{"p": EXPECTED}]


def test_separate_quantiles_share_one_purchase(tmp_path: Path) -> None:
    single = "PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY age)"
    with patients(tmp_path) as engine, postgres_serving(engine) as address:
        host, port = address.split(":")
        with psycopg.connect(host=host, port=int(port), user="a", dbname="tacit") as connection:
            several = ", ".join(single.format(fraction) for fraction in (0.25, 0.5, 0.75))
            statement = f"SELECT {several} FROM patients"  # noqa: S608 - fixed
            found = connection.execute(statement.encode()).fetchall()
            spent = engine.budgets(LOCAL)[0].spent
            connection.execute(LIST)
            assert engine.budgets(LOCAL)[0].spent == spent
    assert list(found[0]) == EXPECTED
