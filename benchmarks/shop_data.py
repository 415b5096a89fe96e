"""A shop's tables, drawn deterministically: customers, their orders, and the cities they live in.

Money is in cents with NULLs, dates are days, some combinations are rare and the last months are
empty: what a business keeps, and what a benchmark of tidy categories does not show. Nobody real is
in it.
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SEED = 15
N_CUSTOMERS = 50_000
N_ORDERS = 400_000
FIRST_DAY = dt.date(2022, 1, 1)
LAST_DAY = dt.date(2026, 10, 31)  # the declared domain goes on to the end of the year
FIRST_BIRTH = dt.date(1930, 1, 1)
RELATIVE = 0.05
AT_LEAST_SHARE = 0.02
LAST_BIRTH = dt.date(2008, 12, 31)

CITIES = (
    ("Aarhus", "north", 290_000),
    ("Bilbao", "south", 346_000),
    ("Brno", "east", 400_000),
    ("Cork", "west", 224_000),
    ("Dresden", "east", 563_000),
    ("Espoo", "north", 314_000),
    ("Faro", "south", 67_000),
    ("Gdansk", "east", 487_000),
    ("Graz", "east", 303_000),
    ("Haarlem", "west", 165_000),
    ("Izmir", "south", 2_938_000),
    ("Lille", "west", 236_000),
    ("Lyon", "west", 522_000),
    ("Malmo", "north", 362_000),
    ("Milan", "south", 1_354_000),
    ("Munich", "east", 1_512_000),
    ("Naples", "south", 914_000),
    ("Oslo", "north", 717_000),
    ("Porto", "south", 232_000),
    ("Riga", "north", 605_000),
)
SEGMENTS = ("consumer", "small business", "enterprise", "public sector")
PLANS = ("free", "basic", "pro", "team")
CATEGORIES = ("books", "food", "garden", "music", "sport", "toys")
CHANNELS = ("web", "app", "store", "phone")

TOML = """
[tables.customers]
source = "customers.csv"
unit = "customer_id"
budget = "{budget}"
n_records_max = 60000
half_width = 500
[tables.customers.columns]
birth_date = {{ kind = "date", low = 1930-01-01, high = 2008-12-31 }}
city = {{ kind = "category", levels = [{cities}] }}
segment = {{ kind = "category", levels = [{segments}] }}
plan = {{ kind = "category", levels = [{plans}] }}
signup_date = {{ kind = "date", low = 2022-01-01, high = 2026-12-31 }}
revenue = {{ kind = "measure", low = 0, high = 5000, step = 0.01, null = true, {revenue} }}
churned = {{ kind = "boolean" }}
n_orders = {{ kind = "integer", low = 0, high = 50 }}
spent = {{ kind = "measure", low = 0, high = 2000, {spent} }}
last_order = {{ kind = "date", low = 2022-01-01, high = 2026-12-31, null = true }}
last_order_hour = {{ kind = "integer", low = 0, high = 23, null = true }}

[tables.orders]
source = "orders.csv"
unit = "order_id"
budget = "{budget}"
n_records_max = 500000
half_width = 4000
[tables.orders.columns]
ordered_at = {{ kind = "date", low = 2022-01-01, high = 2026-12-31 }}
category = {{ kind = "category", levels = [{categories}] }}
channel = {{ kind = "category", levels = [{channels}] }}
quantity = {{ kind = "integer", low = 1, high = 20 }}
amount = {{ kind = "measure", low = 0, high = 500, step = 0.01, {amount} }}
returned = {{ kind = "boolean" }}

[public.cities]
source = "cities.csv"
key = "city"
"""


@dataclass(frozen=True, eq=False)
class Shop:
    """The three tables, as they are written to files."""

    customers: pa.Table
    orders: pa.Table
    cities: pa.Table


def draw_shop(n_customers: int = N_CUSTOMERS, n_orders: int = N_ORDERS) -> Shop:
    """The shop's tables; the same for the same sizes."""
    rng = np.random.default_rng(SEED)
    return Shop(_customers(rng, n_customers), _orders(rng, n_orders), _cities())


def write_shop(folder: Path, shop: Shop, *, budget: str) -> Path:
    """Write the tables as CSV files and a configuration beside them; the configuration's path.

    The section that says where the ledger is belongs to who serves it.
    """
    for name in ("customers", "orders", "cities"):
        with duckdb.connect() as connection:
            connection.register("drawn", getattr(shop, name))
            connection.execute(f"COPY drawn TO '{folder / name}.csv' (HEADER)")
    lists = {
        "cities": [name for name, _, _ in CITIES],
        "segments": SEGMENTS,
        "plans": PLANS,
        "categories": CATEGORIES,
        "channels": CHANNELS,
    }
    targets = {
        "revenue": _sum_target(shop.customers["revenue"]),
        "spent": _sum_target(shop.customers["spent"]),
        "amount": _sum_target(shop.orders["amount"]),
    }
    quoted = {name: ", ".join(f'"{one}"' for one in levels) for name, levels in lists.items()}
    path = folder / "tacit.toml"
    path.write_text(
        '[ledger]\npath = "ledger.db"\n' + TOML.format(budget=budget, **quoted, **targets)
    )
    return path


