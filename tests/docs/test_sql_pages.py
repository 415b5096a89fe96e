"""Statements that the pages show are answered; the numbers of the page on choices are right."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tacit_client
from tests.sql import by_task

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMING_FROM = (DOCS / "coming_from.md").read_text(encoding="utf-8")
CHOOSING = (DOCS / "choosing.md").read_text(encoding="utf-8")
STATEMENTS = re.findall(r"```sql\n(.*?)\n```", COMING_FROM, re.DOTALL)
DECIMAL = r"(\d*\.?\d+)"


@pytest.fixture(scope="module")
def analyst() -> Iterator[tacit_client.Connection]:
    with by_task.analyst() as connection:
        yield connection


def test_every_task_has_an_answer() -> None:
    page = by_task.document()
    n_tasks = sum(map(len, by_task.SECTIONS.values()))
    assert page.count("\n### ") == page.count("```text") == n_tasks > 20
    assert "epsilon spent 0;" in page
    assert "interval" in page


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_those_who_come_from_elsewhere_read_is_answered(
    analyst: tacit_client.Connection, sql: str
) -> None:
    assert len(STATEMENTS) >= 7
    assert analyst.sql(sql).to_arrow().num_rows > 0


BEST = re.findall(r"^    (SELECT .*DP_BEST.*)$", (DOCS / "sql.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("sql", BEST)
def test_the_reports_of_the_page_are_answered(analyst: tacit_client.Connection, sql: str) -> None:
    assert len(BEST) == 3
    rows = analyst.sql(sql).to_arrow()
    assert rows.column("report").null_count == 0
    assert analyst.explain(sql).to_arrow().num_rows > 0


def test_a_statement_that_names_its_epsilon_is_not_told_that_it_names_none(
    analyst: tacit_client.Connection,
) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon => 0.003)"
    counts = "COUNT(*) AS n FROM adult GROUP BY relationship"
    named = analyst.sql(f"SELECT {clause} relationship, {counts}")
    assert 0 < named.epsilon_spent <= 0.003
    assert not any("names no" in note for note in named.notes)
    unnamed = analyst.sql(f"SELECT relationship, {counts}")
    assert any("names no" in note for note in unnamed.notes)


def test_the_answer_on_the_front_page_is_that_of_the_readme() -> None:
    """The session of the README is run by another test."""
    (shown,) = re.findall(r"```console\n(.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)
    assert shown in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def error_of_count(epsilon: float) -> float:
    """The half-width at 95 % of Laplace noise of scale 1/epsilon."""
    return math.log(20) / epsilon


def test_what_epsilon_does_to_a_count() -> None:
    rows = re.findall(
        rf"^\| {DECIMAL} \| {DECIMAL} \| (\d+) \| {DECIMAL} % \|$", CHOOSING, re.MULTILINE
    )
    assert len(rows) == 5
    for epsilon, error, hundredfold, belief in rows:
        exact = error_of_count(float(epsilon))
        assert float(error) == pytest.approx(exact, rel=0.02)
        assert int(hundredfold) == pytest.approx(100 * exact, rel=0.01)
        odds = math.exp(float(epsilon))
        assert float(belief) == pytest.approx(100 * odds / (1 + odds), abs=0.06)


def test_what_a_bound_does_to_a_sum() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| \w.* \|$", CHOOSING, re.MULTILINE)
    assert len(rows) == 3
    for bound, error in rows:
        assert int(error) == round(int(bound) * error_of_count(0.1))


def test_the_server_charges_what_the_page_says(analyst: tacit_client.Connection) -> None:
    """A count to within 300 costs .01: to a hundredth of it, as the lattice rounds."""
    plan = analyst.sql(
        "EXPLAIN PRIVACY SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 299.6) "
        "COUNT(*) AS n FROM adult WHERE native_country = 'Cuba'"
    ).to_pandas()
    assert min(plan[plan.chosen].epsilon) == pytest.approx(0.01, rel=0.01)
