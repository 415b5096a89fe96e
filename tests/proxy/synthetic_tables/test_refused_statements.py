"""Statements about synthetic tables that are refused unpaid: by owner, name, option and limit."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import Refused
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.config.memory import SyntheticLimits
from proxy.engine.engine import Engine
from tests.support.synthetic import (
    ANN,
    BOB,
    EVE,
    MAKE,
    TWO_COLUMNS,
    asked,
    refused,
    spent,
    synthetic_engine,
)


def test_a_score_for_two_levels_is_priced_and_used_where_other_columns_are_wider(
    engine: Engine,
) -> None:
    order = f"{MAKE} WITH (epsilon => 1, method => 'privbayes', score => 'F'"
    priced = asked(engine, f"EXPLAIN PRIVACY {order}, {TWO_COLUMNS})")
    assert [row["step"] for row in priced][-2:] == ["choosing the network", "measuring tables"]
    asked(engine, f"{order}, {TWO_COLUMNS}, rows => 20)")
    (table,) = engine.synthetic.known(LOCAL)
    assert "score => 'F'" in table.options


def test_who_may_not_know_of_its_source_does_not_know_of_it(made: Engine) -> None:
    assert asked(made, "SELECT COUNT(*) AS n FROM s", BOB) == [{"n": 500}]
    for sql in ("SELECT COUNT(*) FROM s", "DROP SYNTHETIC TABLE s", MAKE.replace(" s ", " t ")):
        told = refused(made, sql, EVE)
        assert told.code == "unknown_name"
        assert told.hint in {
            "There is none yet.",
            "Tables here: staff.",
            "The tables are cities, staff.",
        }
    assert asked(made, "DROP SYNTHETIC TABLE IF EXISTS s", EVE) == [{"name": "s", "dropped": False}]
    assert asked(made, "SELECT COUNT(*) AS n FROM s", BOB) == [{"n": 500}]


def test_a_name_is_taken_and_nobody_hears_by_which_table(made: Engine) -> None:
    told = {
        refused(made, f"CREATE SYNTHETIC TABLE {name} FROM staff WITH (epsilon => 1)", EVE)
        .explain()
        .replace(f" {name} ", " _ ")
        for name in ("staff", "STAFF", "cities")
    }
    assert told == {"The name _ is taken. Choose another."}
    assert refused(made, f"{MAKE} WITH (epsilon => 1)", BOB).code == "name_taken"
    assert spent(made, "staff") == 0


@pytest.mark.parametrize("name", ["data_privacy", "SELECT", '"a b"', "'s'", "1s", "é"])
def test_what_is_no_name_is_refused(engine: Engine, name: str) -> None:
    told = refused(engine, f"CREATE SYNTHETIC TABLE {name} FROM people WITH (epsilon => 1)")
    assert told.code in {"sql_syntax", "invalid_request"}
    assert spent(engine) == 0


def test_who_made_a_table_or_owns_its_source_may_drop_and_replace_it(made: Engine) -> None:
    replacing = f"CREATE OR REPLACE SYNTHETIC TABLE s FROM people WITH ({TWO_COLUMNS})"
    for sql in ("DROP SYNTHETIC TABLE s", replacing):
        assert refused(made, sql, BOB).code == "not_allowed"
    asked(made, replacing, ANN)
    owner = Caller(Payer("olga"), Role.OWNER, ("people",))
    assert asked(made, "DROP SYNTHETIC TABLE S", owner) == [{"name": "S", "dropped": True}]
    assert refused(made, "DROP SYNTHETIC TABLE s", ANN).code == "unknown_name"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("method => 'gan', epsilon => 1", "invalid_request"),
        ("epsilon => 11", "budget_exhausted"),
        ("rows => 10000000, epsilon => 1", "too_large"),
        ("columns => (age, Age), epsilon => 1", "invalid_request"),
        ("columns => (income), epsilon => 1", "unknown_name"),
        ("epsilon => 1000", "invalid_target"),
        ("epsilon => 1, score => 'R'", "invalid_request"),
        ("epsilon => 1, degree => 3, method => 'pairwise'", "invalid_request"),
        ("epsilon => 1, hierarchies => false", "invalid_request"),
        ("epsilon => 1, method => 'privbayes', score => 'X'", "invalid_request"),
        ("epsilon => 1, method => 'privbayes', theta => 0", "invalid_target"),
        ("epsilon => 1, method => 'privbayes', structure_share => 1", "invalid_target"),
        ("epsilon => 1, holders => 'any'", "invalid_request"),
        ("epsilon => 1, holders => 'all'", "invalid_request"),
        ("epsilon => 1, theta => 4", "invalid_request"),
        ("epsilon => 1, groups => cities.country", "invalid_request"),
        ("epsilon => 1, method => 'privbayes', groups => towns.country", "unknown_name"),
        ("epsilon => 1, method => 'privbayes', groups => cities.planet", "unknown_name"),
        ("epsilon => 1, method => 'privbayes', degree => 9", "invalid_target"),
    ],
)
def test_what_cannot_be_made_is_refused_unpaid(engine: Engine, options: str, code: str) -> None:
    told = refused(engine, f"{MAKE} WITH ({options})")
    assert told.code == code
    assert spent(engine) == 0
    assert told.hint
    assert not engine.synthetic.known(LOCAL)


def test_a_cap_on_a_session_holds_for_tables(engine: Engine) -> None:
    target = RequestedTarget(epsilon_cap=Fraction(1, 2))
    request = QueryRequest(sql=f"{MAKE} WITH (epsilon => 1)", target=target)
    with pytest.raises(Refused) as caught:
        engine.answer(request)
    assert caught.value.code == "cost_above_cap"
    assert spent(engine) == 0
    engine.answer(replace(request, sql=f"{MAKE} WITH (epsilon => 0.5)"))


@pytest.mark.parametrize("limits", [SyntheticLimits(n_tables=1), SyntheticLimits(n_bytes=10**4)])
def test_there_is_no_place_beyond_the_limits(tmp_path: Path, limits: SyntheticLimits) -> None:
    with synthetic_engine(tmp_path, limits=limits) as engine:
        asked(engine, f"{MAKE} WITH (epsilon => 1, rows => 10)")
        other = f"CREATE SYNTHETIC TABLE t FROM people WITH (epsilon => 1, rows => {10**6})"
        assert refused(engine, other).code == "too_large"
        assert spent(engine) <= 1
        asked(engine, "CREATE OR REPLACE SYNTHETIC TABLE s FROM people WITH (rows => 10)")


def test_a_server_without_a_place_says_how_to_give_it_one(engine: Engine) -> None:
    bare = Engine(engine._tables)
    told = refused(bare, f"{MAKE} WITH (epsilon => 1)")
    assert told.code == "invalid_request"
    assert "synthetic_dir" in told.explain()
    assert asked(bare, "SELECT COUNT(*) AS n FROM data_privacy.synthetic_tables") == [{"n": 0}]
