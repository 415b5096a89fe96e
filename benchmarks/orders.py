"""An orders table that grows by the day, and what a dashboard and analysts ask of it.

Customers with one to twenty orders over 180 days; the customer is the unit. Thirty tiles are
refreshed every day: totals so far, groups, a week's window, the days themselves. Beside them there
are ten statements of analysts a day, of a few kinds with parameters of their own.

These are inputs of benchmarks, drawn deterministically; nothing here computes an answer.
"""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

N_ORDERS = 1_000_000
N_DAYS = 180
N_DAYS_DECLARED = 730
ORDERS_PER_CUSTOMER = 20
FIRST_DAY = dt.date(2026, 5, 1)
CITIES = (
    "Aarhus", "Bergen", "Brno", "Cork", "Espoo", "Faro",
    "Gdansk", "Graz", "Lyon", "Malmo", "Oslo", "Riga",
)  # fmt: skip
SEGMENTS = ("consumer", "small business", "enterprise", "public sector")
GROUPS = ("books", "food", "garden", "music", "office", "sport", "tools", "toys")

TOML = """
[ledger]
path = "orders.ledger"

[tables.orders]
source = "orders.parquet"
unit = "customer"
rows_per_unit_max = {rows_per_unit}
grows = {{axis = "order_day", closed_through = {closed}}}
budget = "1000"
n_records_max = {n_records_max}
half_width = {half_width}

[tables.orders.columns]
order_day = {{kind = "date", low = {first}, high = {last}}}
city = {{kind = "category", levels = [{cities}]}}
segment = {{kind = "category", levels = [{segments}]}}
product_group = {{kind = "category", levels = [{groups}]}}
amount = {{kind = "measure", low = 0, high = 200, step = 0.5, half_width = {sum_half_width}}}
"""
HALF_WIDTH_SHARE = 0.002  # of all orders
MEAN_AMOUNT = 25.0

BREAKDOWNS = (("city", CITIES), ("segment", SEGMENTS), ("product_group", GROUPS))


def write_orders(folder: Path, n_orders: int, readable: int) -> Path:
    """Write the orders, and a configuration beside them; the configuration's path."""
    rng = np.random.default_rng(19)
    n_each = rng.integers(1, ORDERS_PER_CUSTOMER + 1, size=n_orders)  # more than enough customers
    customer = np.repeat(np.arange(n_orders), n_each)[:n_orders]
    n_customers = int(customer[-1]) + 1
    city = rng.choice(len(CITIES), n_customers, p=_falling(len(CITIES)))[customer]
    segment = rng.choice(len(SEGMENTS), n_customers, p=_falling(len(SEGMENTS)))[customer]
    group = rng.choice(len(GROUPS), n_orders, p=_falling(len(GROUPS)))
    day = np.datetime64(FIRST_DAY, "D") + rng.integers(0, N_DAYS, n_orders)
    drawn = pa.table(
        {
            "customer": customer,
            "order_day": pa.array(day, type=pa.date32()),
            "city": np.array(CITIES)[city],
            "segment": np.array(SEGMENTS)[segment],
            "product_group": np.array(GROUPS)[group],
            "amount": np.round(rng.gamma(2.0, MEAN_AMOUNT / 2, n_orders), 2).clip(0, 200),
        }
    )
    with duckdb.connect() as connection:
        connection.register("drawn", drawn)
        connection.execute(f"COPY drawn TO '{folder / 'orders.parquet'}' (FORMAT parquet)")
    path = folder / "tacit.toml"
    path.write_text(
        TOML.format(
            rows_per_unit=ORDERS_PER_CUSTOMER,
            closed=day_at(readable - 1),
            n_records_max=2 * n_orders,
            half_width=HALF_WIDTH_SHARE * n_orders,
            first=FIRST_DAY,
            last=day_at(N_DAYS_DECLARED - 1),
            cities=_quoted(CITIES),
            segments=_quoted(SEGMENTS),
            groups=_quoted(GROUPS),
            sum_half_width=4 * HALF_WIDTH_SHARE * n_orders * MEAN_AMOUNT,
        )
    )
    return path


def day_at(place: int) -> dt.date:
    """A day by its place on the axis."""
    return FIRST_DAY + dt.timedelta(days=place)


def tiles(today: dt.date) -> list[str]:
    """The thirty statements of the dashboard on one day."""
    week = f"order_day BETWEEN DATE '{today - dt.timedelta(days=6)}' AND DATE '{today}'"
    found = [_count(), _count(where=week), _asked("SUM(amount) AS s")]
    for key, levels in BREAKDOWNS:
        found.append(_count(key))
        found.append(_count(key, week))
        found.append(_asked("SUM(amount) AS s", key))
        found += [_count(where=f"{key} = '{level}'") for level in levels[:2]]
        found += [
            _count(key, f"{other} = '{others[-1]}'") for other, others in BREAKDOWNS if other != key
        ]
    found += [
        _count("order_day"),
        _count("order_day", "segment = 'enterprise'"),
        _count("city, segment"),
        _count(where="city = 'Oslo' AND segment = 'consumer'"),
        _count(where="amount >= 100"),
        _asked("AVG(amount) AS a", "segment"),
    ]
    return found


def of_analysts(today: dt.date, rng: np.random.Generator, n_statements: int) -> Iterator[str]:
    """Statements of one day, each with parameters of its own."""
    for kind in rng.integers(0, 4, size=n_statements):
        city, segment, group = (str(rng.choice(one)) for one in (CITIES, SEGMENTS, GROUPS))
        last = today - dt.timedelta(days=int(rng.integers(0, 60)))
        first = last - dt.timedelta(days=int(rng.integers(6, 60)))
        within = f"order_day BETWEEN DATE '{first}' AND DATE '{last}'"
        match int(kind):
            case 0:
                yield _count(where=f"city = '{city}' AND {within}")
            case 1:
                yield _count("segment", f"product_group = '{group}' AND city = '{city}'")
            case 2:
                yield _count("product_group", f"segment = '{segment}' AND {within}")
            case _:
                yield _count(where=within)


def _count(key: str = "", where: str = "") -> str:
    return _asked("COUNT(*) AS n", key, where)


def _asked(aggregate: str, key: str = "", where: str = "") -> str:
    """A statement in SQL; the parts are ours."""
    columns = f"{key}, {aggregate}" if key else aggregate
    condition = f" WHERE {where}" if where else ""
    groups = f" GROUP BY {key}" if key else ""
    return f"SELECT {columns} FROM orders{condition}{groups}"  # noqa: S608 - our words


def _falling(n: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Shares that fall from the first to the last."""
    weight = 1.0 / np.sqrt(np.arange(1, n + 1))
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = weight / weight.sum()
    return shares


def _quoted(levels: tuple[str, ...]) -> str:
    return ", ".join(f'"{level}"' for level in levels)
