"""A value that is no level is unequal to every row, as in SQL; a note says so, or a refusal."""

from collections.abc import Iterator

import pytest

from cube.refusals import OutsideDomain
from planner.planner import Planner
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.comparing import agree, oracle_rows, rows_of
from tests.support.fakes import KnownTable, NoNoise

COUNT = "SELECT COUNT(*) AS n FROM patients WHERE "
# Conditions, and what the note says.
NOTED = {
    "sex = 'femal'": "sex never equals 'femal'. Did you mean 'female' or 'male'?",
    "sex <> 'Male'": "Did you mean 'male' or 'female'?",
    "sex IN ('male', 'x', 'y')": "sex never equals 'x', 'y'.",
    "sex NOT IN ('nobody')": "sex never equals 'nobody'.",
    "sex = ''": "sex never equals ''.",
    "NOT (sex = 'other')": "sex never equals 'other'.",
    "sex IS DISTINCT FROM 'other'": "sex never equals 'other'.",
    "CASE sex WHEN 'm' THEN FALSE ELSE TRUE END": "sex never equals 'm'.",
    "age = 200": "age never equals 200. Its levels run from 18 to 90.",
    "age <> 17.5": "age never equals 17.5.",
    "age = '17'": "age never equals '17'.",
    "visits IN (1, -1)": "visits never equals -1.",
    "stay = 2.25": "Its levels run from 0.0 to 14.0 in steps of 0.5.",
    "cost <> 3": "cost never equals 3.",
    "admitted = DATE '2030-01-01'": "Its levels run from 2023-11-01 to 2024-02-29.",
    "admitted <> '1999-12-31'": "admitted never equals '1999-12-31'.",
    "age > 30 AND (sex = 'x' OR visits = 3)": "sex never equals 'x'.",
}
SILENT = ("age BETWEEN 100 AND 200", "age < 10", "sex = 'male'", "stay > 2.25", "sex LIKE 'z%'")
STRICT = RequestedTarget(refuse_unknown_values=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("unknown"), source, NoNoise()) as engine:
        yield engine


def planner() -> Planner:
    return Planner({"patients": world.SCHEMA}, {"patients": world.DEFAULT})


@pytest.mark.parametrize("condition", [*NOTED, *SILENT])
def test_it_counts_what_sql_counts_and_a_note_says_so(engine: Engine, condition: str) -> None:
    sql = COUNT + condition
    for _ in range(2):  # what is known of a condition does not take the note away
        answer = engine.answer(QueryRequest(sql=sql))
        assert answer.receipt is not None
        told = " ".join(answer.receipt.notes)
        assert NOTED.get(condition, "") in told
        assert ("never equals" in told) == (condition in NOTED)
        (found,), (expected,) = rows_of(answer.data), oracle_rows(WORLD, sql)
        assert agree(found, expected)


WORLD = world.database(world.positions())


@pytest.mark.parametrize("condition", NOTED)
def test_an_option_refuses_it_whatever_was_asked_before(condition: str) -> None:
    used = planner()
    used.plan(COUNT + condition)
    with pytest.raises(OutsideDomain, match="never equals"):
        used.plan(COUNT + condition, STRICT)
    used.plan(COUNT + condition + " AND TRUE")


@pytest.mark.parametrize("condition", ["city = 'X'", "city <> 'X'", "city IN ('Oslo', '')"])
def test_rows_that_may_be_among_other_are_not_counted_as_unequal(condition: str) -> None:
    with pytest.raises(OutsideDomain, match=r"'.*' is not among the declared values of city"):
        planner().plan(COUNT + condition)


def test_a_dashboard_with_one_stale_filter_has_its_other_groups(engine: Engine) -> None:
    sql = "SELECT sex, COUNT(*) AS n FROM patients WHERE sex IN ('male', 'unknown') GROUP BY sex"
    assert [row["sex"] for row in engine.answer(QueryRequest(sql=sql)).data.to_pylist()] == ["male"]


def test_many_values_are_summed_up(engine: Engine) -> None:
    listed = ", ".join(f"'no{number}'" for number in range(100))
    answer = engine.answer(QueryRequest(sql=f"{COUNT} sex IN ({listed})"))
    assert answer.receipt is not None
    assert any("and 95 more" in note for note in answer.receipt.notes)
