"""The server's description of itself for Flight SQL clients: SqlInfo and the SQL types.

The numbers are those that Flight SQL publishes for its `SqlInfo` and ODBC for its type codes. Only
known facts are listed; a request for another number gets no row.
"""

from importlib.metadata import version
from typing import Final, TypeAlias

import pyarrow as pa

from proxy.wire.flight.like_pattern import ESCAPE

InfoValue: TypeAlias = str | bool | int

_CASE_INSENSITIVE = 1
_NO_TRANSACTIONS = 0

SQL_INFO: Final[dict[int, InfoValue]] = {
    0: "Tacit",  # server name
    1: version("tacit-dp"),  # server version
    2: pa.__version__,  # Arrow version
    3: True,  # read-only
    4: True,  # supports SQL
    5: False,  # supports Substrait plans
    8: _NO_TRANSACTIONS,
    9: False,  # can cancel a query
    10: True,  # takes uploads: of a stream's users
    11: False,  # in transactions
    500: False,  # creates catalogs
    501: False,  # creates schemas
    502: False,  # creates tables
    503: _CASE_INSENSITIVE,  # identifiers
    504: '"',  # quotes an identifier
    506: True,  # every listed table can be queried
    513: ESCAPE,  # in search patterns
    529: "schema",
    531: "catalog",
}

_UNION_MEMBERS: Final = (
    pa.field("string_value", pa.string()),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(pa.string())),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)
_MEMBER_OF: Final[dict[type, int]] = {str: 0, bool: 1, int: 3}

SQL_INFO_SCHEMA: Final = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union(list(_UNION_MEMBERS)), nullable=False),
    ]
)


def sql_info_table(numbers: list[int]) -> pa.Table:
    """The facts with these numbers, or all of them if none is named."""
    chosen = [number for number in SQL_INFO if not numbers or number in numbers]
    held: list[list[InfoValue]] = [[] for _ in _UNION_MEMBERS]
    members, offsets = [], []
    for number in chosen:
        member = _MEMBER_OF[type(SQL_INFO[number])]
        members.append(member)
        offsets.append(len(held[member]))
        held[member].append(SQL_INFO[number])
    union = pa.UnionArray.from_dense(
        pa.array(members, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values, field.type) for values, field in zip(held, _UNION_MEMBERS, strict=True)],
        [field.name for field in _UNION_MEMBERS],
    )
    return pa.Table.from_arrays([pa.array(chosen, pa.uint32()), union], schema=SQL_INFO_SCHEMA)
