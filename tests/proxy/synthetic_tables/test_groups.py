"""Groups of a category's levels, from public tables: what they are, and what is none."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.refusals import InvalidRequest, Refused
from cube.schema import Schema
from proxy.api.requests import LOCAL
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import Grouping
from proxy.synthetic_tables.resolve import groupings_of
from synthesis.privbayes import grouped_attribute
from tests.support.synthetic import MAKE, asked, synthetic_engine

SCHEMA = Schema(
    table="orders",
    axes=(
        CategoryAxis(
            name="city", values=("Oslo", "Bergen", "Rome", "Paris"), other="elsewhere", null=True
        ),
        IntegerAxis(name="year", low=2000, high=2003),
    ),
    n_records_max=1000,
)
CITIES = PublicTable(
    "cities",
    "City",
    pa.table(
        {
            "City": ["Rome", "Oslo", "Bergen", "Kyoto"],
            "region": ["Lazio", "East", "West", "Kansai"],
        }
    ),
)
REGIONS = PublicTable(
    "regions",
    "region",
    pa.table({"region": ["East", "West", "Lazio"], "country": ["Norway", "Norway", "Italy"]}),
)
YEARS = PublicTable("years", "year", pa.table({"year": [2000, 2001], "era": ["a", "b"]}))


def test_a_level_without_a_group_is_alone() -> None:
    """Paris is not in the table; the value for everything else and NULL are never grouped."""
    countries = PublicTable(
        "countries",
        "city",
        pa.table({"city": ["Oslo", "Bergen", "Rome"], "country": ["Norway", "Norway", None]}),
    )
    (one,) = groupings_of(["countries.country"], SCHEMA, [countries])
    assert one == Grouping(name="countries.country", column="city", labels=(0, 0, 1, 2, 3, 4))
    assert one.n_classes == 5


def test_groups_of_groups_are_those_of_the_levels() -> None:
    """City to region has as many regions as cities; with one region less it is a chain."""
    cities = replace(
        CITIES, data=CITIES.data.set_column(1, "region", pa.array(["Lazio", "East", "East", "x"]))
    )
    regions = replace(REGIONS, data=REGIONS.data.set_column(1, "country", pa.array(["Europe"] * 3)))
    found = groupings_of(["CITIES.Region", "regions.country"], SCHEMA, [cities, regions])
    assert [one.column for one in found] == ["city", "city"]
    assert [one.labels for one in found] == [(0, 0, 1, 2, 3, 4), (0, 0, 0, 1, 2, 3)]
    attribute = grouped_attribute("city", [one.labels for one in found])
    assert [view.n_groups for view in attribute.views] == [6, 5, 4]


def test_what_groups_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="makes 6 groups of 6 levels of city"):
        groupings_of(["cities.region"], SCHEMA, [CITIES, REGIONS])
    with pytest.raises(InvalidRequest, match="no category of orders"):
        groupings_of(["regions.country"], SCHEMA, [CITIES, REGIONS])
    with pytest.raises(InvalidRequest, match="no category of orders"):
        groupings_of(["years.era"], SCHEMA, [YEARS])
    with pytest.raises(Refused, match="There is no public table"):
        groupings_of(["region"], SCHEMA, [])
    with pytest.raises(ValueError, match="numbered"):
        Grouping(name="a.b", column="a", labels=(1, 0))


def test_a_network_by_groups_is_made_in_sql_and_says_so(tmp_path: Path) -> None:
    with synthetic_engine(tmp_path) as engine:
        asked(
            engine,
            f"{MAKE} WITH (epsilon => 1, method => 'privbayes', columns => (city, member), "
            "rows => 20, theta => 2.5, structure_share => 0.25)",
        )
        (made,) = engine.synthetic.known(LOCAL)
        assert "theta => 2.5, structure_share => 0.25, " in made.options
        assert SyntheticRecord.from_json(made.to_json()) == made
