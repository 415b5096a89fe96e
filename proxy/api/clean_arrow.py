"""Arrow data whose bytes are those of its values: what every table passes before it leaves.

A kernel of Arrow writes the values that a result has, and leaves the rest of a buffer as the
allocator gave it: the slots behind NULL, the bits beyond the last row, the padding, and of a slice
all that lies around it. These bytes were something else before: a pointer, or a piece of another
caller's statement. Here every buffer is cut to its rows, and holds zeros where there is no value;
an entry of a dictionary or of a list that no row refers to is left out. Buffers without NULLs are
cut, not copied. `tests/test_architecture.py` lists what makes bytes of Arrow tables.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]  # true where there is no value

_BITS: Final = 8
_VIEW_BYTES: Final = 16
_INLINE_BYTES: Final = 12  # the longest text that a view holds itself
_BLOCK_BYTES: Final = 2**30  # of the texts that views point at


def clean_table(table: pa.Table) -> pa.Table:
    """The same rows; every buffer holds their values, and zeros.

    Returns
    -------
    pyarrow.Table
        Of the same schema. Chunks whose offset is not 0 are copied or cut.

    Raises
    ------
    TypeError
        If a column has a type whose buffers are not known here.
    """
    columns = [_clean_column(column) for column in table.columns]
    if not columns:
        return table
    return pa.Table.from_arrays(columns, schema=table.schema)


def clean_batches(table: pa.Table, n_rows_max: int) -> Iterator[pa.RecordBatch]:
    """The same in batches, whose dictionaries are those of the whole table.

    Parameters
    ----------
    n_rows_max : int
        The most rows of one batch.
    """
    for i, field in enumerate(table.schema):
        if _has_dictionary(field.type):
            table = table.set_column(i, field, _clean_column(table.column(i)))
    for batch in table.to_batches(max_chunksize=n_rows_max):
        columns = [_clean(column, None, keeps_dictionary=True) for column in batch.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch


def _clean_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if _has_dictionary(column.type):  # one for all chunks, so that batches do not replace it
        whole = column.combine_chunks()
        chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    else:
        chunks = column.chunks
    return pa.chunked_array([_clean(chunk, None) for chunk in chunks], column.type)


def _has_dictionary(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return pa.types.is_dictionary(kind) or any(
        _has_dictionary(kind.field(i).type) for i in range(kind.num_fields)
    )


def _clean(array: pa.Array, hidden: Mask | None, *, keeps_dictionary: bool = False) -> pa.Array:
    """One array; `hidden` are the rows that a parent array marks as NULL."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        stored = _clean(array.storage, hidden, keeps_dictionary=keeps_dictionary)
        return pa.ExtensionArray.from_storage(kind, stored)
    if isinstance(array, pa.NullArray):
        return pa.nulls(len(array))
    if pa.types.is_run_end_encoded(kind):
        return _clean_runs(array, hidden, keeps_dictionary)
    if pa.types.is_union(kind):
        return _clean_union(array, hidden, keeps_dictionary)
    nothing = _nothing(array, hidden)
    validity = None if nothing is None or array.null_count == 0 else _packed(~nothing)
    clean = next((clean for is_kind, clean in _BY_KIND if is_kind(kind)), _clean_fixed)
    return clean(array, nothing, validity, keeps_dictionary)


def _nothing(array: pa.Array, hidden: Mask | None) -> Mask | None:
    """Which rows have no value: they are NULL, or a parent says so; None if all have one."""
    if array.null_count == 0:
        return hidden
    nulls = ~_unpacked(array.buffers()[0], array.offset, len(array))
    return nulls if hidden is None else nulls | hidden


def _unpacked(buffer: pa.Buffer | None, start: int, n: int) -> Mask:
    """Bits as booleans, the lowest bit of a byte first."""
    if buffer is None or n == 0:
        return np.zeros(n, np.bool_)
    first, last = start // _BITS, -(-(start + n) // _BITS)
    held = np.frombuffer(buffer, np.uint8)[first:last]
    bits = np.unpackbits(held, bitorder="little")[start % _BITS :][:n]
    return bits.view(np.bool_)


def _packed(bits: Mask) -> pa.Buffer:
    """Booleans as bits, and zeros up to the end of the last byte."""
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _taken(array: pa.Array, places: pa.Array) -> pa.Array:
    """The elements at some places; NULL for a place that is NULL."""
    try:
        return array.take(places)
    except pa.ArrowNotImplementedError:  # Arrow takes no elements of views
        one = [
            pa.nulls(1, array.type) if place is None else array.slice(place, 1)
            for place in places.to_pylist()
        ]
        return pa.concat_arrays(one) if one else array.slice(0, 0)


def _numbers(buffer: pa.Buffer | None, width: Any, start: int, n: int) -> NDArray[Any]:
    """Some numbers of a buffer; an array without rows may have none."""
    if buffer is None or n == 0:
        return np.zeros(n, width)
    return np.frombuffer(buffer, width)[start : start + n]


