"""From posteriors to Arrow: the only module that knows both vocabularies.

What an answer rests on and what it cost travels with it, as JSON in the schema's metadata under
``tacit.receipt``, whether or not the SELECT asked for it in columns of its own.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from inference.posterior import Posterior
from planner.workload import ColumnKind, OutputColumn, Workload
from proxy.answers import BudgetStatus, ColumnReceipt, Receipt, Release

RECEIPT_KEY = b"tacit.receipt"

_ARROW_TYPES: dict[str, pa.DataType] = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_KIND_TYPES = {
    ColumnKind.ANSWER: pa.float64(),
    ColumnKind.LOW: pa.float64(),
    ColumnKind.HIGH: pa.float64(),
    ColumnKind.COST: pa.float64(),
    ColumnKind.SOURCE: pa.string(),
}


@dataclass(frozen=True, slots=True)
class AnsweredAggregate:
    """One aggregate, answered: its posteriors (one a row), where they came from, their price."""

    name: str
    posteriors: tuple[Posterior, ...]
    source: str
    epsilon_spent: Fraction


def result_schema(workload: Workload) -> pa.Schema:
    """The Arrow schema of a workload's result; known before anything is asked."""
    return pa.schema(
        [
            pa.field(column.name, _type_of(workload, column), nullable=_is_key(column))
            for column in workload.columns
        ]
    )


def build_release(
    workload: Workload, answered: Sequence[AnsweredAggregate], budget: BudgetStatus
) -> Release:
    """The table a client receives, with its receipt."""
    confidence = workload.target.confidence
    columns = tuple(_column_receipt(aggregate, confidence) for aggregate in answered)
    receipt = Receipt(
        table=workload.table,
        epsilon_spent=sum((column.epsilon_spent for column in columns), Fraction(0)),
        columns=columns,
        budget=budget,
    )
    schema = result_schema(workload)
    arrays = [
        pa.array(_values(workload, column, answered, columns), type=field.type)
        for column, field in zip(workload.columns, schema, strict=True)
    ]
    described = schema.with_metadata({RECEIPT_KEY: _receipt_json(receipt)})
    return Release(pa.Table.from_arrays(arrays, schema=described), receipt)


def arrow_type(sql_type: str) -> pa.DataType:
    """The Arrow type of a DuckDB type name."""
    if sql_type in _ARROW_TYPES:
        return _ARROW_TYPES[sql_type]
    decimal = _DECIMAL.fullmatch(sql_type)
    if decimal is None:
        raise ValueError(f"no Arrow type for {sql_type}")
    return pa.decimal128(int(decimal[1]), int(decimal[2]))


def _is_key(column: OutputColumn) -> bool:
    return column.kind is ColumnKind.KEY


def _type_of(workload: Workload, column: OutputColumn) -> pa.DataType:
    if _is_key(column):
        return arrow_type(workload.keys[column.index].sql_type)
    return _KIND_TYPES[column.kind]


def _values(
    workload: Workload,
    column: OutputColumn,
    answered: Sequence[AnsweredAggregate],
    receipts: Sequence[ColumnReceipt],
) -> list[object]:
    if _is_key(column):
        return list(workload.keys[column.index].values)
    receipt = receipts[column.index]
    match column.kind:
        case ColumnKind.ANSWER:
            return [posterior.value for posterior in answered[column.index].posteriors]
        case ColumnKind.LOW:
            return list(receipt.low)
        case ColumnKind.HIGH:
            return list(receipt.high)
        case ColumnKind.COST:
            return [float(receipt.epsilon_spent)] * workload.n_rows
        case _:
            return [receipt.source] * workload.n_rows


def _column_receipt(aggregate: AnsweredAggregate, confidence: float) -> ColumnReceipt:
    intervals = [posterior.interval(confidence) for posterior in aggregate.posteriors]
    return ColumnReceipt(
        name=aggregate.name,
        confidence=confidence,
        epsilon_spent=aggregate.epsilon_spent,
        source=aggregate.source,
        low=tuple(low for low, _ in intervals),
        high=tuple(high for _, high in intervals),
    )


def _receipt_json(receipt: Receipt) -> bytes:
    return json.dumps(
        {
            "table": receipt.table,
            "epsilon_spent": float(receipt.epsilon_spent),
            "epsilon_left": float(receipt.budget.left),
            "columns": [
                {
                    "name": column.name,
                    "confidence": column.confidence,
                    "epsilon_spent": float(column.epsilon_spent),
                    "source": column.source,
                    "low": [_finite(value) for value in column.low],
                    "high": [_finite(value) for value in column.high],
                }
                for column in receipt.columns
            ],
        }
    ).encode()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