def _sum_target(column: pa.ChunkedArray) -> str:
    """A sum is wanted to 5 % of itself, or of 2 % of the total, as an owner knows it roughly."""
    at_least = AT_LEAST_SHARE * pc.sum(column).as_py()
    return f"relative = {RELATIVE}, at_least = {at_least:.3g}"


def _customers(rng: np.random.Generator, n: int) -> pa.Table:
    weight = np.array([population for _, _, population in CITIES], dtype=np.float64)
    weight = np.sqrt(weight) / np.sqrt(weight).sum()
    city = rng.choice(len(CITIES), n, p=weight)
    segment = rng.choice(len(SEGMENTS), n, p=[0.62, 0.25, 0.09, 0.04])
    # Enterprises are seldom on the free plan, consumers seldom in a team.
    by_segment = np.array(
        [
            [0.55, 0.3, 0.14, 0.01],
            [0.2, 0.4, 0.3, 0.1],
            [0.02, 0.1, 0.38, 0.5],
            [0.1, 0.4, 0.3, 0.2],
        ]
    )
    plan = (rng.random(n)[:, None] > by_segment.cumsum(axis=1)[segment]).sum(axis=1).clip(0, 3)
    n_days = (LAST_DAY - FIRST_DAY).days
    signup = np.floor(n_days * rng.beta(1.6, 1.0, n)).astype(np.int64)
    n_birth = (LAST_BIRTH - FIRST_BIRTH).days
    birth = np.floor(n_birth * rng.beta(3.0, 2.0, n)).astype(np.int64)
    revenue = np.round(rng.lognormal(3.0 + 1.1 * plan, 0.9, n), 2) * (plan > 0)
    no_revenue = rng.random(n) < 0.06  # not yet invoiced
    n_orders = rng.poisson(2.0 + 2.5 * plan).clip(0, 50)
    spent = np.round(n_orders * rng.gamma(2.0, 14.0, n)).astype(np.int64)
    last = signup + np.floor((n_days - signup) * rng.beta(3.0, 1.2, n)).astype(np.int64)
    hour = rng.choice(24, n, p=_hours())
    never = n_orders == 0
    churned = rng.random(n) < np.where(n_days - last > 300, 0.6, 0.08)
    return pa.table(
        {
            "customer_id": np.arange(1, n + 1),
            "birth_date": _days(FIRST_BIRTH, birth),
            "city": pa.array([CITIES[place][0] for place in city]),
            "segment": pa.array([SEGMENTS[place] for place in segment]),
            "plan": pa.array([PLANS[place] for place in plan]),
            "signup_date": _days(FIRST_DAY, signup),
            "revenue": pa.array(revenue, mask=no_revenue),
            "churned": churned,
            "n_orders": n_orders,
            "spent": spent,
            "last_order": _days(FIRST_DAY, last, never),
            "last_order_hour": pa.array(hour, mask=never),
        }
    )


def _orders(rng: np.random.Generator, n: int) -> pa.Table:
    n_days = (LAST_DAY - FIRST_DAY).days
    ordered = np.floor(n_days * rng.beta(1.8, 1.0, n)).astype(np.int64)
    category = rng.choice(len(CATEGORIES), n, p=[0.22, 0.35, 0.08, 0.1, 0.13, 0.12])
    channel = rng.choice(len(CHANNELS), n, p=[0.52, 0.33, 0.13, 0.02])
    quantity = rng.geometric(0.45, n).clip(1, 20)
    amount = np.round(rng.lognormal(2.4 + 0.15 * category, 0.7, n) * quantity, 2).clip(0, 500)
    returned = rng.random(n) < 0.02 + 0.05 * (channel == 1)
    return pa.table(
        {
            "order_id": np.arange(1, n + 1),
            "ordered_at": _days(FIRST_DAY, ordered),
            "category": pa.array([CATEGORIES[place] for place in category]),
            "channel": pa.array([CHANNELS[place] for place in channel]),
            "quantity": quantity,
            "amount": amount,
            "returned": returned,
        }
    )


def _cities() -> pa.Table:
    names, regions, populations = zip(*CITIES, strict=True)
    return pa.table({"city": names, "region": regions, "population": populations})


def _days(
    first: dt.date, after: NDArray[np.int64], is_null: NDArray[np.bool_] | None = None
) -> pa.Array:
    days = np.datetime64(first, "D") + after
    return pa.array(days, type=pa.date32(), mask=is_null)


def _hours() -> NDArray[np.float64]:
    """Few orders at night, most in the evening."""
    weight = 1.0 + 6.0 * np.exp(-((np.arange(24) - 19.0) ** 2) / 18.0)
    weight[1:6] = 0.1
    return np.asarray(weight / weight.sum())