def _clean_fixed(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, _: bool
) -> pa.Array:
    kind, n = array.type, len(array)
    if kind.bit_width % _BITS:
        raise TypeError(f"columns of the type {kind} cannot be sent")
    width = kind.bit_width // _BITS
    values = array.buffers()[1]
    cut = pa.py_buffer(b"") if values is None else values.slice(array.offset * width, n * width)
    if nothing is not None and width:
        held = np.frombuffer(cut, np.uint8).reshape(n, width).copy()
        held[nothing] = 0
        cut = pa.py_buffer(held)
    return pa.Array.from_buffers(kind, n, [validity, cut])


def _clean_bits(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, _: bool
) -> pa.Array:
    bits = _unpacked(array.buffers()[1], array.offset, len(array))
    if nothing is not None:
        bits &= ~nothing
    return pa.Array.from_buffers(array.type, len(array), [validity, _packed(bits)])


def _clean_struct(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, keeps: bool
) -> pa.Array:
    fields = [
        _clean(array.field(i), nothing, keeps_dictionary=keeps)
        for i in range(array.type.num_fields)
    ]
    return pa.Array.from_buffers(array.type, len(array), [validity], children=fields)


def _clean_fixed_list(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, keeps: bool
) -> pa.Array:
    size = array.type.list_size
    values = array.values.slice(array.offset * size, len(array) * size)
    inner = None if nothing is None else np.repeat(nothing, size)
    inside = _clean(values, inner, keeps_dictionary=keeps)
    return pa.Array.from_buffers(array.type, len(array), [validity], children=[inside])


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _offsets(array: pa.Array, width: type[np.int32 | np.int64]) -> NDArray[Any]:
    """Where each row begins, and the last one ends."""
    buffer, n = array.buffers()[1], len(array)
    if buffer is None or n == 0:
        return np.zeros(1, width)
    return np.frombuffer(buffer, width)[array.offset : array.offset + n + 1]


def _from_zero(
    offsets: NDArray[Any], nothing: Mask | None
) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """The offsets of rows that lie one behind the other; and which elements these are.

    The second is None if they are all those from the first offset to the last.
    """
    lengths = np.diff(offsets)
    if nothing is not None and lengths[nothing].any():
        kept = np.flatnonzero(np.repeat(~nothing, lengths)) + int(offsets[0])
        lengths = np.where(nothing, 0, lengths)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(offsets.dtype), kept
    return (offsets - offsets[0] if offsets[0] else offsets), None


def _clean_texts(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, _: bool
) -> pa.Array:
    kind = array.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets = _offsets(array, np.int64 if is_large else np.int32)
    moved, kept = _from_zero(offsets, nothing)
    values = array.buffers()[2]
    if values is None:
        values = pa.py_buffer(b"")
    if kept is not None:
        values = pa.py_buffer(np.frombuffer(values, np.uint8)[kept])
    else:
        values = values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return pa.Array.from_buffers(kind, len(array), [validity, pa.py_buffer(moved), values])


def _clean_list(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, keeps: bool
) -> pa.Array:
    """A list or a map."""
    kind = array.type
    offsets = _offsets(array, np.int64 if pa.types.is_large_list(kind) else np.int32)
    moved, kept = _from_zero(offsets, nothing)
    if kept is not None:
        values = _taken(array.values, pa.array(kept))
    else:
        values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    inside = _clean(values, None, keeps_dictionary=keeps)
    return pa.Array.from_buffers(
        kind, len(array), [validity, pa.py_buffer(moved)], children=[inside]
    )


def _clean_list_view(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, keeps: bool
) -> pa.Array:
    """Lists whose elements lie anywhere; afterwards, one behind the other."""
    kind, n = array.type, len(array)
    width: Any = np.int64 if pa.types.is_large_list_view(kind) else np.int32
    offsets, sizes = (
        _numbers(buffer, width, array.offset, n).astype(np.int64) for buffer in array.buffers()[1:3]
    )
    if nothing is not None:
        sizes = np.where(nothing, 0, sizes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])[:n]
    elements = np.repeat(offsets - starts, sizes) + np.arange(int(sizes.sum()))
    inside = _clean(_taken(array.values, pa.array(elements)), None, keeps_dictionary=keeps)
    buffers = [validity, *(pa.py_buffer(one.astype(width)) for one in (starts, sizes))]
    return pa.Array.from_buffers(kind, n, buffers, children=[inside])


