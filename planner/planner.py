"""The planner's face: SQL text in, a `Workload` out, or a refusal.

It reads the public schemas and nothing else. Equal texts with equal targets give the same object.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from cube.block import QueryBlock
from cube.refusals import TooLarge, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.cache import BoundedCache
from planner.clauses import private_table, refuse_clauses
from planner.dialect import parse
from planner.domain import PublicDomain
from planner.grouping import Grouping, grouping
from planner.linear import linear_query
from planner.names import (
    COMPANIONS,
    answer_of,
    column_name,
    expand_group_keys,
    is_companion,
    mark_companions,
    resolve_columns,
)
from planner.scratchpad import Scratchpad
from planner.summands import conjuncts
from planner.wording import DIALECT, unsupported
from planner.workload import Aggregate, ColumnKind, OutputColumn, RequestedTarget, Workload

N_PLANS_MAX = 4096
N_PLAN_BYTES_MAX = 256 * 2**20
N_COLUMNS_MAX = 1000  # of a SELECT list or of GROUP BY; a wider result is no answer

Pass: TypeAlias = Callable[[exp.Select, Schema], exp.Select]

PASSES: tuple[Pass, ...] = (
    refuse_clauses,  # after this, there is a SELECT list, FROM, WHERE and GROUP BY
    mark_companions,  # DP_COST(n) and the like no longer look like functions of columns
    expand_group_keys,  # GROUP BY has expressions only
    resolve_columns,  # every column is an axis of the schema
)

_NO_REQUEST = RequestedTarget()


class Planner:
    """Plans statements over a few private tables. Thread-safe.

    Parameters
    ----------
    schemas : mapping
        The public schema of every table, by the table's name.
    defaults : mapping
        For every table, the target of a request that names none.
    """

    def __init__(
        self, schemas: Mapping[str, Schema], defaults: Mapping[str, AccuracyTarget]
    ) -> None:
        if set(schemas) != set(defaults):
            raise ValueError("every table has a schema and a default target")
        self._schemas = dict(schemas)
        self._defaults = dict(defaults)
        self._scratchpad = Scratchpad(self._schemas)
        self._plans: BoundedCache[tuple[str, RequestedTarget], Workload] = BoundedCache(
            n_entries_max=N_PLANS_MAX, n_bytes_max=N_PLAN_BYTES_MAX
        )

    def plan(self, sql: str, requested: RequestedTarget = _NO_REQUEST) -> Workload:
        """What `sql` asks for.

        A target in the SQL's OPTIONS goes before `requested`, and that before the table's default.

        Raises
        ------
        Refused
            If the text is not a linear query of one table, with a target in range.
        """
        known = self._plans.get((sql, requested))
        if known is not None:
            return known
        try:
            workload = self._planned(sql, requested)
        except RecursionError:
            raise TooLarge(
                "The SQL is nested too deeply.", hint="Split it, or remove what is not needed."
            ) from None
        self._plans.put((sql, requested), workload, n_bytes=len(sql) + _n_bytes(workload))
        return workload

    def _planned(self, sql: str, requested: RequestedTarget) -> Workload:
        statement = parse(sql)
        table = private_table(statement.select, self._schemas)
        target = self._target(table, statement.requested.over(requested))
        schema = self._schemas[table]
        select = statement.select
        if not isinstance(select, exp.Select):
            raise TypeError("only a SELECT has a private table")
        for step in PASSES:
            select = step(select, schema)
        return _lowered(
            select,
            PublicDomain(table, schema, self._scratchpad),
            table=table,
            target=target,
            explain_only=statement.explain_only,
        )

    def _target(self, table: str, requested: RequestedTarget) -> AccuracyTarget:
        """The target of each answer; of several at once, with the doubt divided among them."""
        default = self._defaults[table]
        confidence = _or(requested.confidence, default.confidence)
        if requested.simultaneous is not None and 0 < confidence < 1:
            confidence = float(1 - (1 - Fraction(confidence)) / requested.simultaneous)
        return AccuracyTarget(
            half_width=_or(requested.half_width, default.half_width),
            confidence=confidence,
            epsilon_cap=(
                default.epsilon_cap if requested.epsilon_cap is None else requested.epsilon_cap
            ),
        )


def _lowered(
    select: exp.Select,
    domain: PublicDomain,
    *,
    table: str,
    target: AccuracyTarget,
    explain_only: bool,
) -> Workload:
    """A resolved SELECT as linear queries on groups."""
    where, keys = _where(select), _keys(select)
    _check_list(select, keys)
    groups = Grouping(None, ())
    if keys:
        conditions = [domain.truth(condition) for condition in where]
        groups = grouping([domain.key(key) for key in keys], conditions, domain.schema)
    aggregates: list[Aggregate] = []
    for item in select.expressions:
        expression = item.unalias()
        if is_companion(expression) or _key_place(expression, keys) is not None:
            continue
        query = linear_query(expression, where, domain)
        block = QueryBlock(query, groups.partition)
        text = expression.sql(dialect=DIALECT, comments=False)
        aggregates.append(Aggregate(column_name(item), text, block))
    if not aggregates:
        raise UnsupportedSql(
            "The SELECT list has no aggregate.",
            hint="The groups are public; ask COUNT(*) or SUM of them.",
        )
    return Workload(
        table=table,
        aggregates=tuple(aggregates),
        keys=groups.keys,
        columns=_columns(select, keys, [aggregate.name for aggregate in aggregates]),
        target=target,
        n_rows=_n_rows(groups),
        explain_only=explain_only,
    )


def _where(select: exp.Select) -> tuple[exp.Expr, ...]:
    where = select.args.get("where")
    return () if where is None else tuple(conjuncts(where.this))


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The GROUP BY expressions, each of them once."""
    group = select.args.get("group")
    keys: list[exp.Expr] = []
    for key in [] if group is None else group.expressions:
        if key.unnest() not in keys:
            keys.append(key.unnest())
    return keys


