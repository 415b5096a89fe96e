"""Names of synthetic tables tell nobody of tables that they may not know of."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import Refused
from planner.domain.relations import SyntheticName, TableNames, WrittenName
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.config.memory import SyntheticLimits
from proxy.engine.engine import Engine
from proxy.protocol import flight_sql_pb2
from proxy.wire.flight.catalog import Catalog, metadata_table
from tests.support.synthetic import ANN, BOB, EVE, asked, synthetic_engine

OPTIONS = "WITH (epsilon => 1, rows => {}, seed => 1, columns => (city, member))"
COUNT = "SELECT COUNT(*) AS n FROM {}"


def make(engine: Engine, name: str, source: str, caller: Caller, n_rows: int = 10) -> None:
    options = OPTIONS.format(n_rows)
    asked(engine, f"CREATE SYNTHETIC TABLE {name} FROM {source} {options}", caller)


def told(engine: Engine, sql: str, caller: Caller) -> str:
    """What a caller hears: the rows, or the refusal with its code."""
    try:
        return str(asked(engine, sql, caller))
    except Refused as refusal:
        return f"{refusal.code}: {refusal.explain()}"


def n_rows(engine: Engine, table: str, caller: Caller = LOCAL) -> int:
    ((row,),) = [asked(engine, COUNT.format(table), caller)]
    return int(str(row["n"]))


@pytest.mark.parametrize("name", ["s", "S", "people", "People"])
def test_what_a_caller_may_not_know_of_takes_no_name(engine: Engine, name: str) -> None:
    make(engine, "s", "people", ANN)
    make(engine, name, "staff", EVE, n_rows=3)
    assert n_rows(engine, name, EVE) == 3
    assert n_rows(engine, "s", BOB) == 10
    listed = "SELECT table_name, source FROM data_privacy.synthetic_tables"
    assert asked(engine, listed, EVE) == [{"table_name": name, "source": "staff"}]


@pytest.mark.parametrize("name", ["staff", "STAFF", "cities"])
def test_a_table_that_a_caller_may_know_of_keeps_its_name(engine: Engine, name: str) -> None:
    sql = f"CREATE SYNTHETIC TABLE {name} FROM staff {OPTIONS.format(3)}"
    assert told(engine, sql, EVE) == f"name_taken: The name {name} is taken. Choose another."


def test_who_may_know_of_both_names_either(engine: Engine) -> None:
    make(engine, "s", "people", ANN)
    make(engine, "s", "staff", EVE, n_rows=3)
    assert n_rows(engine, "people.s") == 10
    assert n_rows(engine, '"staff".S') == 3
    assert told(engine, COUNT.format('staff."S"'), LOCAL).startswith("unknown_name")
    assert n_rows(engine, "people.s JOIN staff.s AS t USING (city)") > 0
    for sql in (COUNT.format("s"), COUNT.format("public.s"), "DROP SYNTHETIC TABLE IF EXISTS s"):
        heard = told(engine, sql, LOCAL)
        assert heard.startswith("unknown_name: Several private tables have a synthetic table 's'")
        assert heard.endswith(" Write its private table before its name: people.s, staff.s.")
    assert (n_rows(engine, "s", BOB), n_rows(engine, "s", EVE)) == (10, 3)
    assert told(engine, "DROP SYNTHETIC TABLE staff.s", LOCAL) == str(
        [{"name": "s", "dropped": True}]
    )
    assert n_rows(engine, "s") == n_rows(engine, "MAIN.s") == 10


def test_a_private_table_goes_before_a_synthetic_one_that_is_called_so(engine: Engine) -> None:
    make(engine, "people", "staff", EVE, n_rows=3)
    assert n_rows(engine, "staff.people") == 3
    release = engine.answer(QueryRequest(sql=COUNT.format("people")))
    assert release.receipt is not None
    assert release.receipt.table == "people"
    # It was made before anybody could see both; now somebody can, and still has it by its name.
    both = replace(EVE, tables=("staff", "people"))
    assert n_rows(engine, "staff.people", both) == 3
    assert engine.synthetic.find(both, "people").table == "staff"


def test_a_source_that_a_caller_may_not_know_of_is_one_that_is_not_there(engine: Engine) -> None:
    make(engine, "s", "people", ANN)
    make(engine, "t", "staff", EVE)
    for sql in (
        "SELECT COUNT(*) FROM {}.s",
        "SELECT COUNT(*) FROM {}.t",
        "DROP SYNTHETIC TABLE {}.s",
        "DROP SYNTHETIC TABLE IF EXISTS {}.s",
        "CREATE OR REPLACE SYNTHETIC TABLE s FROM {}",
        "EXPLAIN PRIVACY CREATE SYNTHETIC TABLE s FROM {}",
    ):
        heard = [
            told(engine, sql.format(name), EVE).replace(name, "NAME")
            for name in ("people", "peopla")
        ]
        assert heard[0] == heard[1]
    for call in (engine.synthetic.find, engine.synthetic.report, engine.synthetic.drop):
        texts = []
        for name in ("s", "people.s", "x", "peopla.s"):
            with pytest.raises(Refused) as caught:
                call(EVE, name)
            texts.append(f"{caught.value.code} {caught.value.explain()}".replace(repr(name), "_"))
        assert len(set(texts)) == 1
    assert "staff has no synthetic table s" in told(engine, COUNT.format("staff.s"), EVE)


def test_a_name_is_chosen_as_if_nothing_else_were_there(engine: Engine) -> None:
    make(engine, "s", "people", ANN)
    make(engine, "staff_1", "people", ANN)
    make(engine, "t", "staff", EVE)
    assert engine.synthetic.resample(EVE, "t", "", 2, 1).name == "staff_1"
    assert n_rows(engine, "staff.staff_1", EVE) == 2


def test_replacing_is_among_the_tables_of_one_source(engine: Engine) -> None:
    make(engine, "s", "people", ANN)
    options = OPTIONS.format(3)
    asked(engine, f"CREATE OR REPLACE SYNTHETIC TABLE s FROM staff {options}", LOCAL)
    assert (n_rows(engine, "people.s"), n_rows(engine, "staff.s")) == (10, 3)


def test_the_places_of_one_are_no_matter_of_another(tmp_path: Path) -> None:
    with synthetic_engine(tmp_path, limits=SyntheticLimits(n_tables=1)) as engine:
        make(engine, "s", "people", ANN)
        make(engine, "t", "people", BOB)
        make(engine, "s", "staff", EVE)
        make(engine, "u", "staff", ANN)
        assert told(
            engine, f"CREATE SYNTHETIC TABLE v FROM people {OPTIONS.format(3)}", ANN
        ).startswith("too_large: You have 1 synthetic tables of people")
        again = f"CREATE OR REPLACE SYNTHETIC TABLE S FROM people {OPTIONS.format(3)}"
        asked(engine, again, ANN)
        # Taking somebody else's name takes a place of one's own.
        asked(engine, again, LOCAL)
        other = f"CREATE OR REPLACE SYNTHETIC TABLE t FROM people {OPTIONS.format(3)}"
        assert told(engine, other, LOCAL).startswith("too_large")
        asked(engine, "DROP SYNTHETIC TABLE people.s", LOCAL)
        make(engine, "v", "people", ANN)


def test_a_catalog_lists_each_table_where_sql_finds_it(engine: Engine) -> None:
    make(engine, "s", "people", ANN)
    make(engine, "s", "staff", EVE)
    make(engine, "t", "staff", EVE)

    def listed(caller: Caller) -> set[tuple[str, str]]:
        served = Catalog(engine.tables(caller), (), engine.synthetic.known(caller), engine.views())
        rows = metadata_table(flight_sql_pb2.CommandGetTables(), served).to_pylist()
        schemas = metadata_table(flight_sql_pb2.CommandGetDbSchemas(), served)
        assert {row["db_schema_name"] for row in rows} == set(schemas["db_schema_name"].to_pylist())
        found = {(row["db_schema_name"], row["table_name"]) for row in rows}
        assert views <= found
        return found - views

    views = {("data_privacy", name) for name in engine.views()}
    assert listed(EVE) == {("public", "staff"), ("public", "s"), ("public", "t")}
    assert listed(LOCAL) == {
        ("public", "people"),
        ("public", "staff"),
        ("public", "t"),
        ("people", "s"),
        ("staff", "s"),
    }
    for schema, name in listed(LOCAL):
        assert asked(engine, COUNT.format(f'"{schema}"."{name}"'))


NAMES = st.sampled_from(["a", "A", "b", "main", "public", "a b", "a.b"])
SYNTHETIC = st.sampled_from(["a", "A", "b", "c"])


@given(
    declared=st.lists(NAMES, unique_by=str.casefold, min_size=1),
    own=st.lists(st.tuples(NAMES, SYNTHETIC)),
)
def test_every_synthetic_table_has_a_name_that_means_it(
    declared: list[str], own: list[tuple[str, str]]
) -> None:
    by_key = {
        (source, name.lower()): SyntheticName(source, name)
        for source, name in own
        if source in declared and source.casefold() not in {"main", "public"}
    }
    names = TableNames(tuple(declared), tuple(by_key.values()))
    for one in by_key.values():
        assert names.meaning(WrittenName(one.name), WrittenName(one.source)) == one
        assert (
            names.meaning(
                WrittenName(one.name, is_quoted=True), WrittenName(one.source, is_quoted=True)
            )
            == one
        )
        brief = names.brief(one)
        if brief == one.name:
            assert (
                names.meaning(WrittenName(brief))
                == names.meaning(WrittenName(brief), WrittenName("public"))
                == one
            )
    for name in declared:
        assert (
            names.meaning(WrittenName(name))
            == names.meaning(WrittenName(name), WrittenName("MAIN"))
            == name
        )
