from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Target(_message.Message):
    __slots__ = ("half_width", "confidence", "epsilon", "relative", "at_least", "fallback")
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    half_width: float
    confidence: float
    epsilon: str
    relative: float
    at_least: float
    fallback: str
    def __init__(self, half_width: _Optional[float] = ..., confidence: _Optional[float] = ..., epsilon: _Optional[str] = ..., relative: _Optional[float] = ..., at_least: _Optional[float] = ..., fallback: _Optional[str] = ...) -> None: ...

class Parameter(_message.Message):
    __slots__ = ("boolean", "integer", "number", "decimal", "text", "date", "timestamp", "name")
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    DECIMAL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    integer: int
    number: float
    decimal: str
    text: str
    date: str
    timestamp: str
    name: str
    def __init__(self, boolean: bool = ..., integer: _Optional[int] = ..., number: _Optional[float] = ..., decimal: _Optional[str] = ..., text: _Optional[str] = ..., date: _Optional[str] = ..., timestamp: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class QueryRequest(_message.Message):
    __slots__ = ("sql", "target", "parameters")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    parameters: _containers.RepeatedCompositeFieldContainer[Parameter]
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., parameters: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ...) -> None: ...

class QueryReply(_message.Message):
    __slots__ = ("ipc", "receipt")
    IPC_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    receipt: Receipt
    def __init__(self, ipc: _Optional[bytes] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("table", "epsilon_spent", "columns", "budget", "notes")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    table: str
    epsilon_spent: float
    columns: _containers.RepeatedCompositeFieldContainer[ColumnReceipt]
    budget: Budget
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, table: _Optional[str] = ..., epsilon_spent: _Optional[float] = ..., columns: _Optional[_Iterable[_Union[ColumnReceipt, _Mapping]]] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

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
    __slots__ = ("sql", "target", "parameters")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    parameters: _containers.RepeatedCompositeFieldContainer[Parameter]
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., parameters: _Optional[_Iterable[_Union[Parameter, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("ipc", "epsilon", "n_measurements", "bought", "budget", "notes")
    IPC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    N_MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    BOUGHT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    epsilon: float
    n_measurements: int
    bought: bool
    budget: Budget
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ipc: _Optional[bytes] = ..., epsilon: _Optional[float] = ..., n_measurements: _Optional[int] = ..., bought: bool = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class ListTablesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTablesReply(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    def __init__(self, tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("name", "columns", "default_half_width", "default_confidence", "synthetic_of", "kind", "comment", "default_cost")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SYNTHETIC_OF_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_COST_FIELD_NUMBER: _ClassVar[int]
    name: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    default_half_width: float
    default_confidence: float
    synthetic_of: str
    kind: str
    comment: str
    default_cost: str
    def __init__(self, name: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., default_half_width: _Optional[float] = ..., default_confidence: _Optional[float] = ..., synthetic_of: _Optional[str] = ..., kind: _Optional[str] = ..., comment: _Optional[str] = ..., default_cost: _Optional[str] = ...) -> None: ...

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
    __slots__ = ("table", "epsilon_limit", "epsilon_spent", "epsilon_left", "n_measurements", "limits", "renewal")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LIMIT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LEFT_FIELD_NUMBER: _ClassVar[int]
    N_MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    table: str
    epsilon_limit: float
    epsilon_spent: float
    epsilon_left: float
    n_measurements: int
    limits: _containers.RepeatedCompositeFieldContainer[LimitStatus]
    renewal: Renewal
    def __init__(self, table: _Optional[str] = ..., epsilon_limit: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., epsilon_left: _Optional[float] = ..., n_measurements: _Optional[int] = ..., limits: _Optional[_Iterable[_Union[LimitStatus, _Mapping]]] = ..., renewal: _Optional[_Union[Renewal, _Mapping]] = ...) -> None: ...

class Renewal(_message.Message):
    __slots__ = ("window", "renews_on", "epsilon_spent_in_year", "epsilon_spent_in_all")
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    RENEWS_ON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_IN_YEAR_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_IN_ALL_FIELD_NUMBER: _ClassVar[int]
    window: str
    renews_on: str
    epsilon_spent_in_year: float
    epsilon_spent_in_all: float
    def __init__(self, window: _Optional[str] = ..., renews_on: _Optional[str] = ..., epsilon_spent_in_year: _Optional[float] = ..., epsilon_spent_in_all: _Optional[float] = ...) -> None: ...

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

class TestIndependenceRequest(_message.Message):
    __slots__ = ("table", "x", "y", "given", "where", "target", "level", "replicates", "others", "statistic")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REPLICATES_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    table: str
    x: str
    y: str
    given: _containers.RepeatedScalarFieldContainer[str]
    where: str
    target: Target
    level: float
    replicates: int
    others: _containers.RepeatedScalarFieldContainer[str]
    statistic: str
    def __init__(self, table: _Optional[str] = ..., x: _Optional[str] = ..., y: _Optional[str] = ..., given: _Optional[_Iterable[str]] = ..., where: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., level: _Optional[float] = ..., replicates: _Optional[int] = ..., others: _Optional[_Iterable[str]] = ..., statistic: _Optional[str] = ...) -> None: ...

class TestIndependenceReply(_message.Message):
    __slots__ = ("statistic", "p_value", "degrees_of_freedom", "decision", "reason", "level", "replicates", "receipt")
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    P_VALUE_FIELD_NUMBER: _ClassVar[int]
    DEGREES_OF_FREEDOM_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    REPLICATES_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    statistic: float
    p_value: float
    degrees_of_freedom: int
    decision: str
    reason: str
    level: float
    replicates: int
    receipt: Receipt
    def __init__(self, statistic: _Optional[float] = ..., p_value: _Optional[float] = ..., degrees_of_freedom: _Optional[int] = ..., decision: _Optional[str] = ..., reason: _Optional[str] = ..., level: _Optional[float] = ..., replicates: _Optional[int] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class AttributeSet(_message.Message):
    __slots__ = ("columns", "importance")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[str]
    importance: float
    def __init__(self, columns: _Optional[_Iterable[str]] = ..., importance: _Optional[float] = ...) -> None: ...

class MarginalsRequest(_message.Message):
    __slots__ = ("table", "sets", "target", "budget", "consistency", "public_total")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SETS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_TOTAL_FIELD_NUMBER: _ClassVar[int]
    table: str
    sets: _containers.RepeatedCompositeFieldContainer[AttributeSet]
    target: Target
    budget: str
    consistency: str
    public_total: int
    def __init__(self, table: _Optional[str] = ..., sets: _Optional[_Iterable[_Union[AttributeSet, _Mapping]]] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., budget: _Optional[str] = ..., consistency: _Optional[str] = ..., public_total: _Optional[int] = ...) -> None: ...

class MarginalsReply(_message.Message):
    __slots__ = ("step", "ipc", "summary")
    STEP_FIELD_NUMBER: _ClassVar[int]
    IPC_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    step: str
    ipc: bytes
    summary: MarginalsSummary
    def __init__(self, step: _Optional[str] = ..., ipc: _Optional[bytes] = ..., summary: _Optional[_Union[MarginalsSummary, _Mapping]] = ...) -> None: ...

class MarginalsSummary(_message.Message):
    __slots__ = ("consistency", "epsilon_spent", "confidence", "misfit", "residual", "notes", "budget")
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MISFIT_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    consistency: str
    epsilon_spent: float
    confidence: float
    misfit: float
    residual: float
    notes: _containers.RepeatedScalarFieldContainer[str]
    budget: Budget
    def __init__(self, consistency: _Optional[str] = ..., epsilon_spent: _Optional[float] = ..., confidence: _Optional[float] = ..., misfit: _Optional[float] = ..., residual: _Optional[float] = ..., notes: _Optional[_Iterable[str]] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class PriorPoint(_message.Message):
    __slots__ = ("value", "probability")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    value: int
    probability: float
    def __init__(self, value: _Optional[int] = ..., probability: _Optional[float] = ...) -> None: ...

class LossRow(_message.Message):
    __slots__ = ("losses",)
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    losses: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, losses: _Optional[_Iterable[float]] = ...) -> None: ...

class BestReportRequest(_message.Message):
    __slots__ = ("sql", "target", "prior", "loss", "loss_table", "power", "prior_sql")
    SQL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    LOSS_TABLE_FIELD_NUMBER: _ClassVar[int]
    POWER_FIELD_NUMBER: _ClassVar[int]
    PRIOR_SQL_FIELD_NUMBER: _ClassVar[int]
    sql: str
    target: Target
    prior: _containers.RepeatedCompositeFieldContainer[PriorPoint]
    loss: str
    loss_table: _containers.RepeatedCompositeFieldContainer[LossRow]
    power: float
    prior_sql: str
    def __init__(self, sql: _Optional[str] = ..., target: _Optional[_Union[Target, _Mapping]] = ..., prior: _Optional[_Iterable[_Union[PriorPoint, _Mapping]]] = ..., loss: _Optional[str] = ..., loss_table: _Optional[_Iterable[_Union[LossRow, _Mapping]]] = ..., power: _Optional[float] = ..., prior_sql: _Optional[str] = ...) -> None: ...

class PosteriorInterval(_message.Message):
    __slots__ = ("low", "high", "confidence", "probability")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    low: int
    high: int
    confidence: float
    probability: float
    def __init__(self, low: _Optional[int] = ..., high: _Optional[int] = ..., confidence: _Optional[float] = ..., probability: _Optional[float] = ...) -> None: ...

class BestReportReply(_message.Message):
    __slots__ = ("report", "expected_loss", "answer", "receipt", "interval")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_LOSS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    report: int
    expected_loss: float
    answer: float
    receipt: Receipt
    interval: PosteriorInterval
    def __init__(self, report: _Optional[int] = ..., expected_loss: _Optional[float] = ..., answer: _Optional[float] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ..., interval: _Optional[_Union[PosteriorInterval, _Mapping]] = ...) -> None: ...

class CreateSyntheticRequest(_message.Message):
    __slots__ = ("table", "name", "replace", "epsilon", "method", "rows", "seed", "columns", "delta", "score", "degree", "hierarchies", "target", "workload", "evaluate", "theta", "structure_share", "groups", "structure", "votes", "clip", "smoothing", "public_rows", "holders")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DEGREE_FIELD_NUMBER: _ClassVar[int]
    HIERARCHIES_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    EVALUATE_FIELD_NUMBER: _ClassVar[int]
    THETA_FIELD_NUMBER: _ClassVar[int]
    STRUCTURE_SHARE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    STRUCTURE_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    SMOOTHING_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_ROWS_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    table: str
    name: str
    replace: bool
    epsilon: str
    method: str
    rows: int
    seed: int
    columns: _containers.RepeatedScalarFieldContainer[str]
    delta: str
    score: str
    degree: int
    hierarchies: bool
    target: _containers.RepeatedScalarFieldContainer[str]
    workload: str
    evaluate: str
    theta: float
    structure_share: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    structure: str
    votes: str
    clip: str
    smoothing: str
    public_rows: int
    holders: str
    def __init__(self, table: _Optional[str] = ..., name: _Optional[str] = ..., replace: bool = ..., epsilon: _Optional[str] = ..., method: _Optional[str] = ..., rows: _Optional[int] = ..., seed: _Optional[int] = ..., columns: _Optional[_Iterable[str]] = ..., delta: _Optional[str] = ..., score: _Optional[str] = ..., degree: _Optional[int] = ..., hierarchies: bool = ..., target: _Optional[_Iterable[str]] = ..., workload: _Optional[str] = ..., evaluate: _Optional[str] = ..., theta: _Optional[float] = ..., structure_share: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., structure: _Optional[str] = ..., votes: _Optional[str] = ..., clip: _Optional[str] = ..., smoothing: _Optional[str] = ..., public_rows: _Optional[int] = ..., holders: _Optional[str] = ...) -> None: ...

class SyntheticProgress(_message.Message):
    __slots__ = ("step", "done", "epsilon_spent", "table", "receipt")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    step: str
    done: float
    epsilon_spent: float
    table: SyntheticTable
    receipt: Receipt
    def __init__(self, step: _Optional[str] = ..., done: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., table: _Optional[_Union[SyntheticTable, _Mapping]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ...) -> None: ...

class SyntheticTable(_message.Message):
    __slots__ = ("name", "source", "method", "rows", "epsilon", "epsilon_spent", "seed", "columns", "model", "made_by", "made_at", "n_charges", "incomplete", "delta", "options", "evaluation", "respondents")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    MADE_AT_FIELD_NUMBER: _ClassVar[int]
    N_CHARGES_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: str
    method: str
    rows: int
    epsilon: float
    epsilon_spent: float
    seed: int
    columns: _containers.RepeatedCompositeFieldContainer[SyntheticColumn]
    model: str
    made_by: str
    made_at: str
    n_charges: int
    incomplete: str
    delta: float
    options: str
    evaluation: SyntheticEvaluation
    respondents: int
    def __init__(self, name: _Optional[str] = ..., source: _Optional[str] = ..., method: _Optional[str] = ..., rows: _Optional[int] = ..., epsilon: _Optional[float] = ..., epsilon_spent: _Optional[float] = ..., seed: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[SyntheticColumn, _Mapping]]] = ..., model: _Optional[str] = ..., made_by: _Optional[str] = ..., made_at: _Optional[str] = ..., n_charges: _Optional[int] = ..., incomplete: _Optional[str] = ..., delta: _Optional[float] = ..., options: _Optional[str] = ..., evaluation: _Optional[_Union[SyntheticEvaluation, _Mapping]] = ..., respondents: _Optional[int] = ...) -> None: ...

class SyntheticEvaluation(_message.Message):
    __slots__ = ("estimate", "half_width", "pairs", "pairs_all", "epsilon_spent", "is_bound")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_ALL_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    IS_BOUND_FIELD_NUMBER: _ClassVar[int]
    estimate: float
    half_width: float
    pairs: int
    pairs_all: int
    epsilon_spent: float
    is_bound: bool
    def __init__(self, estimate: _Optional[float] = ..., half_width: _Optional[float] = ..., pairs: _Optional[int] = ..., pairs_all: _Optional[int] = ..., epsilon_spent: _Optional[float] = ..., is_bound: bool = ...) -> None: ...

class SyntheticColumn(_message.Message):
    __slots__ = ("name", "sql_type", "unknown")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SQL_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    name: str
    sql_type: str
    unknown: bool
    def __init__(self, name: _Optional[str] = ..., sql_type: _Optional[str] = ..., unknown: bool = ...) -> None: ...

class PreviewSyntheticReply(_message.Message):
    __slots__ = ("steps", "epsilon", "budget")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[PlannedSyntheticStep]
    epsilon: float
    budget: Budget
    def __init__(self, steps: _Optional[_Iterable[_Union[PlannedSyntheticStep, _Mapping]]] = ..., epsilon: _Optional[float] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ...) -> None: ...

class PlannedSyntheticStep(_message.Message):
    __slots__ = ("name", "epsilon", "n_tables")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    N_TABLES_FIELD_NUMBER: _ClassVar[int]
    name: str
    epsilon: float
    n_tables: int
    def __init__(self, name: _Optional[str] = ..., epsilon: _Optional[float] = ..., n_tables: _Optional[int] = ...) -> None: ...

class ListSyntheticRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListSyntheticReply(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[SyntheticTable]
    def __init__(self, tables: _Optional[_Iterable[_Union[SyntheticTable, _Mapping]]] = ...) -> None: ...

class ReadSyntheticRequest(_message.Message):
    __slots__ = ("name", "model")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    model: bool
    def __init__(self, name: _Optional[str] = ..., model: bool = ...) -> None: ...

class ReadSyntheticReply(_message.Message):
    __slots__ = ("ipc", "model")
    IPC_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    model: bytes
    def __init__(self, ipc: _Optional[bytes] = ..., model: _Optional[bytes] = ...) -> None: ...

class ReportSyntheticRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReportSyntheticReply(_message.Message):
    __slots__ = ("chunk",)
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    def __init__(self, chunk: _Optional[bytes] = ...) -> None: ...

class ResampleSyntheticRequest(_message.Message):
    __slots__ = ("table", "name", "rows", "seed")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    table: str
    name: str
    rows: int
    seed: int
    def __init__(self, table: _Optional[str] = ..., name: _Optional[str] = ..., rows: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class DropSyntheticRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DropSyntheticReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SyntheticLawRequest(_message.Message):
    __slots__ = ("name", "of", "given")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    of: _containers.RepeatedScalarFieldContainer[str]
    given: _containers.RepeatedCompositeFieldContainer[GivenValue]
    def __init__(self, name: _Optional[str] = ..., of: _Optional[_Iterable[str]] = ..., given: _Optional[_Iterable[_Union[GivenValue, _Mapping]]] = ...) -> None: ...

class GivenValue(_message.Message):
    __slots__ = ("column", "value")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    column: str
    value: str
    def __init__(self, column: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SyntheticLawReply(_message.Message):
    __slots__ = ("ipc", "basis")
    IPC_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ipc: bytes
    basis: SyntheticLawBasis
    def __init__(self, ipc: _Optional[bytes] = ..., basis: _Optional[_Union[SyntheticLawBasis, _Mapping]] = ...) -> None: ...

class SyntheticLawBasis(_message.Message):
    __slots__ = ("way", "n_rows")
    WAY_FIELD_NUMBER: _ClassVar[int]
    N_ROWS_FIELD_NUMBER: _ClassVar[int]
    way: str
    n_rows: float
    def __init__(self, way: _Optional[str] = ..., n_rows: _Optional[float] = ...) -> None: ...

class DescribeHolderRequest(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: str
    def __init__(self, table: _Optional[str] = ...) -> None: ...

class HolderDescription(_message.Message):
    __slots__ = ("schema_digest", "declaration", "state", "epsilon_left", "periods")
    SCHEMA_DIGEST_FIELD_NUMBER: _ClassVar[int]
    DECLARATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LEFT_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    schema_digest: str
    declaration: str
    state: str
    epsilon_left: str
    periods: _containers.RepeatedCompositeFieldContainer[HolderPeriod]
    def __init__(self, schema_digest: _Optional[str] = ..., declaration: _Optional[str] = ..., state: _Optional[str] = ..., epsilon_left: _Optional[str] = ..., periods: _Optional[_Iterable[_Union[HolderPeriod, _Mapping]]] = ...) -> None: ...

class HolderPeriod(_message.Message):
    __slots__ = ("start", "end", "digest")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    digest: str
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class ForLedgerRequest(_message.Message):
    __slots__ = ("table", "asked")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    table: str
    asked: str
    def __init__(self, table: _Optional[str] = ..., asked: _Optional[str] = ...) -> None: ...

class PriceForLedgerReply(_message.Message):
    __slots__ = ("epsilon",)
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    epsilon: str
    def __init__(self, epsilon: _Optional[str] = ...) -> None: ...

class MeasureForLedgerReply(_message.Message):
    __slots__ = ("told",)
    TOLD_FIELD_NUMBER: _ClassVar[int]
    told: str
    def __init__(self, told: _Optional[str] = ...) -> None: ...

class RefusalDetail(_message.Message):
    __slots__ = ("code", "message", "hint", "position", "shortfall", "epsilon_spent", "free_widths")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SHORTFALL_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    FREE_WIDTHS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    hint: str
    position: TextPosition
    shortfall: Shortfall
    epsilon_spent: str
    free_widths: _containers.RepeatedCompositeFieldContainer[FreeWidth]
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., position: _Optional[_Union[TextPosition, _Mapping]] = ..., shortfall: _Optional[_Union[Shortfall, _Mapping]] = ..., epsilon_spent: _Optional[str] = ..., free_widths: _Optional[_Iterable[_Union[FreeWidth, _Mapping]]] = ...) -> None: ...

class ObserveRequest(_message.Message):
    __slots__ = ("stream", "ids", "left", "where")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    ids: _containers.RepeatedScalarFieldContainer[int]
    left: bool
    where: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, stream: _Optional[str] = ..., ids: _Optional[_Iterable[int]] = ..., left: bool = ..., where: _Optional[_Iterable[str]] = ...) -> None: ...

class ObserveReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExportStreamRequest(_message.Message):
    __slots__ = ("stream", "epoch")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    stream: str
    epoch: str
    def __init__(self, stream: _Optional[str] = ..., epoch: _Optional[str] = ...) -> None: ...

class ExportStreamReply(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...

class TextPosition(_message.Message):
    __slots__ = ("line", "column")
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    line: int
    column: int
    def __init__(self, line: _Optional[int] = ..., column: _Optional[int] = ...) -> None: ...

class Shortfall(_message.Message):
    __slots__ = ("table", "epsilon_needed", "epsilon_left", "account", "window", "free", "fitting", "renews_on")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_NEEDED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_LEFT_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    FITTING_FIELD_NUMBER: _ClassVar[int]
    RENEWS_ON_FIELD_NUMBER: _ClassVar[int]
    table: str
    epsilon_needed: str
    epsilon_left: str
    account: str
    window: str
    free: OfferedWidth
    fitting: OfferedWidth
    renews_on: str
    def __init__(self, table: _Optional[str] = ..., epsilon_needed: _Optional[str] = ..., epsilon_left: _Optional[str] = ..., account: _Optional[str] = ..., window: _Optional[str] = ..., free: _Optional[_Union[OfferedWidth, _Mapping]] = ..., fitting: _Optional[_Union[OfferedWidth, _Mapping]] = ..., renews_on: _Optional[str] = ...) -> None: ...

class OfferedWidth(_message.Message):
    __slots__ = ("factor", "half_width")
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    factor: float
    half_width: float
    def __init__(self, factor: _Optional[float] = ..., half_width: _Optional[float] = ...) -> None: ...

class FreeWidth(_message.Message):
    __slots__ = ("answer", "half_width")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    answer: str
    half_width: float
    def __init__(self, answer: _Optional[str] = ..., half_width: _Optional[float] = ...) -> None: ...

class CreateCollectionRequest(_message.Message):
    __slots__ = ("campaign", "respondents_max", "by_invitation")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_MAX_FIELD_NUMBER: _ClassVar[int]
    BY_INVITATION_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    respondents_max: int
    by_invitation: bool
    def __init__(self, campaign: _Optional[str] = ..., respondents_max: _Optional[int] = ..., by_invitation: bool = ...) -> None: ...

class Collection(_message.Message):
    __slots__ = ("name", "digest", "campaign", "epsilon", "respondents", "respondents_max", "by_invitation", "closed", "opened_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_MAX_FIELD_NUMBER: _ClassVar[int]
    BY_INVITATION_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    OPENED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    digest: str
    campaign: str
    epsilon: float
    respondents: int
    respondents_max: int
    by_invitation: bool
    closed: bool
    opened_by: str
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ..., campaign: _Optional[str] = ..., epsilon: _Optional[float] = ..., respondents: _Optional[int] = ..., respondents_max: _Optional[int] = ..., by_invitation: bool = ..., closed: bool = ..., opened_by: _Optional[str] = ...) -> None: ...

class InviteRespondentsRequest(_message.Message):
    __slots__ = ("name", "n")
    NAME_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    name: str
    n: int
    def __init__(self, name: _Optional[str] = ..., n: _Optional[int] = ...) -> None: ...

class InviteRespondentsReply(_message.Message):
    __slots__ = ("tokens",)
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tokens: _Optional[_Iterable[str]] = ...) -> None: ...

class ListCollectionsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListCollectionsReply(_message.Message):
    __slots__ = ("collections",)
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    collections: _containers.RepeatedCompositeFieldContainer[Collection]
    def __init__(self, collections: _Optional[_Iterable[_Union[Collection, _Mapping]]] = ...) -> None: ...

class CloseCollectionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class EstimateCollectionRequest(_message.Message):
    __slots__ = ("name", "attributes", "confidence", "likeliest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    LIKELIEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    attributes: _containers.RepeatedScalarFieldContainer[str]
    confidence: float
    likeliest: bool
    def __init__(self, name: _Optional[str] = ..., attributes: _Optional[_Iterable[str]] = ..., confidence: _Optional[float] = ..., likeliest: bool = ...) -> None: ...

class EstimatedCell(_message.Message):
    __slots__ = ("levels", "share", "low", "high", "method")
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    levels: _containers.RepeatedScalarFieldContainer[str]
    share: float
    low: float
    high: float
    method: str
    def __init__(self, levels: _Optional[_Iterable[str]] = ..., share: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., method: _Optional[str] = ...) -> None: ...

class EstimateCollectionReply(_message.Message):
    __slots__ = ("cells", "respondents", "confidence", "estimator", "half_width_together", "basis")
    CELLS_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_TOGETHER_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedCompositeFieldContainer[EstimatedCell]
    respondents: int
    confidence: float
    estimator: str
    half_width_together: float
    basis: LikeliestBasis
    def __init__(self, cells: _Optional[_Iterable[_Union[EstimatedCell, _Mapping]]] = ..., respondents: _Optional[int] = ..., confidence: _Optional[float] = ..., estimator: _Optional[str] = ..., half_width_together: _Optional[float] = ..., basis: _Optional[_Union[LikeliestBasis, _Mapping]] = ...) -> None: ...

class LikeliestBasis(_message.Message):
    __slots__ = ("combination", "answers", "likelihood_gap")
    COMBINATION_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    LIKELIHOOD_GAP_FIELD_NUMBER: _ClassVar[int]
    combination: _containers.RepeatedScalarFieldContainer[str]
    answers: int
    likelihood_gap: float
    def __init__(self, combination: _Optional[_Iterable[str]] = ..., answers: _Optional[int] = ..., likelihood_gap: _Optional[float] = ...) -> None: ...

class ReadCollectionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReadCollectionReply(_message.Message):
    __slots__ = ("combination", "answers", "counts")
    COMBINATION_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    combination: int
    answers: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, combination: _Optional[int] = ..., answers: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class PlanCollectionRequest(_message.Message):
    __slots__ = ("attributes", "size", "epsilon", "respondents", "half_width", "confidence", "share")
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    attributes: _containers.RepeatedCompositeFieldContainer[PlannedAttribute]
    size: int
    epsilon: str
    respondents: int
    half_width: float
    confidence: float
    share: float
    def __init__(self, attributes: _Optional[_Iterable[_Union[PlannedAttribute, _Mapping]]] = ..., size: _Optional[int] = ..., epsilon: _Optional[str] = ..., respondents: _Optional[int] = ..., half_width: _Optional[float] = ..., confidence: _Optional[float] = ..., share: _Optional[float] = ...) -> None: ...

class PlannedAttribute(_message.Message):
    __slots__ = ("name", "levels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    levels: int
    def __init__(self, name: _Optional[str] = ..., levels: _Optional[int] = ...) -> None: ...

class PlanCollectionReply(_message.Message):
    __slots__ = ("epsilon", "respondents", "half_width", "confidence", "combinations")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    RESPONDENTS_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COMBINATIONS_FIELD_NUMBER: _ClassVar[int]
    epsilon: float
    respondents: int
    half_width: float
    confidence: float
    combinations: _containers.RepeatedCompositeFieldContainer[PlannedCombination]
    def __init__(self, epsilon: _Optional[float] = ..., respondents: _Optional[int] = ..., half_width: _Optional[float] = ..., confidence: _Optional[float] = ..., combinations: _Optional[_Iterable[_Union[PlannedCombination, _Mapping]]] = ...) -> None: ...

class PlannedCombination(_message.Message):
    __slots__ = ("attributes", "channel", "cells", "keep", "answers", "half_width")
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    attributes: _containers.RepeatedScalarFieldContainer[str]
    channel: str
    cells: int
    keep: float
    answers: int
    half_width: float
    def __init__(self, attributes: _Optional[_Iterable[str]] = ..., channel: _Optional[str] = ..., cells: _Optional[int] = ..., keep: _Optional[float] = ..., answers: _Optional[int] = ..., half_width: _Optional[float] = ...) -> None: ...

class PlanRobustnessRequest(_message.Message):
    __slots__ = ("counts", "columns", "epsilon", "level", "released", "answers", "given")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedScalarFieldContainer[float]
    columns: int
    epsilon: str
    level: float
    released: str
    answers: int
    given: int
    def __init__(self, counts: _Optional[_Iterable[float]] = ..., columns: _Optional[int] = ..., epsilon: _Optional[str] = ..., level: _Optional[float] = ..., released: _Optional[str] = ..., answers: _Optional[int] = ..., given: _Optional[int] = ...) -> None: ...

class PlanRobustnessReply(_message.Message):
    __slots__ = ("dependent", "statistic", "critical", "flips")
    DEPENDENT_FIELD_NUMBER: _ClassVar[int]
    STATISTIC_FIELD_NUMBER: _ClassVar[int]
    CRITICAL_FIELD_NUMBER: _ClassVar[int]
    FLIPS_FIELD_NUMBER: _ClassVar[int]
    dependent: bool
    statistic: float
    critical: float
    flips: _containers.RepeatedCompositeFieldContainer[NoiseFlip]
    def __init__(self, dependent: bool = ..., statistic: _Optional[float] = ..., critical: _Optional[float] = ..., flips: _Optional[_Iterable[_Union[NoiseFlip, _Mapping]]] = ...) -> None: ...

class NoiseFlip(_message.Message):
    __slots__ = ("noise", "probability", "standard_error")
    NOISE_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    noise: str
    probability: float
    standard_error: float
    def __init__(self, noise: _Optional[str] = ..., probability: _Optional[float] = ..., standard_error: _Optional[float] = ...) -> None: ...

class GetAssignmentRequest(_message.Message):
    __slots__ = ("name", "token", "for_kept")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FOR_KEPT_FIELD_NUMBER: _ClassVar[int]
    name: str
    token: str
    for_kept: bool
    def __init__(self, name: _Optional[str] = ..., token: _Optional[str] = ..., for_kept: bool = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("campaign", "digest")
    CAMPAIGN_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    campaign: str
    digest: str
    def __init__(self, campaign: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class SubmitAnswerRequest(_message.Message):
    __slots__ = ("name", "token", "answer")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    name: str
    token: str
    answer: str
    def __init__(self, name: _Optional[str] = ..., token: _Optional[str] = ..., answer: _Optional[str] = ...) -> None: ...

class SubmitAnswerReply(_message.Message):
    __slots__ = ("counted_before",)
    COUNTED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    counted_before: bool
    def __init__(self, counted_before: bool = ...) -> None: ...
