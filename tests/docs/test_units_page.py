"""The page on people with several rows: its configuration runs, and its numbers are right."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import Service, build
from proxy.config.settings import load

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "units.md").read_text()
CONFIGURATION = "\n".join(part.split("```")[0] for part in PAGE.split("```toml\n")[1:])
PER_UNIT = 'per_unit = ["city"]'
WIDE = RequestedTarget(half_width=100)


def write(folder: Path, n_rows: int) -> Path:
    """The shop of the page: 700 customers with three orders each, and 300 with twelve."""
    lines = ["customer,channel,amount"]
    for customer in range(1_000):
        lines += [f"{customer},web,{5 * n}" for n in range(3 if customer < 700 else 12)]
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")
    text = CONFIGURATION.replace("rows_per_unit_max = 5", f"rows_per_unit_max = {n_rows}")
    (folder / "tacit.toml").write_text(text)
    return folder / "tacit.toml"


def spent(service: Service) -> dict[str, Fraction]:
    return {one.table: one.spent for one in service.budgets()}


ROWS = re.findall(r"^\| (\d+) \| ([\d,]+) \| (\.\d+) \|$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize(("n_rows", "n_kept", "price"), ROWS[1:])
def test_the_table_of_the_page_is_right(
    tmp_path: Path, n_rows: str, n_kept: str, price: str
) -> None:
    """A count within 100 of the truth, at 95 %, is within 1000 of it in all but 10**-12."""
    service = build(load(write(tmp_path, int(n_rows))))
    try:
        asked = QueryRequest(sql="SELECT COUNT(*) AS n FROM orders", caller=LOCAL, target=WIDE)
        ((found,),) = service.engine.answer(asked).data.to_pydict().values()
        assert abs(found - int(n_kept.replace(",", ""))) < 1000
        assert f"{float(spent(service)['orders']):.4f}"[1:] == price
    finally:
        service.close()


def test_a_bound_of_a_statement_costs_what_the_page_says(tmp_path: Path) -> None:
    (price,) = re.findall(r"costs (\.\d+)\nfor ± 100 instead of \.1498", PAGE)
    service = build(load(write(tmp_path, 5)))
    try:
        sql = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 2) COUNT(*) AS n FROM orders"
        )
        service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=WIDE))
        assert f"{float(spent(service)['orders']):.4f}"[1:] == price
    finally:
        service.close()


DAYS = re.findall(r"^\| (?:the|those) .* \| (\.\d+) \| (\.\d+) \|$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("is_by_day", [False, True])
def test_days_cost_what_the_page_says(tmp_path: Path, is_by_day: bool) -> None:
    """One day after the other is asked for, and what was spent by then is compared."""
    declared = "rows_per_unit_max = 20" + "\nrows_per_unit_max_by = { day = 2 }" * is_by_day
    day = 'kind = "integer"\nlow = 1\nhigh = 30\n'
    path = write(tmp_path, 5)
    text = path.read_text().replace("rows_per_unit_max = 5", declared + '\nstrategy = "query"')
    first = "[tables.orders.columns.channel]"
    path.write_text(text.replace(first, f"[tables.orders.columns.day]\n{day}{first}"))
    orders = (tmp_path / "orders.csv").read_text().splitlines()
    with_days = [f"{line},{place % 30 + 1}" for place, line in enumerate(orders[1:])]
    (tmp_path / "orders.csv").write_text("\n".join([f"{orders[0]},day", *with_days]) + "\n")
    service = build(load(path))
    try:
        found = {}
        for asked in range(1, 14):
            sql = f"SELECT COUNT(*) AS n FROM orders WHERE day = {asked}"  # noqa: S608 - a number
            service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=WIDE))
            found[asked] = f"{float(spent(service)['orders']):.4f}"[1:]
        assert [row[is_by_day] for row in DAYS] == [found[asked] for asked in (1, 2, 12, 13)]
    finally:
        service.close()


def test_people_are_counted_from_the_same_budget(tmp_path: Path) -> None:
    service = build(load(write(tmp_path, 5)))
    try:
        for sql in ("SELECT COUNT(*) AS n FROM customers", "SELECT COUNT(*) AS n FROM orders"):
            service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=WIDE))
            assert spent(service)["orders"] == spent(service)["customers"]
        one, other = (service.ledger.history(name).units_spent for name in ("customers", "orders"))
        assert other == pytest.approx(5 * one)
    finally:
        service.close()


def test_the_page_shows_what_a_row_alone_costs() -> None:
    assert ROWS[0] == ("1", "1,000", ".0300")


BIASES = re.findall(r"^\| (\d+) \| (\d+) \| ([\d,]+) \|$", PAGE, flags=re.MULTILINE)


def test_the_page_weighs_noise_against_what_is_left_out() -> None:
    """A Laplace variable of scale k / epsilon is within its half-width with 95 %."""
    n_kept = {n_rows: int(kept.replace(",", "")) for n_rows, kept, _ in ROWS}
    assert [n_rows for n_rows, _, _ in BIASES] == list(n_kept)
    for n_rows, half_width, missing in BIASES:
        assert int(half_width) == pytest.approx(int(n_rows) * math.log(20) / 0.15, rel=0.01)
        assert int(missing.replace(",", "")) == 5_700 - n_kept[n_rows]


CITIES = ("Oslo", "Bergen", "Voss", "Hamar")
IN_TWO = " WHERE city IN ('Oslo', 'Voss')"
COSTS = re.findall(r"^\| customers .* \| (\.\d+) \| (\.\d+) \|$", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("place", "counts"),
    [(0, "COUNT(DISTINCT customer) AS n FROM orders"), (1, "COUNT(*) AS n FROM orders.units")],
)
def test_counts_by_what_people_are_cost_what_the_page_says(
    tmp_path: Path, place: int, counts: str
) -> None:
    path = write(tmp_path, 5)
    first, *orders = (tmp_path / "orders.csv").read_text().splitlines()
    with_city = [f"{line},{CITIES[int(line.split(',')[0]) % 4]}" for line in orders]
    (tmp_path / "orders.csv").write_text("\n".join([f"{first},city", *with_city]) + "\n")
    column = f'[tables.orders.columns.city]\nkind = "category"\nlevels = {list(CITIES)}\n'
    text = path.read_text().replace("rows_per_unit_max = 5", "rows_per_unit_max = 5\n" + PER_UNIT)
    channel = "[tables.orders.columns.channel]"
    path.write_text(text.replace(channel, column + channel))
    service = build(load(path))
    try:
        found = []
        for sql in (
            f"SELECT city, {counts} GROUP BY city",
            f"SELECT {counts}{IN_TWO}",
            f"SELECT {counts}",
        ):
            service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=WIDE))
            found.append(f"{float(spent(service)['orders']):.4f}"[1:])
    finally:
        service.close()
    assert [row[place] for row in COSTS] == found


def test_the_page_says_how() -> None:
    assert f"    {PER_UNIT}\n" in PAGE
