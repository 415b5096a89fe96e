"""Orders of customers, who have up to four each: for what is asked of customers, not of orders."""

from collections import defaultdict
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from proxy.api.requests import Caller
from proxy.bootstrap import Service
from tests.support.configured import configured

N_CUSTOMERS, N_ROWS_MAX = 1_500, 4
NATS = np.log(20)  # at confidence .95, of a Laplace answer: its half-width times its weight
ORDERS = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = {rows_max}
{more}
budget = "{budget}"
n_records_max = 20000
half_width = 100
history = "{history}"
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop", "phone"]
[tables.orders.columns.hour]
kind = "integer"
low = 0
high = 23
"""
CHANNELS = ("web", "shop", "phone")
ALL = "SELECT COUNT(DISTINCT customer) AS n FROM orders"
BY_CHANNEL = "SELECT channel, COUNT(DISTINCT customer) AS n FROM orders GROUP BY channel"


def orders() -> list[tuple[int, str, int]]:
    """Up to four orders of each customer: none is left out."""
    rng = np.random.default_rng(4)
    return [
        (customer, CHANNELS[rng.integers(3)], int(rng.integers(24)))
        for customer in range(N_CUSTOMERS)
        for _ in range(rng.integers(1, N_ROWS_MAX + 1))
    ]


def write_orders(folder: Path) -> None:
    lines = [f"{customer},{channel},{hour}" for customer, channel, hour in orders()]
    (folder / "orders.csv").write_text("\n".join(["customer,channel,hour", *lines]) + "\n")


def served(
    folder: Path,
    *,
    more: str = "",
    budget: str = "100",
    history: str = "shared",
    rows_max: int = N_ROWS_MAX,
) -> AbstractContextManager[Service]:
    """The table, with its ledger in the folder."""
    text = ORDERS.format(more=more, budget=budget, history=history, rows_max=rows_max)
    return configured(folder, text)


def truth(*, late: bool = False) -> dict[str, int]:
    """How many customers have an order of each channel; perhaps of those from noon on."""
    found = defaultdict(set)
    for customer, channel, hour in orders():
        if hour >= 12 or not late:
            found[channel].add(customer)
    return {channel: len(found[channel]) for channel in CHANNELS}


ANN = Caller(Payer("ann"), Role.ANALYST, ("orders",))
SURE = float(np.log(1e7) / NATS)  # times a half-width: right answers are beyond once in 10 million
