"""The location of a ledger in PostgreSQL: what is accepted and refused, and never a password."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.ledger.opening import open_postgres_reader, open_postgres_store
from accountant.ledger.stores.postgres_location import (
    PASSWORD_FILE_VARIABLE,
    PostgresLocation,
    password,
)
from cube.refusals import CannotStart


def told(text: str) -> dict[str, str]:
    return dict(PostgresLocation.parse(text).parameters)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("postgresql://localhost/money", "postgresql://localhost:5432/money"),
        ("postgres://tacit@127.0.0.1:5433/money", "postgresql://127.0.0.1:5433/money"),
        ("postgresql://tacit@[::1]:5433/money", "postgresql://[::1]:5433/money"),
        (
            "postgresql://tacit@one:5432,two:5433/money?target_session_attrs=read-write",
            "postgresql://one:5432,two:5433/money",
        ),
        (
            "postgresql:///money?host=/run/postgresql&port=5433&schema=other",
            "postgresql:///run/postgresql:5433/money?schema=other",
        ),
    ],
)
def test_a_location_has_a_name_that_anybody_may_read(text: str, name: str) -> None:
    assert PostgresLocation.parse(text).name == name


def test_the_text_and_the_parameters_of_libpq_agree() -> None:
    parameters = told("postgresql://a%40b@db.example:6432/my%20money?sslrootcert=/etc/ca.pem")
    assert (parameters["user"], parameters["dbname"]) == ("a@b", "my money")
    assert (parameters["host"], parameters["port"]) == ("db.example", "6432")
    assert parameters["sslrootcert"] == "/etc/ca.pem"
    assert parameters["connect_timeout"] == "5"
    assert "schema" not in parameters


@pytest.mark.parametrize("host", ["db.example", "10.0.0.1", "localhost,db.example", "127.0.0.1.x"])
def test_a_remote_server_must_authenticate_itself(host: str) -> None:
    assert told(f"postgresql://{host}/money")["sslmode"] == "verify-full"
    assert told(f"postgresql://{host}/money?sslmode=require")["sslmode"] == "require"
    for weak in ("disable", "allow", "prefer", ""):
        with pytest.raises(ValueError, match="is on another machine"):
            PostgresLocation.parse(f"postgresql://{host}/money?sslmode={weak}")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.8", "[::1]", "%2Frun%2Fpostgresql"])
def test_a_local_server_need_not_authenticate_itself(host: str) -> None:
    assert told(f"postgresql://{host}/money")["sslmode"] == "prefer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("people.ledger", "should be postgresql://"),
        ("mysql://localhost/money", "should be postgresql://"),
        ("postgresql://localhost", "one database"),
        ("postgresql://localhost/", "one database"),
        ("postgresql://localhost/a/b", "one database"),
        ("postgresql:///money", "name its host"),
        ("postgresql://localhost/money?host=/run", "name its host"),
        ("postgresql://@localhost/money", "name its user"),
        ("postgresql://localhost:many/money", "host or host:port"),
        ("postgresql://localhost,/money", "host or host:port"),
        ("postgresql://localhost/money?schema=Money", "a schema of lower-case"),
        ("postgresql://localhost/money?schema=pg_catalog", "a schema of lower-case"),
        ("postgresql://localhost/money?schema", "name=value"),
        ("postgresql://localhost/money?schema=a&schema=b", "an option twice"),
        ("postgresql://localhost/money?options=-c%20fsync%3Doff", "has an unknown option"),
        ("postgresql://localhost/money?service=elsewhere", "has an unknown option"),
        ("postgresql://localhost/money?hostaddr=10.0.0.1", "has an unknown option"),
    ],
)
def test_a_text_that_is_not_a_location_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        PostgresLocation.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:{}@localhost/money",
        "postgresql://:{}@localhost/money",
        "postgresql://localhost/money?password={}",
        "postgresql://ann@localhost/money?sslpassword={}",
    ],
)
@given(secret=st.text(min_size=4))
def test_a_password_is_refused_and_never_repeated(text: str, secret: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        PostgresLocation.parse(text.format(f"hush{secret}hush"))
    assert "hush" not in str(caught.value)
    with pytest.raises(CannotStart) as refused:
        open_postgres_store(text.format(f"hush{secret}hush"))
    assert "hush" not in refused.value.explain()


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_is_a_location_or_a_problem(rest: str) -> None:
    try:
        location = PostgresLocation.parse(f"postgresql://{rest}")
    except ValueError as error:
        assert str(error)  # noqa: PT017 - both outcomes are fine
    else:
        assert location.name.startswith("postgresql://")


def test_the_password_is_in_a_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD_FILE_VARIABLE, raising=False)
    assert password() == {}
    path = tmp_path / "password"
    monkeypatch.setenv(PASSWORD_FILE_VARIABLE, str(path))
    with pytest.raises(CannotStart, match="cannot be read"):
        password()
    path.write_text(" hush, hush \n")
    assert password() == {"password": " hush, hush "}


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for opened in (open_postgres_store, open_postgres_reader):
        with pytest.raises(CannotStart) as caught:
            opened("postgresql://localhost/money")
        assert "pip install 'tacit-dp[postgres-ledger]'" in caught.value.explain()
