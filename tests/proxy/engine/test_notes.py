"""A receipt says which columns are computed from noisy answers, and so have no interval."""

import json
from collections.abc import Iterator

import pytest

from proxy.api.receipts import RECEIPT_KEY
from proxy.api.requests import QueryRequest, Receipt
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable, NoNoise

ELSEWHERE = "Values of city that are not declared, and NULL, count as 'elsewhere'."
SHARE = "About 15 % of the rows of patients ("  # 305 of 2,000
BY_CITY = "(SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city{}) AS t"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("notes"), source, NoNoise()) as engine:
        yield engine


def receipt_of(engine: Engine, sql: str) -> Receipt:
    receipt = engine.answer(QueryRequest(sql=sql)).receipt
    assert receipt is not None
    return receipt


def test_a_sum_over_groups_has_an_interval_and_no_note(engine: Engine) -> None:
    receipt = receipt_of(engine, f"SELECT sex, SUM(n) AS n FROM {BY_CITY.format('')} GROUP BY sex")  # noqa: S608 - words of this test
    assert [column.name for column in receipt.columns] == ["n"]
    assert receipt.notes == ()


@pytest.mark.parametrize(
    ("item", "clause"),
    [("AVG(n)", ""), ("SUM(n)", " HAVING COUNT(*) > 9"), ("SUM(n)", " LIMIT 5")],
)
def test_what_is_computed_from_answers_is_named(engine: Engine, item: str, clause: str) -> None:
    sql = f"SELECT sex, {item} AS found FROM {BY_CITY.format(clause)} GROUP BY sex"  # noqa: S608 - words of this test
    receipt = receipt_of(engine, sql)
    assert receipt.columns == ()
    assert receipt.notes == (
        "found is computed from noisy answers, and has no interval.",
        *receipt.caveats,
    )


def test_the_notes_are_in_the_metadata_of_the_result(engine: Engine) -> None:
    sql = f"SELECT AVG(n) AS mean FROM {BY_CITY.format('')}"  # noqa: S608 - words of this test
    metadata = engine.answer(QueryRequest(sql=sql)).data.schema.metadata
    computed, elsewhere, share = json.loads(metadata[RECEIPT_KEY])["notes"]
    assert computed.startswith("mean is computed")
    assert elsewhere == ELSEWHERE
    assert share.startswith(SHARE)


def test_groups_that_an_answer_chose_are_noted_and_have_intervals(engine: Engine) -> None:
    largest = "SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2"
    sql = f"SELECT city, COUNT(*) AS n FROM patients WHERE city IN ({largest}) GROUP BY city"  # noqa: S608 - words of this test
    receipt = receipt_of(engine, sql)
    assert len(receipt.columns[0].low) == 2
    assert receipt.notes[0].startswith(
        "Another answer of this statement chose which groups city shows"
    )


def test_an_estimate_from_levels_says_its_rule(engine: Engine) -> None:
    receipt = receipt_of(engine, "SELECT MODE(city) AS n FROM patients")
    assert receipt.columns == ()
    note, elsewhere, share = receipt.notes
    assert "without an interval" in note
    assert elsewhere == ELSEWHERE
    assert share.startswith(SHARE)


def test_a_count_of_levels_says_its_rule_and_has_an_interval(engine: Engine) -> None:
    receipt = receipt_of(engine, "SELECT COUNT(DISTINCT city) AS n FROM patients")
    (column,) = receipt.columns
    assert (column.low, column.high) == ((5.0,), (5.0,))
    assert "Its interval goes up to the number of all possible levels" in receipt.notes[0]


LISTS = [
    "SELECT DISTINCT city FROM patients",
    "SELECT city FROM patients GROUP BY 1",
    "SELECT COUNT(*) FROM cities WHERE city IN (SELECT DISTINCT city FROM patients)",
    "SELECT name FROM holidays WHERE EXISTS (SELECT city FROM patients GROUP BY city)",
    "SELECT cities.city FROM cities JOIN (SELECT DISTINCT city FROM patients) AS p USING (city)",
    "SELECT MIN(city) AS first FROM (SELECT DISTINCT city FROM patients) AS p",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT city FROM patients LIMIT 2) AS p",
    "SELECT city FROM cities EXCEPT SELECT DISTINCT city FROM patients",
    "SELECT city, COUNT(*) OVER () AS n FROM patients GROUP BY city",
]


@pytest.mark.parametrize("sql", LISTS)
def test_a_list_of_groups_says_that_no_record_was_asked_for(engine: Engine, sql: str) -> None:
    notes = receipt_of(engine, sql).notes
    assert any(note.startswith("The groups of city are all that the public") for note in notes)
    assert not any("computed from noisy answers" in note for note in notes)


COUNTS_OF_GROUPS = [
    f"SELECT sex, COUNT(*) AS n FROM {BY_CITY.format('')} GROUP BY sex",  # noqa: S608 - words of this test
    f"SELECT n FROM (SELECT COUNT(*) AS n FROM {BY_CITY.format('')}) AS x",  # noqa: S608 - words of this test
    "WITH t AS (SELECT city, AVG(age) AS a FROM patients GROUP BY city) SELECT COUNT(*) FROM t",
    "SELECT COUNT(DISTINCT city) FROM (SELECT city, COUNT(*) FROM patients GROUP BY city) AS t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT city FROM patients UNION SELECT 'x') AS t",
]


@pytest.mark.parametrize("sql", COUNTS_OF_GROUPS)
def test_a_count_of_groups_says_that_it_counts_those_shown(engine: Engine, sql: str) -> None:
    notes = receipt_of(engine, sql).notes
    assert sum("counts the groups that are shown" in note for note in notes) == 1


def test_a_count_of_a_list_says_what_it_rests_on(engine: Engine) -> None:
    sql = "WITH t AS (SELECT DISTINCT city FROM patients) SELECT COUNT(*) FROM t"
    note, elsewhere, share = receipt_of(engine, sql).notes
    assert elsewhere == ELSEWHERE
    assert share.startswith(SHARE)
    assert note.startswith("COUNT(*) counts the combinations of levels whose noisy count is above")