def _check_list(select: exp.Select, keys: list[exp.Expr]) -> None:
    if max(len(select.expressions), len(keys)) > N_COLUMNS_MAX:
        raise TooLarge(f"The SELECT list or GROUP BY has more than {N_COLUMNS_MAX} columns.")
    for key in keys:
        if is_companion(key) or key.find(exp.AggFunc) is not None:
            raise unsupported(key, "is an answer, and answers are no group keys")


def _key_place(expression: exp.Expr, keys: list[exp.Expr]) -> int | None:
    expression = expression.unnest()
    return keys.index(expression) if expression in keys else None


def _columns(
    select: exp.Select, keys: list[exp.Expr], answers: list[str]
) -> tuple[OutputColumn, ...]:
    """What to show, in the order of the SELECT list."""
    columns: list[OutputColumn] = []
    n_answers = 0
    for item in select.expressions:
        expression, name = item.unalias(), column_name(item)
        place = _key_place(expression, keys)
        if is_companion(expression):
            kind = COMPANIONS[expression.name]
            columns.append(OutputColumn(name, kind, answer_of(expression, answers)))
        elif place is not None:
            columns.append(OutputColumn(name, ColumnKind.KEY, place))
        else:
            columns.append(OutputColumn(name, ColumnKind.ANSWER, n_answers))
            n_answers += 1
    return tuple(columns)


def _n_rows(groups: Grouping) -> int:
    if not groups.keys:
        return 1
    return 0 if groups.partition is None else groups.partition.n_groups


def _n_bytes(workload: Workload) -> int:
    """Memory that a plan keeps alive, roughly."""
    n_bytes = sum(64 * len(key.values) for key in workload.keys)
    for aggregate in workload.aggregates:
        for term in aggregate.block.query.terms:
            n_bytes += sum(factor.values.nbytes for factor in term.factors)
    partition = workload.aggregates[0].block.partition
    return n_bytes + (0 if partition is None else partition.labels.nbytes)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
