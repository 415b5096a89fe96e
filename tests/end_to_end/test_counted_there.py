"""A table that stays in PostgreSQL or behind Spark, from its declaration to its answers."""

from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from cube.refusals import CannotStart, SourceUnavailable
from proxy.config.settings import load
from tests.proxy.sources.conformance.places import Rows, fill
from tests.proxy.sources.pushdown.test_rows_that_change import SWAPPED, TABLE, TYPES
from tests.support.configured import ask, configured, spent
from tests.support.postgres import PostgresServer
from tests.support.sail import SailServer

CONFIG = """
[ledger]
path = "a.ledger"

[tables.people]
{source}
unit = "id"
budget = "100"
n_records_max = 1000
half_width = 1

[tables.people.columns]
sex = {{kind = "category", levels = ["f", "m"]}}
age = {{kind = "integer", low = 0, high = 9, null = true}}
"""
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people WHERE age < 5 GROUP BY sex ORDER BY sex"
SECRET = "s3cr3t-t0ken"  # noqa: S105 - made up
DELETED = "DELETE FROM {t} WHERE id = 3"
IN_SPARK = 'source = "sc://host:1"\nsource_table = "t"\nversion = 1\n'
IN_POSTGRES = 'source = "postgresql://u@localhost/d"\nextract = "none"\n'


def check_answers(folder: Path, text: str) -> None:
    """Answers are near the truth; what was asked is free, also after another start."""
    with configured(folder, text) as service:
        found = ask(service, BY_SEX, half_width=0.4)
        # With the default confidence; a miss by 3 is less likely than 1e-9.
        assert all(abs(row["n"] - 5) < 3 or abs(row["n"] - 6) < 3 for row in found)
        before = spent(service)
        assert before > 0
        assert ask(service, BY_SEX, half_width=0.4) == found
    with configured(folder, text) as service:
        assert ask(service, BY_SEX, half_width=0.4) == found
        assert spent(service) == before


def postgres_config(server: PostgresServer, table: str) -> str:
    place = f"postgresql://owner@/postgres?host={server.folder}&port=5432"
    lines = f'source = "{place}"', f'source_table = "{table}"', "immutable = true"
    return CONFIG.format(source="\n".join([*lines, 'extract = "none"', "timeout = 60"]))


def test_a_table_of_postgresql(postgres_server: PostgresServer, tmp_path: Path) -> None:
    table = f"t_{uuid4().hex}"
    text = postgres_config(postgres_server, table)
    with postgres_server.connect() as connection:
        fill(connection, table, Rows(TABLE, TYPES))
        check_answers(tmp_path, text)


def test_rows_that_changed_cost_one_charge_at_most(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The first measurement notices; from then on nothing is charged, and history answers."""
    table = f"t_{uuid4().hex}"
    with postgres_server.connect() as connection:
        fill(connection, table, Rows(TABLE, TYPES))
        with configured(tmp_path, postgres_config(postgres_server, table)) as service:
            known = ask(service, BY_SEX)
            connection.execute(DELETED.format(t=table).encode())
            with pytest.raises(SourceUnavailable):
                ask(service, BY_SEX, half_width=0.4)
            pending = spent(service)
            for half_width in (0.3, 0.2):
                with pytest.raises(SourceUnavailable):
                    ask(service, BY_SEX, half_width)
            assert spent(service) == pending
            assert ask(service, BY_SEX) == known
        with pytest.raises(CannotStart):
            load_again(tmp_path)


def load_again(folder: Path) -> None:
    with configured(folder, (folder / "tacit.toml").read_text()):
        pass


def test_a_swap_of_columns_charges_nothing(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """What the catalog shows is seen before a charge."""
    table = f"t_{uuid4().hex}"
    with postgres_server.connect() as connection:
        fill(connection, table, Rows(TABLE, TYPES))
        with configured(tmp_path, postgres_config(postgres_server, table)) as service:
            connection.execute(SWAPPED.format(t=table).encode())
            with pytest.raises(SourceUnavailable):
                ask(service, BY_SEX)
            assert spent(service) == 0


def spark_config(address: str, path: Path, more: str = "") -> str:
    """A file behind Spark by its path, whose parts between dots are no names: it has no suffix."""
    lines = f'source = "sc://{address}"', f'source_table = "parquet.{path}"', "tls = false", more
    return CONFIG.format(source="\n".join(["immutable = true", *lines]))


def test_a_table_behind_spark(sail: SailServer, tmp_path: Path) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(TABLE, folder / "part-0.parquet")
    check_answers(tmp_path, spark_config(sail.address, folder))


def test_a_token_goes_over_tls_alone_and_is_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(SECRET)
    text = spark_config("localhost:1", tmp_path / "p", 'token_file = "token"')
    with pytest.raises(CannotStart) as refused:
        load_config(tmp_path, text)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv("TACIT_SPARK_TOKEN", SECRET)
    over_tls = text.replace("tls = false", "").replace('token_file = "token"', "timeout = 5")
    with pytest.raises(CannotStart) as unreachable:
        load_config(tmp_path, over_tls)
    said = f"{unreachable.value} {unreachable.value.hint} {capfd.readouterr()}"
    assert SECRET not in said
    assert not [one for one in tmp_path.rglob("*") if one.name != "token" and _holds(one)]


def load_config(folder: Path, text: str) -> None:
    with configured(folder, text):
        pass


def _holds(path: Path) -> bool:
    return path.is_file() and SECRET.encode() in path.read_bytes()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('source = "sc://host:1"\nimmutable = true', "needs source_table"),
        ('source = "sc://host:1"\nsource_table = "a.b"', "either a version, or immutable"),
        ('source = "sc://host:1/;token=x"\nsource_table = "t"\nversion = 1', "without a token"),
        (IN_SPARK + "tls = false", "only by TLS"),
        (IN_SPARK + 'extract = "file"', "counted where it is"),
        (IN_SPARK + "rows_per_unit_max = 2", "secret"),
        (IN_POSTGRES + 'source_query = "SELECT 1"\nimmutable = true', "source_query are read out"),
        (IN_POSTGRES + 'source_table = "t"', "immutable"),
    ],
)
def test_declarations_that_make_no_sense(tmp_path: Path, lines: str, said: str) -> None:
    (tmp_path / "tacit.toml").write_text(CONFIG.format(source=lines))
    with pytest.raises(CannotStart, match=said):
        load(tmp_path / "tacit.toml")
