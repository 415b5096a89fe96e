"""The private tables of the example: the Adult census, and one with dates, made up by script."""

import csv
import datetime as dt
import random
from pathlib import Path
from typing import Final

from accountant.ledger.credentials import EVERY_TABLE, Role
from examples.adult.demo import prepare as prepare_adult
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token

FIRST_DAY: Final = dt.date(2025, 1, 1)
N_DAYS: Final = 365
N_VISITS: Final = 20_000
REGIONS: Final = ("east", "north", "south", "west")

VISITS: Final = """
[tables.visits]
source = "visits.csv"
budget = "2.0"
n_records_max = 100000
half_width = 60
confidence = 0.95

[tables.visits.columns.day]
kind = "date"
low = 2025-01-01
high = 2025-12-31

[tables.visits.columns.region]
kind = "category"
levels = ["east", "north", "south", "west"]
"""


def prepare(folder: Path) -> Path:
    """Write data, and a configuration that serves them on both wires; return its path."""
    config = prepare_adult(folder)
    _write_visits(folder / "visits.csv")
    listen = 'listen = "127.0.0.1:0"'
    text = config.read_text()
    if listen not in text:
        raise RuntimeError(f"the Adult demo's configuration should have the line {listen!r}")
    config.write_text(text.replace(listen, f"{listen}\npostgres_{listen}") + VISITS)
    return config


def issue(config: Path) -> str:
    """Issue a token for Superset's analyst."""
    with open_configured(load(config).ledger) as ledger:
        grant = Grant(analyst="superset", role=Role.ANALYST, tables=(EVERY_TABLE,))
        return issue_token(ledger, grant, by="the example")[1]


def _write_visits(path: Path) -> None:
    """Write made-up visits by day and region, with more in summer."""
    draw = random.Random(7)  # noqa: S311 - data for an example, not noise
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("day", "region"))
        for _ in range(N_VISITS):
            day = int(draw.triangular(0, N_DAYS, N_DAYS * 0.6))
            region = draw.choices(REGIONS, (4, 3, 2, 1))[0]
            writer.writerow((FIRST_DAY + dt.timedelta(days=min(day, N_DAYS - 1)), region))
