"""The dialect with the SQLAlchemy that is installed; test_sqlalchemy_versions.py has the others."""

import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.engine.url import make_url

import tacit_client
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from tacit_client.sqlalchemy_dialect import TacitDialect
from tests.support.serving import serving
from tests.support.synthetic import spent

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def database(address: str) -> Iterator[sa.Engine]:
    registry.register("tacit", "tacit_client.sqlalchemy_dialect", "TacitDialect")
    engine = sa.create_engine(f"tacit://{address}/?half_width=100", pool_pre_ping=True)
    yield engine
    engine.dispose()


@pytest.fixture
def people(database: sa.Engine) -> sa.Table:
    return sa.Table("people", sa.MetaData(), autoload_with=database)


def test_it_is_registered_by_its_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["sqlalchemy.dialects"]["tacit"].partition(":")
    assert getattr(import_module(module), name) is TacitDialect


def test_the_catalog_is_reflected_for_nothing(database: sa.Engine, engine: Engine) -> None:
    found = sa.inspect(database)
    assert found.get_schema_names() == ["data_privacy", "public"]
    assert found.get_table_names() == ["cities", "people", "staff"]
    assert found.get_table_names("data_privacy") == []
    assert "budgets" in found.get_view_names("data_privacy")
    assert found.has_table("people")
    assert not found.has_table("people", schema="nowhere")
    assert not found.has_table("peopl_")
    columns = {column["name"]: column for column in found.get_columns("people")}
    assert isinstance(columns["age"]["type"], sa.BIGINT)
    assert isinstance(columns["city"]["type"], sa.VARCHAR)
    assert (columns["age"]["comment"], columns["city"]["nullable"]) == ("0 .. 99", True)
    assert found.get_pk_constraint("cities")["constrained_columns"] == ["city"]
    assert found.get_pk_constraint("people")["constrained_columns"] == []
    assert found.get_foreign_keys("people") == []
    assert found.get_indexes("people") == []
    assert "Counts are within 20 of the truth" in str(found.get_table_comment("people")["text"])
    assert found.get_table_comment("budgets", "data_privacy") == {"text": None}
    assert spent(engine) == 0


def test_a_key_of_several_columns_is_reflected_in_its_order(engine: Engine) -> None:
    offers = PublicTable("offers", ("y", "x"), pa.table({"x": [1], "v": [2], "y": [3]}))
    registry.register("tacit", "tacit_client.sqlalchemy_dialect", "TacitDialect")
    with serving(engine, public=(offers,)) as address:
        database = sa.create_engine(f"tacit://{address}/")
        found = sa.inspect(database).get_pk_constraint("offers")
        reflected = sa.Table("offers", sa.MetaData(), autoload_with=database)
        database.dispose()
    assert found["constrained_columns"] == ["y", "x"]
    assert [column.name for column in reflected.primary_key] == ["y", "x"]


def test_a_whole_schema_is_reflected(database: sa.Engine) -> None:
    metadata = sa.MetaData()
    metadata.reflect(database)
    assert set(metadata.tables) == {"cities", "people", "staff"}
    assert [column.name for column in metadata.tables["cities"].primary_key] == ["city"]


def test_a_table_that_is_not_there_is_not_found(database: sa.Engine) -> None:
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nobody", sa.MetaData(), autoload_with=database)
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.inspect(database).get_table_comment("nobody")


def test_a_built_statement_is_answered(database: sa.Engine, people: sa.Table) -> None:
    statement = (
        sa.select(people.c.city, sa.func.count().label("n"))
        .where(people.c.age.between(20, 60), people.c.city.in_(["Oslo", "Rome"]))
        .group_by(people.c.city)
        .order_by(sa.desc("n"))
        .limit(5)
    )
    with database.connect() as connection:
        rows = connection.execute(statement).all()
        assert sorted(row.city for row in rows) == ["Oslo", "Rome"]
        assert rows[0].n >= rows[1].n
        text = str(statement.compile(database, compile_kwargs={"literal_binds": True}))
        assert connection.execute(sa.text(text)).all() == rows


def test_text_is_escaped_as_the_server_reads_it(database: sa.Engine) -> None:
    odd = sa.literal("a'b\\c%d_")
    with database.connect() as connection:
        bound = connection.execute(sa.select(odd)).scalar()
        written = sa.select(odd).compile(database, compile_kwargs={"literal_binds": True})
        assert bound == connection.execute(sa.text(str(written))).scalar() == "a'b\\c%d_"


def test_parts_of_texts_are_found(database: sa.Engine, people: sa.Table) -> None:
    count = sa.select(sa.func.count())
    with database.connect() as connection:
        found = connection.execute(count.where(people.c.city.contains("sl", autoescape=True)))
        written = connection.execute(count.where(people.c.city == "Oslo"))
        assert found.scalar() == written.scalar()


def test_pandas_reads_through_it(database: sa.Engine) -> None:
    with database.connect() as connection:
        frame = pd.read_sql(
            sa.text("SELECT member, COUNT(*) AS n FROM people WHERE age > :age GROUP BY member"),
            connection,
            params={"age": 30},
        )
        assert list(frame.columns) == ["member", "n"]
        assert frame["n"].sum() == pytest.approx(2000 * 0.7, rel=0.3)
        assert len(pd.read_sql_table("cities", connection)) == 2


def test_a_refusal_keeps_its_numbers(database: sa.Engine) -> None:
    with database.connect() as connection, pytest.raises(sa.exc.OperationalError) as caught:
        connection.execute(
            sa.text(
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.01) COUNT(*) FROM people"
            )
        )
    assert isinstance(caught.value.orig, tacit_client.NotCovered)
    assert caught.value.orig.epsilon_needed is not None


def test_writing_is_refused_in_the_servers_words(database: sa.Engine, people: sa.Table) -> None:
    with database.connect() as connection, pytest.raises(sa.exc.DBAPIError) as caught:
        connection.execute(sa.insert(people).values(age=1))
    assert isinstance(caught.value.orig, tacit_client.InvalidStatement)


def test_the_url_says_how_to_connect() -> None:
    url = make_url("tacit://ann:tacit_x@example.org:1/?half_width=50&tls=true&epsilon=0.1")
    assert TacitDialect().create_connect_args(url) == (
        [],
        {
            "server": "example.org:1",
            "user": "ann",
            "token": "tacit_x",
            "half_width": 50.0,
            "tls": True,
            "epsilon": "0.1",
        },
    )
    bare = TacitDialect().create_connect_args(make_url("tacit://"))[1]
    assert bare["server"] is None
    assert TacitDialect().create_connect_args(make_url("tacit://[::1]/"))[1]["server"] == (
        "[::1]:31337"
    )


@pytest.mark.parametrize("query", ["halfwidth=50", "half_width=x", "tls=perhaps"])
def test_a_wrong_option_of_the_url_is_named(query: str) -> None:
    with pytest.raises(sa.exc.ArgumentError, match=query.partition("=")[0]):
        TacitDialect().create_connect_args(make_url(f"tacit://h:1/?{query}"))
