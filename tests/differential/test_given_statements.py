"""The given statements mean in Tacit what they mean in a real PostgreSQL, but for a list."""

from pathlib import Path
from typing import Final

import pytest

from tests.differential.comparing import difference, given_by
from tests.differential.given import listed, on_purpose, statements
from tests.differential.two_servers import postgres_with_rows, tacit_serving
from tests.support.postgres import PostgresServer

ROOT: Final = Path(__file__).parents[2]
N_AT_ONCE: Final = 10  # for one ledger: a long history is not what is tested here


@pytest.mark.parametrize("name", sorted({one.file for one in statements()}))
def test_every_statement_agrees_or_is_on_the_list_of_differences(
    tmp_path: Path, postgres_server: PostgresServer, name: str
) -> None:
    asked, differing = [one for one in statements() if one.file == name], {}
    with postgres_with_rows(postgres_server) as postgres:
        for start in range(0, len(asked), N_AT_ONCE):
            folder = tmp_path / str(start)
            folder.mkdir()
            with tacit_serving(folder) as tacit:
                for one in asked[start : start + N_AT_ONCE]:
                    expected, found = given_by(postgres, one.sql), given_by(tacit, one.sql)
                    is_ordered = "order by" in one.sql.lower()
                    how = difference(expected, found, ordered=is_ordered)
                    if how is not None:
                        differing[one.name] = f"{one.sql}\n    {how}"
    every = listed()
    known = [one.name for one in asked if one.name in every]
    new = [f"{name}: {how}" for name, how in differing.items() if name not in known]
    stale = [name for name in known if name not in differing]
    assert not new, "not on the list:\n" + "\n".join(new)
    assert not stale, f"these agree now: take them off differences.toml: {stale}"


def test_every_name_on_the_list_is_of_a_statement() -> None:
    assert listed().keys() <= {one.name for one in statements()}


def test_no_statement_is_there_twice() -> None:
    names = [one.name for one in statements()]
    assert len(names) == len(set(names)) == 429 + 42  # those that were given, and more


def test_the_page_says_what_differs_on_purpose() -> None:
    page = " ".join((ROOT / "docs" / "sql.md").read_text().split())
    assert [reason for reason in on_purpose() if reason not in page] == []
