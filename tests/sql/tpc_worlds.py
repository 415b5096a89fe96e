"""The tables of TPC-H and TPC-DS as an owner might declare them: few columns, small domains.

The tables of facts and of people are private, some tables of dimensions are public, and the others
are not there at all: what is asked of them is refused by name. Rows are random and few; what is
tested is that each text ends in an answer or a refusal.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import Axis, CategoryAxis, DateAxis, IntegerAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise

N_RECORDS = 300
TARGET = AccuracyTarget(half_width=1000.0, confidence=0.95)
CENT = Fraction(1, 100)


def _schema(table: str, *axes: Axis) -> Schema:
    return Schema(table=table, axes=axes, n_records_max=100_000)


TPCH = (
    _schema(
        "lineitem",
        CategoryAxis(name="l_returnflag", values=("A", "N", "R")),
        CategoryAxis(name="l_linestatus", values=("F", "O")),
        DateAxis(name="l_shipdate", low=dt.date(1992, 1, 1), high=dt.date(1998, 12, 31)),
        CategoryAxis(name="l_shipmode", values=("AIR", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")),
        IntegerAxis(name="l_quantity", low=1, high=50),
        MeasureAxis(name="l_extendedprice", low=0, high=105_000, step=5000),
        MeasureAxis(name="l_discount", low=0, high=10 * CENT, step=CENT),
        MeasureAxis(name="l_tax", low=0, high=8 * CENT, step=CENT),
    ),
    _schema(
        "orders",
        CategoryAxis(name="o_orderstatus", values=("F", "O", "P")),
        DateAxis(name="o_orderdate", low=dt.date(1992, 1, 1), high=dt.date(1998, 12, 31)),
        CategoryAxis(
            name="o_orderpriority",
            values=("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"),
        ),
        MeasureAxis(name="o_totalprice", low=0, high=500_000, step=1000),
    ),
    _schema(
        "customer",
        IntegerAxis(name="c_nationkey", low=0, high=24),
        CategoryAxis(
            name="c_mktsegment",
            values=("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"),
        ),
        MeasureAxis(name="c_acctbal", low=-1000, high=10_000, step=10),
    ),
)
TPCH_PUBLIC = (
    PublicTable(
        "nation",
        "n_nationkey",
        pa.table(
            {
                "n_nationkey": list(range(25)),
                "n_name": [f"NATION {key}" for key in range(23)] + ["GERMANY", "FRANCE"],
                "n_regionkey": [key % 5 for key in range(25)],
            }
        ),
    ),
    PublicTable(
        "region",
        "r_regionkey",
        pa.table(
            {
                "r_regionkey": list(range(5)),
                "r_name": ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"],
            }
        ),
    ),
)

FIRST_DAY, N_DAYS = dt.date(1998, 1, 1), 1461
TPCDS = (
    _schema(
        "store_sales",
        IntegerAxis(name="ss_sold_date_sk", low=0, high=N_DAYS - 1, null=True),
        IntegerAxis(name="ss_sold_time_sk", low=0, high=1439, null=True),
        IntegerAxis(name="ss_store_sk", low=1, high=12, null=True),
        IntegerAxis(name="ss_item_sk", low=1, high=60),
        IntegerAxis(name="ss_hdemo_sk", low=1, high=100, null=True),
        IntegerAxis(name="ss_quantity", low=1, high=100, null=True),
        MeasureAxis(name="ss_sales_price", low=0, high=200, step=1, null=True),
        MeasureAxis(name="ss_ext_sales_price", low=0, high=20_000, step=100, null=True),
        MeasureAxis(name="ss_net_profit", low=-10_000, high=20_000, step=100, null=True),
    ),
    _schema(
        "customer",
        IntegerAxis(name="c_birth_month", low=1, high=12, null=True),
        IntegerAxis(name="c_birth_year", low=1920, high=1995, null=True),
        CategoryAxis(name="c_preferred_cust_flag", values=("N", "Y"), null=True),
    ),
)
_DAYS = [FIRST_DAY + dt.timedelta(days=day) for day in range(N_DAYS)]
TPCDS_PUBLIC = (
    PublicTable(
        "date_dim",
        "d_date_sk",
        pa.table(
            {
                "d_date_sk": list(range(N_DAYS)),
                "d_date": _DAYS,
                "d_year": [day.year for day in _DAYS],
                "d_moy": [day.month for day in _DAYS],
                "d_dom": [day.day for day in _DAYS],
                "d_qoy": [(day.month + 2) // 3 for day in _DAYS],
                "d_week_seq": [place // 7 for place in range(N_DAYS)],
                "d_month_seq": [12 * (day.year - 1900) + day.month - 1 for day in _DAYS],
                "d_day_name": [f"{day:%A}" for day in _DAYS],
            }
        ),
    ),
    PublicTable(
        "time_dim",
        "t_time_sk",
        pa.table(
            {
                "t_time_sk": list(range(1440)),
                "t_hour": [minute // 60 for minute in range(1440)],
                "t_minute": [minute % 60 for minute in range(1440)],
            }
        ),
    ),
    PublicTable(
        "store",
        "s_store_sk",
        pa.table(
            {
                "s_store_sk": list(range(1, 13)),
                "s_store_id": [f"S{key}" for key in range(1, 13)],
                "s_store_name": ["ese", "ought", "able", "bar"] * 3,
                "s_state": ["TN"] * 12,
            }
        ),
    ),
    PublicTable(
        "household_demographics",
        "hd_demo_sk",
        pa.table(
            {
                "hd_demo_sk": list(range(1, 101)),
                "hd_dep_count": [key % 10 for key in range(1, 101)],
                "hd_vehicle_count": [key % 5 for key in range(1, 101)],
            }
        ),
    ),
    PublicTable(
        "item",
        "i_item_sk",
        pa.table(
            {
                "i_item_sk": list(range(1, 61)),
                "i_item_id": [f"I{key}" for key in range(1, 61)],
                "i_item_desc": [f"thing {key}" for key in range(1, 61)],
                "i_category": ["Music", "Books", "Sports"] * 20,
                "i_class": ["a", "b", "c", "d"] * 15,
                "i_brand_id": [key % 7 for key in range(60)],
                "i_brand": [f"brand {key % 7}" for key in range(60)],
                "i_manufact_id": [120 + key % 10 for key in range(60)],
                "i_manager_id": [key % 30 for key in range(60)],
                "i_current_price": [float(key) for key in range(60)],
            }
        ),
    ),
)


@contextmanager
def tpc_engine(
    folder: Path, schemas: Sequence[Schema], public: Sequence[PublicTable]
) -> Iterator[Engine]:
    """An engine on random rows of some private tables, beside some public ones; without noise."""
    with open_ledger(folder / "tpc.ledger") as ledger:
        tables: Mapping[str, ServedTable] = {
            schema.table: ServedTable(
                schema,
                TARGET,
                open_table(ledger, schema, Fraction(2000), _table(schema, place), NoNoise()),
            )
            for place, schema in enumerate(schemas)
        }
        yield Engine(tables, tuple(public))


def tpc_database(
    schemas: Sequence[Schema], public: Sequence[PublicTable]
) -> duckdb.DuckDBPyConnection:
    """The same rows in DuckDB."""
    connection = duckdb.connect(":memory:")
    for table in public:
        connection.register("rows", table.data)
        connection.execute(f"CREATE TABLE {table.name} AS SELECT * FROM rows")  # noqa: S608 - a fixed name
    for place, schema in enumerate(schemas):
        columns = ", ".join(f"{axis.name} {axis.sql_type}" for axis in schema.axes)
        connection.execute(f"CREATE TABLE {schema.table} ({columns})")
        marks = ", ".join("?" for _ in schema.axes)
        rows = [
            [axis.levels[int(k)] for axis, k in zip(schema.axes, row, strict=True)]
            for row in _table(schema, place).records
        ]
        connection.executemany(f"INSERT INTO {schema.table} VALUES ({marks})", rows)  # noqa: S608 - question marks
    return connection


def _table(schema: Schema, seed: int) -> KnownTable:
    random = np.random.default_rng(seed)
    columns = [random.integers(axis.size, size=N_RECORDS) for axis in schema.axes]
    return KnownTable(schema, np.column_stack(columns).astype(np.int64))
