"""The fingerprint of a private view: what it covers, and data that may not pass for the same."""

import hashlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.refusals import DataChanged, LedgerMismatch, SourceUnavailable
from cube.schema import Schema
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PrivateView, SourceLocation
from proxy.sources.rows_digest import DigestKind
from tests.support.loaded import database_of
from tests.support.shop import AGE, PER_PERSON, VISITS, schema_of, view_of, write_shop


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


def _fingerprint(schema: Schema, location: PrivateView, key: bytes = b"key") -> str:
    return DuckDbSource(schema, location).fingerprint(key)


def test_the_fingerprint_of_a_view_covers_its_text_its_files_and_its_rows(shop: Path) -> None:
    schema = schema_of(AGE, VISITS)
    known = _fingerprint(schema, view_of(shop))
    assert len(known) == len(DigestKind.SUMS.value) + 2 * hashlib.sha256().digest_size
    assert _fingerprint(schema, view_of(shop)) == known
    assert _fingerprint(schema, view_of(shop, f"\n{PER_PERSON} ")) == known
    assert _fingerprint(schema_of(VISITS, AGE), view_of(shop)) == known
    assert _fingerprint(schema, view_of(shop), b"other") != known
    assert _fingerprint(schema, view_of(shop, PER_PERSON.replace("30", "31") + "--")) != known
    assert _fingerprint(schema_of(AGE), view_of(shop)) != known
    beside = SourceLocation(path=shop / "shop.duckdb", source_table="other")
    assert _fingerprint(schema, view_of(shop, beside=beside)) != known
    with (shop / "people.csv").open("a") as file:
        file.write(",,\n")
    assert _fingerprint(schema, view_of(shop)) != known


def test_a_view_that_gives_other_rows_is_not_the_same_data(shop: Path) -> None:
    """Refined noise is the noise that was drawn only if the exact answer is what it was."""
    view = view_of(shop, "SELECT CAST(floor(random() * 2**20) AS BIGINT) AS age FROM range(20)")
    schema = schema_of(IntegerAxis(name="age", low=0, high=2**20 - 1))
    assert len({_fingerprint(schema, view) for _ in range(3)}) == 3
    with open_ledger(shop / "a.ledger") as ledger:
        open_table(ledger, schema, Fraction(1), DuckDbSource(schema, view), SystemNoise())
        with pytest.raises(DataChanged):
            open_table(ledger, schema, Fraction(1), DuckDbSource(schema, view), SystemNoise())


def test_a_view_under_a_second_name_is_given_no_second_budget(shop: Path) -> None:
    schema = schema_of(AGE, VISITS)
    other = Schema(table="others", axes=(VISITS, AGE), n_records_max=50, unit="id")
    with open_ledger(shop / "a.ledger") as ledger:
        source = DuckDbSource(schema, view_of(shop))
        open_table(ledger, schema, Fraction(1), source, SystemNoise())
        again = DuckDbSource(other, view_of(shop))
        with pytest.raises(
            LedgerMismatch, match="records the data of others under the name people"
        ):
            open_table(ledger, other, Fraction(1), again, SystemNoise())


def test_sums_of_doubles_are_the_same_each_time_a_view_runs(tmp_path: Path) -> None:
    """Threads add in another order each time: with two, six runs gave six different sums here."""
    rng = np.random.default_rng(11)
    table = pa.table({"person": rng.integers(0, 4, 200_000), "x": rng.random(200_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5000)
    sql = (
        "SELECT person, sum(x) AS total, CAST(hash(total) % 1048576 AS BIGINT) AS age "
        "FROM a GROUP BY person"
    )
    view = PrivateView(sql=sql, sources=(("a", SourceLocation(path=tmp_path / "a.parquet")),))
    schema = schema_of(IntegerAxis(name="age", low=0, high=2**20 - 1), unit="person")
    assert len({_fingerprint(schema, view) for _ in range(6)}) == 1


def test_a_source_that_changed_since_a_view_ran_has_no_fingerprint(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE), view_of(shop))
    with (shop / "people.csv").open("a") as file:
        file.write("d,1,\n")
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_rows_that_cannot_be_read_for_the_fingerprint_are_not_quoted(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE), view_of(shop))
    database_of(source).execute("DROP TABLE cells")
    with pytest.raises(SourceUnavailable) as caught:
        source.fingerprint(b"key")
    assert caught.value.__suppress_context__
