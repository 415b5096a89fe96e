"""Counts of a result in whole numbers, as clients of other databases expect them.

Rounding is post-processing: it changes what is shown, and nothing that was computed, bought or
promised. The interval stays that of the count before it was rounded, and is wider only where it
would not contain the whole number (`AnsweredItem.intervals`).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

LARGEST: Final = float(2**62)  # beyond which a noisy count does not fit into 64 bits


def with_whole_counts(data: pa.Table, places: Sequence[int]) -> pa.Table:
    """A result with the columns at some places rounded; NULL stays NULL."""
    for place in places:
        field = data.schema.field(place)
        values = np.array(data.column(place).to_numpy(zero_copy_only=False), dtype=np.float64)
        is_null = np.isnan(values)
        whole = np.rint(np.clip(np.where(is_null, 0.0, values), -LARGEST, LARGEST))
        column = pa.array(whole.astype(np.int64), mask=is_null)
        data = data.set_column(place, field.with_type(pa.int64()), column)
    return data


def schema_with_whole_counts(schema: pa.Schema, places: Sequence[int]) -> pa.Schema:
    """The columns of such a result."""
    for place in places:
        schema = schema.set(place, schema.field(place).with_type(pa.int64()))
    return schema
