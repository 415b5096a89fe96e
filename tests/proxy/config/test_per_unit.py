"""`per_unit`: a second table, a row for each unit, with what the first says of everything else."""

from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.limits import Window
from proxy.config.sharing import Sharing
from proxy.sources.location import SourceLocation, UnitRows
from tests.support.config_files import loaded, problems

ORDERS = """\
[ledger]
path = "a.ledger"
[budgets.people]
epsilon = "3"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = 5
per_unit = ["city", "income"]
budget = "2"
n_records_max = 1000
half_width = 20
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop"]
[tables.orders.columns.income]
kind = "measure"
low = 0
high = 100
step = 1
relative = 0.05
[tables.orders.columns.city]
kind = "category"
levels = ["Oslo", "Bergen"]
[tables.orders.columns.day]
kind = "date"
low = 2026-01-01
high = 2026-12-31
"""
ANOTHER = '[tables.{0}]\nsource = "other.csv"\nbudget = 1\nn_records_max = 9\nhalf_width = 9\n'
ANOTHER += '[tables.{0}.columns.age]\nkind = "integer"\nlow = 0\nhigh = 9\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("orders", "other"):
        (tmp_path / f"{name}.csv").write_text("customer\n1\n")
    return tmp_path


def changed(before: str, after: str) -> str:
    assert ORDERS.count(before) == 1
    return ORDERS.replace(before, after)


def test_the_second_table_has_a_row_for_each_unit_and_these_columns(folder: Path) -> None:
    orders, units = loaded(folder, ORDERS).tables
    assert (orders.schema.table, units.schema.table) == ("orders", "orders.units")
    assert [axis.name for axis in units.schema.axes] == ["city", "income"]
    assert units.schema.by_name["city"] == orders.schema.by_name["city"]
    assert (units.schema.unit, units.schema.rows_per_unit_max) == ("customer", 1)
    assert units.location == UnitRows(of=SourceLocation(path=folder / "orders.csv"))
    assert set(units.sums) == {"income"}


def test_both_share_a_budget_which_gets_the_first_tables_name(folder: Path) -> None:
    for table in loaded(folder, ORDERS).tables:
        assert table.funds.shared == "orders"
        assert table.budget == Fraction(2)


def test_both_spend_from_the_budget_that_the_first_one_names(folder: Path) -> None:
    for table in loaded(folder, changed('budget = "2"', 'budget = "people"')).tables:
        assert table.funds.shared == "people"
        assert table.budget == Fraction(3)


def test_what_renews_renews_for_both(folder: Path) -> None:
    """They share one budget, which has one window."""
    own = changed("half_width", 'budget_renews = "quarter"\nhalf_width')
    named = changed('budget = "2"', 'budget = "people"')
    for text in (own, named.replace('epsilon = "3"', 'epsilon = "3"\nrenews = "quarter"')):
        orders, units = loaded(folder, text).tables
        assert orders.funds == units.funds
        assert units.funds.renews is Window.QUARTER


def test_everything_else_is_as_the_first_one_says(folder: Path) -> None:
    says = 'history = "private"\npreview = "synthetic"\ndelta = 1e-9\nstrategy = "cells"\n'
    orders, units = loaded(folder, changed("half_width", f"{says}half_width")).tables
    assert units.sharing is Sharing.PRIVATE
    assert units.has_previews
    assert units.gaussian == orders.gaussian is not None
    assert units.strategy == orders.strategy
    assert units.default == orders.default


def test_a_table_without_it_stays_alone(folder: Path) -> None:
    (orders,) = loaded(folder, changed('per_unit = ["city", "income"]\n', "")).tables
    assert not orders.funds.shared


NAMED = 'per_unit = ["city", "income"]'


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (NAMED, "per_unit = []", "list should have at least 1 item"),
        (NAMED, 'per_unit = "city"', "should be a valid list"),
        (NAMED, "per_unit = [1]", "should be a valid string"),
        (
            NAMED,
            'per_unit = ["cty"]',
            "names cty, which is not a column of the table. Did you mean",
        ),
        (NAMED, 'per_unit = ["customer"]', "names customer, which is not a column"),
        (NAMED, 'per_unit = ["city", "city"]', "names city twice"),
        (
            'unit = "customer"\nrows_per_unit_max = 5\n',
            "",
            "name the column that says whom a row is about, as unit",
        ),
        ("rows_per_unit_max = 5\n", "", "so COUNT(*) counts units already"),
        (
            "half_width",
            'grows = {axis = "day", closed_through = 2026-02-01}\nhalf_width',
            "is not for a table that grows",
        ),
        ("[budgets.people]", "[budgets.orders]", "share a budget, which needs a name"),
        (
            "[ledger]",
            ANOTHER.format('"Orders.UNITS"') + "[ledger]",
            "a table of that name exists already",
        ),
    ],
)
def test_what_cannot_be_is_said(folder: Path, before: str, after: str, said: str) -> None:
    (found,) = problems(folder, changed(before, after))
    assert found.startswith("tables.orders.per_unit")
    assert said in found


def test_a_public_table_cannot_have_its_name(folder: Path) -> None:
    public = '[public."orders.units"]\nsource = "public.csv"\n'
    (folder / "public.csv").write_text("city\nOslo\n")
    (found,) = problems(folder, public + ORDERS)
    assert "orders.units" in found


def test_why_the_first_has_a_budget_apart_is_said_of_both(folder: Path) -> None:
    again = ANOTHER.format("again").replace("other.csv", "orders.csv")
    again = again.replace("budget", 'unit = "customer"\nbudget')
    (found,) = problems(folder, ORDERS + again)
    assert "their spending adds up" in found
    apart = changed("half_width", 'separate_budget = "another study"\nhalf_width')
    orders, units, _ = loaded(folder, apart + again).tables
    assert orders.funds.separate == units.funds.separate == "another study"
