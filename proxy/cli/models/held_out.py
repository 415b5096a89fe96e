"""Rows that were kept out of a private table, beside synthetic ones. Nothing is sent anywhere."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from cube.refusals import InvalidRequest, TooLarge
from synthesis.networks.comparison import cross_entropy, total_variation

N_EVALUATED_BYTES_MAX: Final = 2**28
N_EVALUATED_COLUMNS_MAX: Final = 64
N_GROUPS: Final = 32  # of a column's values


def held_out_scores(kept_out: pa.Table, made: pa.Table) -> list[dict[str, Any]]:
    """The scores of every column and pair of columns, as JSON values.

    Parameters
    ----------
    kept_out, made : pyarrow.Table
        With the same columns; neither is empty.
    """
    codes, sizes = {}, {}
    for name in made.column_names:
        codes[name], sizes[name] = _groups(kept_out.column(name), made.column(name))
    n = kept_out.num_rows
    scores = []
    for names in (*combinations(made.column_names, 1), *combinations(made.column_names, 2)):
        shape = tuple(sizes[name] for name in names)
        cells = np.ravel_multi_index(tuple(codes[name] for name in names), shape)
        own, model = (
            np.bincount(part, minlength=math.prod(shape)).astype(np.float64)
            for part in (cells[:n], cells[n:])
        )
        bits, divergence = cross_entropy(own, model)
        scores.append(
            {
                "columns": list(names),
                "cross_entropy": bits,
                "divergence": divergence,
                "distance": total_variation(own, model),
            }
        )
    return scores


def _groups(kept_out: pa.ChunkedArray, made: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """The group of every value, the kept-out ones first, and how many groups there are.

    Numbers and dates are cut where the synthetic rows are; of other values, the most frequent
    ones are apart, and the rest together. NULL is always a group of its own.
    """
    both = pa.chunked_array([*kept_out.chunks, *made.chunks], type=made.type)
    encoded = both.combine_chunks().dictionary_encode("encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    values = encoded.dictionary
    if len(values) <= N_GROUPS:
        return codes, len(values)
    of_made = np.bincount(codes[len(kept_out) :], minlength=len(values))
    groups = np.empty(len(values), dtype=np.int64)
    if pa.types.is_string(values.type):
        order = np.argsort(-of_made, kind="stable")
        groups[order] = np.minimum(np.arange(len(values)), N_GROUPS - 2)
    else:
        order = pc.sort_indices(values).to_numpy()
        before = np.cumsum(of_made[order]) - of_made[order]
        groups[order] = np.minimum(before * (N_GROUPS - 1) // max(1, len(made)), N_GROUPS - 2)
    groups[values.is_null().to_numpy(zero_copy_only=False)] = N_GROUPS - 1
    return groups[codes], N_GROUPS


def kept_out_rows(path: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a file, in the types of the synthetic table.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    if len(schema) > N_EVALUATED_COLUMNS_MAX:
        raise TooLarge(f"Tables of at most {N_EVALUATED_COLUMNS_MAX} columns are evaluated.")
    try:
        if path.stat().st_size > N_EVALUATED_BYTES_MAX:
            raise TooLarge(
                f"{path} has more than {N_EVALUATED_BYTES_MAX} bytes.", hint="Keep fewer rows."
            )
        if path.suffix.lower() == ".parquet":
            found = pq.read_table(path, columns=schema.names).cast(schema)
        else:
            options = csv.ConvertOptions(
                column_types=schema, include_columns=schema.names, strings_can_be_null=True
            )
            found = csv.read_csv(path, convert_options=options)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else None
        # The library's own text may quote a row.
        raise InvalidRequest(
            f"{path} {'cannot be read: ' + reason if reason else 'does not have these columns'}.",
            hint=f"The columns are {', '.join(schema.names)}, with values as SQL shows them.",
        ) from None
    if not found.num_rows:
        raise InvalidRequest(f"{path} has no rows.")
    return found
