"""What statements may cost by a configuration: by default, and at most."""

from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import ConfigurationInvalid, LimitReached
from proxy.admin.ledger_admin import LimitChange, change_limit, limits_of
from proxy.bootstrap import Service
from proxy.cli.draft.configuration import draft
from proxy.config.settings import DEFAULT_SHARE
from proxy.sources.location import SourceLocation
from tests.support.configured import answer, configured, spent

ROWS = "age,city\n" + "30,Oslo\n41,Paris\n" * 200
TABLE = """
[ledger]
path = "people.ledger"

[tables.people]
source = "people.csv"
budget = "2.0"
{}
n_records_max = 1000
half_width = 10

[tables.people.columns.age]
kind = "integer"
low = 0
high = 99

[tables.people.columns.city]
kind = "category"
levels = ["Oslo", "Paris"]
"""
AVERAGE = "SELECT AVG(age) AS a FROM people"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(ROWS)
    return tmp_path


def per_query(service: Service) -> list[Fraction | None]:
    return [one.per_query for one in limits_of(service.ledger, "people")]


def test_a_statement_costs_a_hundredth_of_the_budget_unless_the_owner_says_more(
    folder: Path,
) -> None:
    with configured(folder, TABLE.format("")) as service:
        answer(service, AVERAGE)
        assert Fraction(15, 1000) < spent(service) <= 2 * DEFAULT_SHARE
    more = TABLE.format('default_cost = "0.05"').replace("people.ledger", "more.ledger")
    with configured(folder, more) as service:
        answer(service, AVERAGE)
        assert Fraction(4, 100) < spent(service) <= Fraction(5, 100)


@pytest.mark.parametrize("key", ["default_cost", "per_query"])
@pytest.mark.parametrize("value", ["0", '"-1"', "true", '"much"'])
def test_a_cost_is_a_positive_number(folder: Path, key: str, value: str) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match="should be a positive decimal"),
        configured(folder, TABLE.format(f"{key} = {value}")),
    ):
        pass


def test_the_ledger_begins_with_the_limit_of_the_configuration(folder: Path) -> None:
    limited = TABLE.format('per_query = "0.03"')
    with configured(folder, limited) as service:
        assert per_query(service) == [Fraction(3, 100)]
        with pytest.raises(LimitReached):
            answer(service, "SELECT COUNT(*) AS n FROM people", half_width=11.0)
        assert spent(service) == 0
    with configured(folder, limited) as service:
        change = LimitChange(subject="each_analyst", per_query="0.5")
        change_limit(service.ledger, "people", change, by="owner")
    with configured(folder, limited) as service:
        assert per_query(service) == [Fraction(1, 2)]
        answer(service, "SELECT COUNT(*) AS n FROM people", half_width=11.0)
        clear = LimitChange(subject="each_analyst", clear=True)
        change_limit(service.ledger, "people", clear, by="owner")
    with configured(folder, limited) as service:  # it was charged: owners change limits now
        assert per_query(service) == []


@pytest.mark.parametrize(
    ("n_records_max", "half_width"), [(500, 10), (50_000, 50), (1_000_000, 1000), (None, 100)]
)
def test_a_draft_has_widths_and_costs_that_fit(
    folder: Path, n_records_max: int | None, half_width: int
) -> None:
    location = SourceLocation(path=folder / "people.csv")
    text = draft(location, source="people.csv", table="people", n_records_max=n_records_max).text
    assert f"half_width = {half_width} " in text
    assert '\ndefault_cost = "0.01" ' in text
    assert '\nper_query = "0.1" ' in text
