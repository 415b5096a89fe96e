"""A refusal of joins and names says all that stands in the way, each with its place.

And a public table that is joined counts with the columns that are used of it.
"""

import pytest

from cube.axis import IntegerAxis
from cube.refusals import Refused, TooLarge
from cube.schema import Schema
from planner.domain.relations import PublicRelation
from planner.planner import Planner
from tests.sql import world

N_PARTS = 200_000
ITEMS = Schema(
    table="items",
    axes=(IntegerAxis(name="part", low=1, high=N_PARTS), IntegerAxis(name="n", low=1, high=9)),
    n_records_max=1_000_000,
)
WIDE = PublicRelation(
    "parts",
    tuple(f"p_{name}" for name in ("key", "brand", "size", "kind", "maker", "price", "box")),
    ("p_key",),
    {
        "p_key": ("BIGINT", range(1, N_PARTS + 1)),
        **{
            f"p_{name}": ("BIGINT", [place % 25 for place in range(N_PARTS)])
            for name in ("brand", "size", "kind", "maker", "price", "box")
        },
    },
)


def refusal(sql: str) -> str:
    """What a statement on the patients is refused with."""
    public = [table.relation() for table in world.PUBLIC]
    other = Schema(table="visitors", axes=world.SCHEMA.axes[:2], n_records_max=100)
    planner = Planner(
        {"patients": world.SCHEMA, "visitors": other},
        {"patients": world.DEFAULT, "visitors": world.DEFAULT},
        public,
    )
    with pytest.raises(Refused) as refused:
        planner.plan(sql)
    return refused.value.explain()


def test_the_private_table_is_named_and_not_the_last_one_in_from() -> None:
    told = refusal("SELECT COUNT(*) FROM patients p, visitors v, cities c WHERE p.city = c.city")
    assert told.startswith("visitors AS v shows private rows")


def test_all_tables_that_are_not_there_are_named_at_once() -> None:
    told = refusal(
        "SELECT COUNT(*) FROM patients, wards, visitors JOIN doctors ON TRUE\n"
        "WHERE city IN (SELECT city FROM streets)"
    )
    assert told.startswith("There is no table wards (line 1, column 32).")
    assert "Also: there is no table doctors (line 1, column 53); " in told
    assert "there is no table streets (line 2, column 33)" in told
    assert "patients and visitors are private and cannot be joined (line 1, column 39)" in told


def test_all_columns_that_are_not_there_are_named_at_once() -> None:
    told = refusal("SELECT COUNT(*) FROM patients WHERE agee > 3 AND weight < 8 AND age < 50")
    assert told.startswith("patients has no column agee (line 1, column 37). Did you mean 'age'?")
    assert told.endswith("Also: there is no column weight (line 1, column 50).")


def test_what_one_refusal_names_is_bounded() -> None:
    tables = ", ".join(f"t{number}" for number in range(40))
    told = refusal(f"SELECT COUNT(*) FROM {tables}")  # noqa: S608 - a test's own text
    assert told.count("here is no table") == 1 + 6


def test_a_column_of_the_query_around_is_told_as_one() -> None:
    told = refusal(
        "SELECT sex, (SELECT COUNT(*) FROM patients AS q WHERE q.age > p.age) FROM patients AS p "
        "GROUP BY sex"
    )
    assert told.startswith("p.age is not a column of q (line 1, column 63).")
    assert "cannot use the rows of the query around it" in told


@pytest.mark.slow
def test_a_wide_public_table_counts_with_the_columns_that_are_used() -> None:
    planner = Planner({"items": ITEMS}, {"items": world.DEFAULT}, [WIDE])
    used = (
        "SELECT p_brand, SUM(n) AS s FROM items JOIN parts ON part = p_key WHERE p_size < 5 "
        "GROUP BY p_brand"
    )
    (part,) = planner.plan(used).parts
    assert part.keys[0].values == tuple(sorted({place % 25 for place in range(5)}))
    every = used.replace("p_size < 5", "p_size + p_kind + p_maker + p_price + p_box < 5")
    with pytest.raises(TooLarge, match="values is joined with private rows"):
        planner.plan(every)
