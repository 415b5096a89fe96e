"""Bytes of a table depend on its values alone: not on what lies behind NULL, or beside the rows.

Each array is made twice, of the same values and around different garbage; the bytes must be equal.
That needs no list of the places where garbage may lie.
"""

import datetime as dt
import io
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proxy.api.clean_arrow import clean_table
from proxy.wire.arrow_ipc import flight_messages, stream_bytes

SECRETS = ("Xq7#secret-of-another", "zW", "")
N_ROWS = 75


class Uuid(pa.ExtensionType):  # type: ignore[misc]
    """A type of this test: sixteen bytes."""

    def __init__(self) -> None:
        super().__init__(pa.binary(16), "tests.uuid")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "Uuid":
        return cls()


def hash_of(secret: str) -> int:
    return sum(map(ord, secret)) % 97 + 1


# What a value of each type is, of a text.
LEAVES: dict[pa.DataType, Callable[[str], Any]] = {
    pa.int8(): hash_of,
    pa.uint16(): hash_of,
    pa.int64(): lambda text: hash_of(text) * 0x0101010101,
    pa.float16(): lambda text: np.float16(hash_of(text)),
    pa.float64(): lambda text: float(hash_of(text)),
    pa.bool_(): lambda text: bool(hash_of(text) % 2),
    pa.decimal128(30, 2): lambda text: Decimal(hash_of(text)),
    pa.decimal256(60, 2): lambda text: Decimal(hash_of(text)),
    pa.date32(): lambda text: dt.date(2020, 1, 1) + dt.timedelta(days=hash_of(text)),
    pa.timestamp("us"): lambda text: dt.datetime(2020, 1, 1 + hash_of(text) % 28),  # noqa: DTZ001
    pa.time64("us"): lambda text: dt.time(hash_of(text) % 24),
    pa.month_day_nano_interval(): lambda text: (hash_of(text), 2, 3),
    pa.string(): str,
    pa.large_string(): str,
    pa.binary(): str.encode,
    pa.large_binary(): str.encode,
    pa.binary(16): lambda text: text.encode()[:16].ljust(16, b"#"),
    pa.string_view(): lambda text: text * 3,
    pa.binary_view(): lambda text: text.encode(),
    pa.dictionary(pa.int16(), pa.string()): str,
    pa.dictionary(pa.uint32(), pa.int64()): hash_of,
}


def leaf(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def hidden(array: pa.Array, is_null: list[bool]) -> pa.Array:
    """The same buffers, but some rows are NULL; what they were stays behind it."""
    bits = np.packbits([*(not one for one in is_null), *([True] * 37)], bitorder="little")
    buffer = pa.py_buffer(bits)
    kind = array.type
    if pa.types.is_dictionary(kind):
        indices = hidden(array.indices, is_null)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary)
    n_own = kind.num_buffers + 1 if "view" in str(kind) and not kind.num_fields else None
    own = array.buffers()[1 : n_own or kind.num_buffers]
    if "view" in str(kind) and not kind.num_fields:
        own = array.buffers()[1:]
    if pa.types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
    else:
        children = [array.values] if kind.num_fields else []
    return pa.Array.from_buffers(kind, len(array), [buffer, *own], children=children)


def dirty(kind: pa.DataType, secret: str) -> pa.Array:
    """Rows of the type among garbage: behind NULL, and before and behind a slice."""
    make = LEAVES[kind]
    is_null = [i % 3 == 1 for i in range(N_ROWS)]
    around = [make(secret + str(i)) for i in range(5)]
    values = [make(secret if null else f"value {i % 4}") for i, null in enumerate(is_null)]
    whole = leaf(kind, [*around, *values, *around])
    return hidden(whole, [False] * 5 + is_null + [False] * 5).slice(5, N_ROWS)


def nested(inner: pa.Array, shape: str) -> pa.Array:
    """Lists and others whose NULL rows have elements, and of which all lie inside of a slice."""
    n = len(inner)
    is_null = [i % 5 == 2 for i in range(n // 3)]
    offsets = np.arange(0, 3 * len(is_null) + 1, 3)
    match shape:
        case "list":
            held = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)
        case "large list":
            held = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), inner)
        case "fixed list":
            held = pa.FixedSizeListArray.from_arrays(inner.slice(0, 3 * len(is_null)), 3)
        case "list view":
            sizes = pa.array([3] * len(is_null), pa.int32())
            starts = pa.array(offsets[:-1], pa.int32())
            held = pa.ListViewArray.from_arrays(starts, sizes, inner)
        case _:
            rows = inner.slice(0, len(is_null))
            held = pa.StructArray.from_arrays([rows, pa.array(range(len(rows)))], ["a", "b"])
    return hidden(held, is_null).slice(1, len(is_null) - 3)


def nested_twice(kind: pa.DataType, first: str, second: str, secret: str) -> pa.Array:
    return nested(nested(dirty(kind, secret), first), second)


def the_bytes(array: pa.Array) -> bytes:
    return stream_bytes(pa.table({"a": array}))