def _clean_views(
    array: pa.Array, nothing: Mask | None, validity: pa.Buffer | None, _: bool
) -> pa.Array:
    """Texts that are views of blocks: written again, each block holds what is viewed."""
    kind = array.type
    held = array.cast(pa.binary_view()).to_pylist()
    views = bytearray(_VIEW_BYTES * len(array))
    blocks = [bytearray()]
    for i, text in enumerate(held):
        if text is None or (nothing is not None and nothing[i]):
            continue
        at = i * _VIEW_BYTES
        views[at : at + 4] = len(text).to_bytes(4, "little")
        if len(text) <= _INLINE_BYTES:
            views[at + 4 : at + 4 + len(text)] = text
            continue
        if len(blocks[-1]) + len(text) > _BLOCK_BYTES:
            blocks.append(bytearray())
        place = (len(blocks) - 1).to_bytes(4, "little") + len(blocks[-1]).to_bytes(4, "little")
        views[at + 4 : at + _VIEW_BYTES] = text[:4] + place
        blocks[-1] += text
    buffers = [validity, pa.py_buffer(bytes(views)), *(pa.py_buffer(bytes(one)) for one in blocks)]
    return pa.Array.from_buffers(kind, len(array), buffers)


def _clean_dictionary(
    array: pa.Array, nothing: Mask | None, _: pa.Buffer | None, keeps: bool
) -> pa.Array:
    """Indices, and the entries that they refer to."""
    kind, n = array.type, len(array)
    width = kind.index_type.to_pandas_dtype()
    indices = _numbers(array.buffers()[1], width, array.offset, n)
    entries = array.dictionary
    if nothing is not None:
        indices = np.where(nothing, 0, indices).astype(width)
    if not keeps:
        used = np.unique(indices if nothing is None else indices[~nothing])
        if used.size < len(entries):
            entries = _taken(entries, pa.array(used))
            indices = np.searchsorted(used, indices).astype(width)
            if nothing is not None:
                indices[nothing] = 0
    validity = None if nothing is None else _packed(~nothing)
    held = pa.Array.from_buffers(
        kind.index_type, n, [validity, pa.py_buffer(np.ascontiguousarray(indices))]
    )
    entries = _clean(entries, None, keeps_dictionary=keeps)
    return pa.DictionaryArray.from_arrays(held, entries, ordered=kind.ordered, safe=False)


def _clean_runs(array: pa.Array, hidden: Mask | None, keeps: bool) -> pa.Array:
    """Runs of equal values."""
    kind = array.type
    values = pc.run_end_decode(array)
    if hidden is not None:
        values = pc.if_else(pa.array(hidden), pa.scalar(None, values.type), values)
    encoded = pc.run_end_encode(_clean(values, None), run_end_type=kind.run_end_type)
    return pa.RunEndEncodedArray.from_arrays(
        _clean(encoded.run_ends, None),
        _clean(encoded.values, None, keeps_dictionary=keeps),
        type=kind,
    )


def _clean_union(array: pa.Array, hidden: Mask | None, keeps: bool) -> pa.Array:
    """One of several types in each row; a member holds the values of its own rows alone."""
    kind, n = array.type, len(array)
    buffers = array.buffers()
    codes = _numbers(buffers[1], np.int8, array.offset, n).copy()
    members = kind.type_codes
    if hidden is not None:
        codes[hidden] = members[0]
    written = pa.Array.from_buffers(pa.int8(), n, [None, pa.py_buffer(codes)])
    names = [kind.field(i).name for i in range(kind.num_fields)]
    if kind.mode == "sparse":
        fields = []
        for i, code in enumerate(members):
            others = codes != code
            absent = others if hidden is None else others | hidden
            fields.append(_clean(array.field(i), absent, keeps_dictionary=keeps))
        return pa.UnionArray.from_sparse(written, fields, names, members)
    places = _numbers(buffers[2], np.int32, array.offset, n)
    moved = np.zeros(n, np.int32)
    fields = []
    for i, code in enumerate(members):
        rows = np.flatnonzero(codes == code)
        absent = None if hidden is None else hidden[rows]
        taken = _taken(array.field(i), pa.array(places[rows].astype(np.int64), mask=absent))
        fields.append(_clean(taken, None, keeps_dictionary=keeps))
        moved[rows] = np.arange(rows.size)
    offsets = pa.Array.from_buffers(pa.int32(), n, [None, pa.py_buffer(moved)])
    return pa.UnionArray.from_dense(written, offsets, fields, names, members)


# How each kind of type is cleaned, the first that it is; all others are of a fixed width.
_BY_KIND: Final[Sequence[tuple[Callable[[pa.DataType], bool], Callable[..., pa.Array]]]] = (
    (pa.types.is_dictionary, _clean_dictionary),
    (pa.types.is_struct, _clean_struct),
    (pa.types.is_fixed_size_list, _clean_fixed_list),
    (_is_list_view, _clean_list_view),
    (pa.types.is_nested, _clean_list),
    (_is_view, _clean_views),
    (_has_offsets, _clean_texts),
    (pa.types.is_boolean, _clean_bits),
)
