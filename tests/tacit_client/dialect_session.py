"""A session with the dialect, for an environment that has nothing of this repository but its wheel.

`python dialect_session.py HOST:PORT` prints the version of SQLAlchemy, or fails. It is written for
SQLAlchemy 1.4, 2.0 and 2.1 alike, and runs apart from pytest.
"""

import sys

import pandas as pd
import sqlalchemy as sa


def main(address: str) -> None:
    engine = sa.create_engine(f"tacit://{address}/?half_width=100", pool_pre_ping=True)
    with engine.connect() as connection:
        reflected(connection)
        answered(connection)
        refused(connection)
    with engine.connect() as connection:  # from the pool, after its ping
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    engine.dispose()
    print(sa.__version__)  # noqa: T201 - what the test reads


def reflected(connection: sa.engine.Connection) -> None:
    found = sa.inspect(connection)
    assert found.get_schema_names() == ["data_privacy", "public"]
    assert found.get_table_names() == ["cities", "people", "staff"]
    assert "budgets" in found.get_view_names("data_privacy")
    (age,) = [one for one in found.get_columns("people") if one["name"] == "age"]
    assert isinstance(age["type"], sa.BIGINT)
    assert age["comment"] == "0 .. 99"
    assert found.get_pk_constraint("cities")["constrained_columns"] == ["city"]
    assert found.has_table("people")
    assert not found.has_table("nobody")


def answered(connection: sa.engine.Connection) -> None:
    people = sa.Table("people", sa.MetaData(), autoload_with=connection)
    statement = (
        sa.select(people.c.city, sa.func.count().label("n"))
        .where(people.c.age > 30, people.c.city.in_(["Oslo", "Rome"]))
        .group_by(people.c.city)
        .order_by(sa.desc("n"))
        .limit(5)
    )
    rows = connection.execute(statement).fetchall()
    assert {row.city for row in rows} == {"Oslo", "Rome"}
    frame = pd.read_sql(statement, connection)
    assert frame["n"].tolist() == [row.n for row in rows]
    bound = sa.text("SELECT COUNT(*) AS n FROM people WHERE city = :city")
    ((n,),) = connection.execute(bound, {"city": "Oslo"}).fetchall()
    assert n > 0


def refused(connection: sa.engine.Connection) -> None:
    code = None
    try:
        connection.execute(sa.text("SELECT nonsense FROM people"))
    except sa.exc.ProgrammingError as error:
        code = getattr(error.orig, "code", None)
    assert code == "unknown_name"


if __name__ == "__main__":
    main(sys.argv[1])
