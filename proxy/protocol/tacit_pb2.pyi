from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Target(_message.Message):
    __slots__ = ("half_width", "confidence", "epsilon")
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    half_width: float
    confidence: float
    epsilon: str
    def __init__(self, half_width: _Optional[float] = ..., confidence: _Optional[float] = ..., epsilon: _Optional[str] = ...) -> None: ...

class QueryRequest(_message.Message):
    __slots__ = ("sql", "target")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ...) -> None: ...

class QueryReply(_message.Message):
    __slots__ = ("ipc", "receipt")
    IPC_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    receipt: Receipt
    def __init__(self, ipc: _Optional[bytes] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("table", "epsilon_spent", "columns", "budget")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    table: str
    epsilon_spent: float
    columns: _containers.RepeatedCompositeFieldContainer[ColumnReceipt]
    budget: Budget
    def __init__(self, table: _Optional[str] = ..., epsilon_spent: _Optional[float] = ..., columns: _Optional[_Iterable[_Union[ColumnReceipt, _Mapping]]] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class ColumnReceipt(_message.Message):
    __slots__ = ("name", "confidence", "epsilon_spent", "source", "low", "high")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    name: str
    confidence: float
    epsilon_spent: float
    source: str
    low: _containers.RepeatedScalarFieldContainer[float]
    high: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., confidence: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., source: _Optional[str] = ..., low: _Optional[_Iterable[float]] = ..., high: _Optional[_Iterable[float]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("sql", "target")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("ipc", "epsilon", "budget")
    IPC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    epsilon: float
    budget: Budget
    def __init__(self, ipc: _Optional[bytes] = ..., epsilon: _Optional[float] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("sql", "target", "buy")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BUY_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    buy: bool
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., buy: bool = ...) -> None: ...

class PlanReply(_message.Message):
    __slots__ = ("ipc", "epsilon", "n_measurements", "bought", "budget")
    IPC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    N_MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    BOUGHT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    epsilon: float
    n_measurements: int
    bought: bool
    budget: Budget
    def __init__(self, ipc: _Optional[bytes] = ..., epsilon: _Optional[float] = ..., n_measurements: _Optional[int] = ..., bought: bool = ..., budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class ListTablesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTablesReply(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    def __init__(self, tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("name", "columns", "default_half_width", "default_confidence")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    default_half_width: float
    default_confidence: float
    def __init__(self, name: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., default_half_width: _Optional[float] = ..., default_confidence: _Optional[float] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "sql_type", "kind", "nullable", "n_levels", "levels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SQL_TYPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    N_LEVELS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    sql_type: str
    kind: str
    nullable: bool
    n_levels: int
    levels: str
    def __init__(self, name: _Optional[str] = ..., sql_type: _Optional[str] = ..., kind: _Optional[str] = ..., nullable: bool = ..., n_levels: _Optional[int] = ..., levels: _Optional[str] = ...) -> None: ...

class GetBudgetRequest(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: str
    def __init__(self, table: _Optional[str] = ...) -> None: ...

class GetBudgetReply(_message.Message):
    __slots__ = ("budgets",)
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    budgets: _containers.RepeatedCompositeFieldContainer[Budget]
    def __init__(self, budgets: _Optional[_Iterable[_Union[Budget, _Mapping]]] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("table", "epsilon_limit", "epsilon_spent", "epsilon_left", "n_measurements", "limits")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LEFT_FIELD_NUMBER: _ClassVar[int]
    N_MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    table: str
    epsilon_limit: float
    epsilon_spent: float
    epsilon_left: float
    n_measurements: int
    limits: _containers.RepeatedCompositeFieldContainer[LimitStatus]
    def __init__(self, table: _Optional[str] = ..., epsilon_limit: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., epsilon_left: _Optional[float] = ..., n_measurements: _Optional[int] = ..., limits: _Optional[_Iterable[_Union[LimitStatus, _Mapping]]] = ...) -> None: ...

class LimitStatus(_message.Message):
    __slots__ = ("subject", "window", "epsilon_limit", "epsilon_spent", "epsilon_left", "per_query", "note")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LEFT_FIELD_NUMBER: _ClassVar[int]
    PER_QUERY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    subject: str
    window: str
    epsilon_limit: float
    epsilon_spent: float
    epsilon_left: float
    per_query: float
    note: str
    def __init__(self, subject: _Optional[str] = ..., window: _Optional[str] = ..., epsilon_limit: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., epsilon_left: _Optional[float] = ..., per_query: _Optional[float] = ..., note: _Optional[str] = ...) -> None: ...

class SetLimitRequest(_message.Message):
    __slots__ = ("table", "subject", "epsilon", "window", "per_query", "clear")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PER_QUERY_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    table: str
    subject: str
    epsilon: str
    window: str
    per_query: str
    clear: bool
    def __init__(self, table: _Optional[str] = ..., subject: _Optional[str] = ..., epsilon: _Optional[str] = ..., window: _Optional[str] = ..., per_query: _Optional[str] = ..., clear: bool = ...) -> None: ...

class SetLimitReply(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: LimitStatus
    def __init__(self, limit: _Optional[_Union[LimitStatus, _Mapping]] = ...) -> None: ...

class ListLimitsRequest(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: str
    def __init__(self, table: _Optional[str] = ...) -> None: ...

class ListLimitsReply(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[TableLimits]
    def __init__(self, tables: _Optional[_Iterable[_Union[TableLimits, _Mapping]]] = ...) -> None: ...

class TableLimits(_message.Message):
    __slots__ = ("table", "limits")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    table: str
    limits: _containers.RepeatedCompositeFieldContainer[LimitStatus]
    def __init__(self, table: _Optional[str] = ..., limits: _Optional[_Iterable[_Union[LimitStatus, _Mapping]]] = ...) -> None: ...

class AuditReportRequest(_message.Message):
    __slots__ = ("format",)
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    format: str
    def __init__(self, format: _Optional[str] = ...) -> None: ...

class AuditReportReply(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    def __init__(self, chunk: _Optional[bytes] = ...) -> None: ...
