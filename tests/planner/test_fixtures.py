"""Cases as text: the SQL, and what it becomes or why it is refused.

A case is a comment, a statement, and what is expected, each on one line; cases are separated by an
empty line. What is answered is also run in DuckDB on known records.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from cube.query import Term
from cube.refusals import Refused
from planner.level_summary import LevelSummary
from planner.workload import Aggregate, Answer, Part, QuantileFormula, SqlFormula, Workload
from tests.planner.people import check_against, database, planner

FIXTURES = Path(__file__).parent / "fixtures"
PLANNER = planner()
DATABASE = database()


class Case(NamedTuple):
    why: str
    sql: str
    expected: str


def cases(name: str) -> list[Case]:
    blocks = (FIXTURES / name).read_text().strip().split("\n\n")
    found = []
    for block in blocks:
        why, sql, expected = block.split("\n")
        assert why.startswith("-- ")
        found.append(Case(why[3:], sql.removesuffix(";"), expected.removesuffix(";")))
    return found


def summary(workload: Workload) -> str:
    """The answers of each part with their groups, and the SQL that follows."""
    stages = [_part(part) for part in workload.parts]
    if workload.outer is not None:
        stages.append(f"then {workload.outer.sql}")
    return "; ".join(stages)


def _part(part: Part) -> str:
    shown = ", ".join(_answer(answer, part) for answer in part.answers) or "no answer"
    groups = f"; {part.n_rows} groups" if part.keys else ""
    return shown + groups


def _answer(answer: Answer, part: Part) -> str:
    used = [_aggregate(part.aggregates[place]) for place in answer.uses]
    match answer.formula:
        case None:
            return f"{answer.name} = {used[0]}"
        case SqlFormula(sql):
            parts = ", ".join(f"a{place} = {one}" for place, one in enumerate(used))
            return f"{answer.name} = {sql} ({parts})"
        case LevelSummary(sql=sql):
            return f"{answer.name} = {sql} ({used[0]})"
        case QuantileFormula(fraction):
            return f"{answer.name} = quantile {fraction} of the levels of {used[0]}"


def _aggregate(aggregate: Aggregate) -> str:
    if not aggregate.blocks:
        return "nothing"
    query = aggregate.blocks[0].query
    parts = [_term(term) for term in query.terms]
    if query.constant or not parts:
        parts.append(str(query.constant))
    return " + ".join(parts) + (" of all groups" if aggregate.is_total else "")


def _term(term: Term) -> str:
    factors = [f"[{' '.join(factor.axes)}]" for factor in term.factors]
    return " * ".join([str(term.scale), *factors])


@pytest.mark.parametrize("case", cases("answered.sql"), ids=lambda case: case.why)
def test_what_is_answered(case: Case) -> None:
    workload = PLANNER.plan(case.sql)
    assert summary(workload) == case.expected
    check_against(DATABASE, case.sql, workload)


@pytest.mark.parametrize("case", cases("refused.sql"), ids=lambda case: case.why)
def test_what_is_refused(case: Case) -> None:
    code, fragment = case.expected.split(": ", 1)
    with pytest.raises(Refused) as refusal:
        PLANNER.plan(case.sql)
    assert refusal.value.code == code
    found = refusal.value
    assert fragment in found.explain() or fragment in f"{found.message} {found.hint}"
