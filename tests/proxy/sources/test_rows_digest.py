"""Digests of rows: sums against a slow way, and ledgers that know digests of the earlier way."""

import hashlib
import hmac
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.gate.opening import Funds, open_table, renew_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.refusals import DataChanged, LedgerMismatch
from cube.schema import Schema
from proxy.sources import extract_file, rows_digest
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract.chunks import Chunks
from proxy.sources.extract_file import ExtractPlace, open_extract
from proxy.sources.location import PrivateView, SourceLocation
from proxy.sources.rows_digest import DigestKind, RowsDigest, RowSums

KEY = b"k" * 32
FUNDS = Funds(Fraction(1))
EARLIER = "0" * 64  # how a digest of the earlier way looks
TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def key_for(purpose: str) -> bytes:
    return hashlib.sha256(purpose.encode()).digest()


def enciphered(purpose: str, block: bytes) -> bytes:
    cipher = Cipher(AES(key_for(purpose)), ECB()).encryptor()  # noqa: S305 - as it is specified
    return cipher.update(block)


def slow_sum(rows: list[tuple[int, ...]], types: list[pa.DataType]) -> int:
    """Row by row, as the proof writes it."""
    total = 0
    for row in rows:
        laid = b"".join(
            value.to_bytes(max(4, kind.bit_width // 8), "little", signed=True)
            for value, kind in zip(row, types, strict=True)
        )
        laid += bytes(-len(laid) % 16)
        mixed = 0
        for place in range(len(laid) // 16):
            block = enciphered(f"block {place}", laid[16 * place : 16 * place + 16])
            mixed ^= int.from_bytes(block, "little")
        total += int.from_bytes(enciphered("row", mixed.to_bytes(16, "little")), "little")
    return total


@settings(max_examples=30, deadline=None)
@given(
    types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=9),
    n_rows=st.integers(0, 40),
    n_at_once=st.sampled_from([1, 3, 16, 64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_sum_is_that_of_a_block_of_each_row(
    types: list[pa.DataType], n_rows: int, n_at_once: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 2 ** (kind.bit_width - 1), n_rows) for kind in types]
    names = [f"c{place}" for place in range(len(types))]
    batch = pa.record_batch(
        [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_digest, "N_ROWS_AT_ONCE", n_at_once)
        sums = RowSums(batch.schema, key_for)
        sums.add(batch)
    rows = [tuple(int(column[at]) for column in columns) for at in range(n_rows)]
    assert sums.total == slow_sum(rows, types)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(one=ROWS, other=ROWS, cut=st.integers(0, 8))
def test_digests_are_equal_for_equal_multisets_of_rows_and_only_for_them(
    one: list[tuple[int, int]], other: list[tuple[int, int]], cut: int
) -> None:
    def digest(rows: list[tuple[int, int]], at: int, key: bytes = KEY, title: str = "a") -> str:
        fields = pa.schema([("a", pa.int8()), ("b", pa.int16())])
        batches = [
            pa.record_batch([[x for x, _ in some], [y for _, y in some]], schema=fields)
            for some in (rows[:at], rows[at:])
        ]
        digest = RowsDigest([title], ["a", "b"], key)
        assert list(digest.passing(batches)) == batches
        return digest.text

    known = digest(one, cut)
    assert (digest(other, 0) == known) == (Counter(one) == Counter(other))
    assert known not in {digest(one, cut, b"j" * 32), digest(one, cut, title="b")}


def test_a_new_digest_is_known_from_an_earlier_one_by_its_text() -> None:
    assert DigestKind.of("") is DigestKind.of("sums:00") is DigestKind.SUMS
    assert DigestKind.of(EARLIER) is DigestKind.CELLS


class Earlier(DuckDbSource):
    """A source as the earlier release had it: it knows one way only."""

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - one way
        return super().fingerprint(key, EARLIER)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - one way
        return super().rows_fingerprint(key, EARLIER)


def schema_of(table: str = "people") -> Schema:
    axes = tuple(IntegerAxis(name=name, low=0, high=99) for name in ("a", "b"))
    return Schema(table=table, axes=axes, n_records_max=1000)


def write(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    pq.write_table(pa.table({name: rng.integers(100, size=200) for name in ("a", "b")}), path)
    return path


@pytest.fixture
def view(tmp_path: Path) -> PrivateView:
    """Data whose identity depends on its rows."""
    files = SourceLocation(path=write(tmp_path / "people.parquet", 1))
    return PrivateView(sql="SELECT a, b FROM t", sources=(("t", files),))


def opened(ledger: Ledger, source: DuckDbSource, table: str = "people") -> None:
    open_table(ledger, schema_of(table), FUNDS, source, SystemNoise())


def test_a_ledger_of_the_earlier_way_opens_with_the_same_data_alone(
    tmp_path: Path, view: PrivateView
) -> None:
    with open_ledger(tmp_path / "a.ledger") as ledger:
        opened(ledger, Earlier(schema_of(), view))
        known = ledger.history("people")
        assert known.rows_fingerprint is not None
        assert DigestKind.of(known.rows_fingerprint) is DigestKind.CELLS
    with open_ledger(tmp_path / "a.ledger") as ledger:
        opened(ledger, DuckDbSource(schema_of(), view))
        assert ledger.history("people").rows_fingerprint == known.rows_fingerprint
        write(tmp_path / "people.parquet", 2)
        with pytest.raises(DataChanged):
            opened(ledger, DuckDbSource(schema_of(), view))


def test_no_generation_begins_with_the_same_data_and_the_next_has_a_new_digest(
    tmp_path: Path, view: PrivateView
) -> None:
    with open_ledger(tmp_path / "a.ledger") as ledger:
        opened(ledger, Earlier(schema_of(), view))
        same = DuckDbSource(schema_of(), view)
        assert not renew_table(ledger, schema_of(), FUNDS, same, by="owner")
        write(tmp_path / "people.parquet", 2)
        changed = DuckDbSource(schema_of(), view)
        assert renew_table(ledger, schema_of(), FUNDS, changed, by="owner")
        history = ledger.history("people")
        assert history.rows_fingerprint == changed.rows_fingerprint(ledger.key)
        assert not renew_table(ledger, schema_of(), FUNDS, changed, by="owner")
        opened(ledger, changed)


def test_data_of_a_ledger_of_the_earlier_way_has_no_second_budget(
    tmp_path: Path, view: PrivateView
) -> None:
    with open_ledger(tmp_path / "a.ledger") as ledger:
        opened(ledger, Earlier(schema_of(), view))
        with pytest.raises(LedgerMismatch, match="under the name people"):
            opened(ledger, DuckDbSource(schema_of("others"), view), "others")


def test_an_extract_has_the_digests_that_its_ledger_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract_file, "SETTLED_NS", -(10**18))
    people = SourceLocation(path=write(tmp_path / "people.parquet", 1))
    place, read = ExtractPlace(tmp_path / "extracts", KEY), RowsRead(KEY)
    in_memory = DuckDbSource(schema_of(), people)
    known = in_memory.rows_fingerprint(KEY, EARLIER)
    open_extract(place, schema_of(), people, read, known)
    again = open_extract(place, schema_of(), people, read, known)
    rows = [in_memory.rows_fingerprint(KEY, like) for like in (known, "")]
    monkeypatch.setattr(DuckDbSource, "_digest", lambda *_: pytest.fail("it was known"))
    assert [again.rows_fingerprint(KEY, like) for like in (known, "")] == rows
    assert again.fingerprint(KEY, known) == in_memory.fingerprint(KEY, known)


def test_an_extract_of_the_earlier_release_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract_file, "SETTLED_NS", -(10**18))
    people = SourceLocation(path=write(tmp_path / "people.parquet", 1))
    place, read = ExtractPlace(tmp_path / "extracts", KEY), RowsRead(KEY)
    in_memory = DuckDbSource(schema_of(), people)
    data, rows = (one(KEY, EARLIER) for one in (in_memory.fingerprint, in_memory.rows_fingerprint))
    written = Chunks.append_last

    def as_earlier(chunks: Chunks, content: bytes) -> None:
        header = json.loads(content)
        del header["digests"]
        written(chunks, json.dumps(header | {"data": data, "rows": rows}).encode())

    with monkeypatch.context() as patch:
        patch.setattr(Chunks, "append_last", as_earlier)
        open_extract(place, schema_of(), people, read)
    monkeypatch.setattr(extract_file, "_written", lambda *_: pytest.fail("it was made anew"))
    found = open_extract(place, schema_of(), people, read, rows)
    assert hmac.compare_digest(found.rows_fingerprint(KEY, rows), rows)
    assert found.rows_fingerprint(KEY) == in_memory.rows_fingerprint(KEY)