def raw_bytes(array: pa.Array) -> bytes:
    """What Arrow's own writer makes of it."""
    sink = pa.BufferOutputStream()
    table = pa.table({"a": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def is_told_by_none(make: Callable[[str], pa.Array]) -> None:
    """The bytes are the same around any garbage, and say what the rows are."""
    arrays = [make(secret) for secret in SECRETS]
    rows = arrays[0].to_pylist()
    written = [the_bytes(array) for array in arrays]
    assert len(set(written)) == 1
    back = pa.ipc.open_stream(written[0]).read_all()
    back.validate(full=True)
    assert back.column("a").to_pylist() == rows
    assert back.column("a").type == arrays[0].type


@pytest.mark.parametrize("kind", LEAVES, ids=str)
def test_what_lies_behind_null_or_beside_the_rows_does_not_leave(kind: pa.DataType) -> None:
    is_told_by_none(lambda secret: dirty(kind, secret))


@pytest.mark.parametrize("shape", ["list", "large list", "fixed list", "list view", "struct"])
@pytest.mark.parametrize("kind", LEAVES, ids=str)
def test_nor_does_it_in_anything_nested(kind: pa.DataType, shape: str) -> None:
    is_told_by_none(lambda secret: nested(dirty(kind, secret), shape))


def test_nor_two_levels_down() -> None:
    for kind in (pa.string(), pa.bool_(), pa.dictionary(pa.int16(), pa.string())):
        for first in ("list", "struct", "fixed list"):
            for second in ("list", "struct", "list view"):
                is_told_by_none(partial(nested_twice, kind, first, second))


def test_nor_in_a_union() -> None:
    def sparse(secret: str) -> pa.Array:
        codes = pa.array([i % 2 for i in range(N_ROWS)], pa.int8())
        texts = pa.array([secret if i % 2 else "own" for i in range(N_ROWS)])
        numbers = pa.array([7 if i % 2 else hash_of(secret) for i in range(N_ROWS)])
        return pa.UnionArray.from_sparse(codes, [texts, numbers]).slice(2, 40)

    def dense(secret: str) -> pa.Array:
        codes = pa.array([0, 1, 0, 1], pa.int8())
        places = pa.array([1, 0, 2, 1], pa.int32())
        texts = pa.array([secret, "own", "other", secret])
        numbers = pa.array([5, 6, hash_of(secret)])
        return pa.UnionArray.from_dense(codes, places, [texts, numbers]).slice(1, 3)

    is_told_by_none(sparse)
    is_told_by_none(dense)


def test_nor_in_runs_a_map_or_an_extension_type() -> None:
    def runs(secret: str) -> pa.Array:
        values = hidden(
            pa.array([secret, "a", secret, "b", secret]), [False, False, True, False, False]
        )
        return pa.RunEndEncodedArray.from_arrays([3, 5, 8, 11, 20], values).slice(4, 6)

    def mapped(secret: str) -> pa.Array:
        keys = pa.array([secret, "a", "b", secret])
        items = pa.array([1, 2, 3, hash_of(secret)])
        return pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4]), keys, items).slice(1, 2)

    is_told_by_none(runs)
    is_told_by_none(mapped)
    pa.register_extension_type(Uuid())
    try:
        is_told_by_none(
            lambda secret: pa.ExtensionArray.from_storage(Uuid(), dirty(pa.binary(16), secret))
        )
    finally:
        pa.unregister_extension_type("tests.uuid")


def test_the_writer_of_arrow_alone_would_tell() -> None:
    """What the tests above would find if nothing were cleaned."""
    told = [kind for kind in LEAVES if len({raw_bytes(dirty(kind, one)) for one in SECRETS}) > 1]
    assert len(told) == len(LEAVES)


def test_rows_of_several_batches_and_chunks_are_clean_too() -> None:
    def table(secret: str) -> pa.Table:
        parts = [dirty(kind, secret) for kind in (pa.string(),) for _ in range(3)]
        marked = pa.chunked_array([dirty(pa.dictionary(pa.int16(), pa.string()), secret)] * 3)
        wide = pa.chunked_array([pa.array(["x" * 20_000] * N_ROWS)] * 3)
        bits = pa.chunked_array([dirty(pa.bool_(), secret)] * 3)
        return pa.table({"a": pa.chunked_array(parts), "b": marked, "c": wide, "d": bits})

    first, second = (stream_bytes(table(secret)) for secret in SECRETS[:2])
    assert first == second
    assert flight_messages(table(SECRETS[0])) == flight_messages(table(SECRETS[1]))
    back = pa.ipc.open_stream(first).read_all()
    assert back.to_pylist() == table(SECRETS[0]).to_pylist()


def test_a_file_is_clean_as_well() -> None:
    def written(secret: str) -> bytes:
        kinds = [kind for kind in LEAVES if kind != pa.month_day_nano_interval()]
        table = pa.table({str(kind): dirty(kind, secret) for kind in kinds})
        sink = io.BytesIO()
        pq.write_table(clean_table(table), sink)
        return sink.getvalue()

    assert len({written(secret) for secret in SECRETS}) == 1


def test_a_table_without_nulls_is_not_copied() -> None:
    numbers = np.arange(10_000.0)
    column = clean_table(pa.table({"a": numbers})).column("a").chunk(0)
    assert column.buffers()[1].address == numbers.ctypes.data


def test_bits_beyond_the_last_row_are_zeros() -> None:
    values = pa.py_buffer(b"\xff\xff")
    array = pa.Array.from_buffers(pa.bool_(), 3, [pa.py_buffer(b"\xfb\xff"), values])
    clean = clean_table(pa.table({"a": array})).column("a").chunk(0)
    assert [bytes(one) for one in clean.buffers()] == [b"\x03", b"\x03"]
    assert clean.to_pylist() == [True, True, None]
