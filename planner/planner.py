"""The planner's interface: takes SQL text, and gives a `Workload` or a refusal.

It reads the public schemas and public tables, and the clock if a statement mentions it; nothing
else. Equal texts with equal targets at equal moments give the same object.

The columns that a workload's queries need: what weighs the choice of a synthetic table's tables.

A workload is a text of SELECTs on one private table. Each is planned, and refused as it would be if
it were asked; nothing of it is carried out. Only the columns are kept, not the coefficients.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from sqlglot import exp

from cube.pace import checkpoint
from cube.query import Scope
from cube.refusals import InvalidRequest, Refused, TooLarge
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from planner.cache import BoundedCache
from planner.domain import (
    Columns,
    PublicRelation,
    PublicRows,
    Scratchpad,
    SyntheticName,
    TableNames,
    no_public_rows,
)
from planner.lowering import (
    CountColumns,
    PlanningContext,
    Rows,
    ShownAnswer,
    Splitter,
    TableGenerations,
    chosen_among,
    gives_no_rows,
    is_count,
    named_columns,
    outer_sql,
    pick_of,
    public_types,
    with_rounded_counts,
)
from planner.made_relations import write_made
from planner.sql import (
    REQUESTED,
    Clock,
    Parameters,
    ParameterType,
    QueryTree,
    TextLimits,
    copy_of,
    moment_for,
    name_inner_columns,
    nodes_of,
    parameter_types,
    parse,
    read_at,
    read_query,
    shortened,
    told_moment,
    utc_now,
    worded_statements,
)
from planner.type_rules import check_types, column_types
from planner.workload import (
    ColumnKind,
    Fallback,
    GivenAnswers,
    Outer,
    OutputColumn,
    RequestedTarget,
    Workload,
)

Read = TypeVar("Read")
Said = TypeVar("Said")
PlanKey: TypeAlias = tuple[str, RequestedTarget, Parameters, dt.datetime | None, GivenAnswers]

N_PLANS_MAX = 4096
N_CONDITIONS_MAX = 4096
PLAN_BYTES_DEFAULT = 320 * 2**20
PLAN_BYTES_LEAST = 16 * 2**20

_NO_REQUEST = RequestedTarget()
_CLAUSES_OF_A_RELATION = {
    "expressions",
    "from_",
}  # a SELECT with only these may show a relation unchanged


class Planner:
    """Plans statements over a few private tables. Thread-safe.

    Parameters
    ----------
    schemas : mapping
        The public schema of every table, by the table's name.
    defaults : mapping
        For every table, the target of counts in a request that names none.
    public : sequence of PublicRelation
        Public and synthetic tables.
    privacy_views : sequence of str
        The views of the schema `data_privacy`.
    public_rows : callable
        Returns the result of a SELECT over public tables.
    sums : mapping
        For some tables, the declared targets for sums of their measures, by their names.
    clock : callable
        The moment, in UTC; read once for a statement that mentions it.
    generations : mapping
        For a table whose data was replaced, the names of its generations; all but the last are
        among the schemas, and only AS OF means them.
    n_bytes_max : int
        Of all that is kept: two fifths are for plans, as much for expressions over levels, and a
        fifth for conditions. Dropped is what was least recently used.
    """

    def __init__(  # noqa: PLR0913 - all that may be planned on
        self,
        schemas: Mapping[str, Schema],
        defaults: Mapping[str, AccuracyTarget],
        public: Sequence[PublicRelation] = (),
        privacy_views: Sequence[str] = (),
        public_rows: PublicRows = no_public_rows,
        *,
        sums: Mapping[str, Mapping[str, SumTarget]] = MappingProxyType({}),
        clock: Clock = utc_now,
        generations: Mapping[str, TableGenerations] = MappingProxyType({}),
        n_bytes_max: int = PLAN_BYTES_DEFAULT,
    ) -> None:
        if set(schemas) != set(defaults):
            raise ValueError("every table must have a schema and a default target")
        earlier = {name for one in generations.values() for name in one.names[:-1]}
        named = {name: schema for name, schema in schemas.items() if name not in earlier}
        self._world = PlanningContext(
            schemas=named,
            rows={name: Rows.of(schema) for name, schema in schemas.items()},
            defaults=dict(defaults),
            sums=dict(sums),
            public={relation.outer_name: relation for relation in public},
            names=TableNames(
                (*named, *(one.name for one in public if one.source is None)),
                tuple(
                    SyntheticName(one.source, one.name) for one in public if one.source is not None
                ),
            ),
            privacy_views=tuple(privacy_views),
            scratchpad=Scratchpad(dict(schemas), n_bytes_max * 2 // 5),
            public_rows=public_rows,
            conditions=BoundedCache(n_entries_max=N_CONDITIONS_MAX, n_bytes_max=n_bytes_max // 5),
            generations=dict(generations),
        )
        self._clock = clock
        self._plans: BoundedCache[PlanKey, Workload] = BoundedCache(
            n_entries_max=N_PLANS_MAX, n_bytes_max=n_bytes_max * 2 // 5
        )

    def plan(
        self,
        sql: str,
        requested: RequestedTarget = _NO_REQUEST,
        parameters: Parameters = (),
        given: GivenAnswers = (),
    ) -> Workload:
        """The workload of the query `sql`, or of the query that it asks to explain.

        A target in the SQL's OPTIONS overrides `requested`, which overrides the table's default.
        The answers to its subqueries that have to be asked first are `given`.

        Raises
        ------
        AskedFirst
            If a subquery has to be asked first whose answer is not given.
        Refused
            If the text asks for anything other than aggregates of private tables and what can be
            computed from them, or for a target out of range.
        """
        key = (sql, requested, parameters, moment_for(sql, self._clock), given)
        known = self._plans.get(key)
        if known is not None:
            return known
        workload = _unless_too_deep(lambda: self._planned(*key))
        self._plans.put(key, workload, n_bytes=len(sql) + _n_bytes(workload))
        return workload

    def parameter_types(self, sql: str) -> tuple[ParameterType, ...]:
        """What the parameters of a query are, in the order in which their values are sent.

        Raises
        ------
        Refused
            If the text is no query.
        """

        def read() -> tuple[ParameterType, ...]:
            tree = parse(read_query(sql)).tree
            return parameter_types(tree, column_types(tree, self._world))

        return _unless_too_deep(read)

    def _planned(
        self,
        sql: str,
        requested: RequestedTarget,
        parameters: Parameters,
        moment: dt.datetime | None,
        given: GivenAnswers,
    ) -> Workload:
        query = parse(read_query(sql), parameters)
        if moment is not None and not read_at(query.tree, moment):
            moment = None
        n_made = write_made(query, self._constants)
        if n_made > 1 and not query.has_subqueries:
            query = replace(query, has_subqueries=True)
        notes = () if moment is None else (told_moment(moment),)
        is_probe = gives_no_rows(query.tree)
        fallback = _said(query, requested, lambda one: one.fallback) or Fallback.NONE
        any_holders = bool(_said(query, requested, lambda one: one.any_holders))
        wants_whole = _wants_whole_counts(query.tree, requested)
        check_types(query.tree, self._world)
        splitter = Splitter(self._world, requested, given)
        tree, answers = splitter.statement(query)
        columns = _shown_as_it_is(tree, splitter)
        if columns is not None:
            part = splitter.parts[0].build(columns)
            notes = (*notes, *splitter.parts[0].notes)
            counts = (place for place, one in enumerate(columns) if is_count(part, one))
            whole = tuple(counts) if wants_whole else ()
            part = with_rounded_counts(part) if wants_whole else part
            made = Workload(
                (part,), None, False, fallback, notes, moment, whole, _warnings(splitter)
            )
            made = replace(made, any_holders=any_holders)
            return _cautioned(made, splitter)
        named_columns(tree)
        name_inner_columns(tree)
        counted = copy_of(tree) if wants_whole else None  # before the ends of intervals are added
        intervals = _with_intervals(tree, splitter, answers)
        reads = tuple(table.name for table in nodes_of(tree, exp.Table))
        public = tuple(splitter.tables.public)
        sql, n_characters = outer_sql(tree, splitter.types)
        outer = Outer(sql, public, intervals, reads, n_made, n_characters)
        parts = tuple(part.build() for part in splitter.parts)
        if wants_whole:
            parts = tuple(map(with_rounded_counts, parts))
        notes = (*notes, *_notes(tree, splitter))
        pick = pick_of(tree, splitter.parts)
        chosen = tuple(chosen_among(tree, pick)) if parts else ()
        whole = () if counted is None else CountColumns(parts, self._world.public).places(counted)
        warnings = _warnings(splitter)
        made = Workload(parts, outer, is_probe, fallback, notes, moment, whole, warnings)
        made = _cautioned(made.told((), chosen), splitter)
        claims = tuple(splitter.claims)
        return replace(made, pick=pick, claims=claims, any_holders=any_holders)

    def _constants(self, select: exp.Select) -> Columns:
        """The values of a SELECT of constants."""
        return self._world.public_rows(outer_sql(select, public_types({}))[0], ())


def _unless_too_deep(read: Callable[[], Read]) -> Read:
    """What reading a statement gives; a refusal if the tree is deeper than Python's stack."""
    try:
        return read()
    except RecursionError:
        raise TooLarge(
            "The SQL is nested too deeply.", hint="Split the statement or simplify it."
        ) from None


def _said(
    query: QueryTree, requested: RequestedTarget, of: Callable[[RequestedTarget], Said | None]
) -> Said | None:
    """What the first of a statement's OPTIONS says that is of all of it, or else the request."""
    tree = query.tree
    selects = nodes_of(tree, exp.Query) if query.has_subqueries else [tree]
    named = (of(select.meta.get(REQUESTED, requested)) for select in selects)
    return next((one for one in (*named, of(requested)) if one is not None), None)


def _wants_whole_counts(tree: exp.Query, requested: RequestedTarget) -> bool:
    """Whether counts are shown in whole numbers: as its own OPTIONS say, or else the request."""
    own = tree.meta.get(REQUESTED, requested).integer_counts
    return bool(requested.integer_counts if own is None else own)


def _warnings(splitter: Splitter) -> tuple[str, ...]:
    """What the parts note of values that no row has, each once."""
    return tuple(dict.fromkeys(one for part in splitter.parts for one in part.domain.warnings))


def _cautioned(workload: Workload, splitter: Splitter) -> Workload:
    """The same with what the parts note of values that count as others, each once."""
    changed = {said: one for part in splitter.parts for said, one in part.domain.caveats.items()}
    return replace(workload.told((), tuple(changed)), changed=tuple(changed.values()))


def _notes(tree: exp.Query, splitter: Splitter) -> Iterator[str]:
    """What the parts note, and which columns are aggregates of noisy answers."""
    yield from splitter.notes
    for part in splitter.parts:
        yield from part.notes
    if not any(part.aggregates for part in splitter.parts) or not isinstance(tree, exp.Select):
        return
    for item in tree.expressions:
        if any(not isinstance(one, exp.Count) for one in nodes_of(item, exp.AggFunc)):
            yield f"{shortened(item.alias)} is computed from noisy answers, and has no interval."


def _shown_as_it_is(tree: exp.Query, splitter: Splitter) -> tuple[OutputColumn, ...] | None:
    """The result's columns if they are those of the only part; None if outer SQL computes them."""
    clauses = {clause for clause, value in tree.args.items() if value}
    if len(splitter.parts) != 1 or not clauses <= _CLAUSES_OF_A_RELATION:
        return None
    (part,) = splitter.parts
    origin = tree.args.get("from_")
    if part.question is not None or origin is None or origin.this.name != part.name:
        return None
    columns = []
    for item in tree.expressions:
        column = item.unalias()
        if not isinstance(column, exp.Column):
            return None
        known = part.shows(column)
        columns.append(replace(known, name=item.alias))
    return tuple(columns)


def _with_intervals(
    tree: exp.Query, splitter: Splitter, answers: Mapping[str, ShownAnswer]
) -> tuple[tuple[int, int, int], ...]:
    """Add, for every column that is an answer, the ends of its interval, for the receipt."""
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return ()
    intervals = []
    for place, item in enumerate(list(tree.expressions)):
        known = answers.get(item.alias)
        if known is None or known.select is not tree or not _is_answer(item, known):
            continue
        intervals.append((place, splitter.parts.index(known.part), known.answer))
        for kind in (ColumnKind.LOW, ColumnKind.HIGH):
            name = f"tacit_{kind.value}_of_{place}"
            column = known.part.column(kind, known.answer)
            tree.append("expressions", exp.alias_(column, name, quoted=True, copy=False))
    return tuple(intervals)


def _is_answer(item: exp.Expr, known: ShownAnswer) -> bool:
    column = item.unalias()
    return isinstance(column, exp.Column) and column == known.part.shown_column(known.answer)


def _n_bytes(workload: Workload) -> int:
    """The memory that a plan takes, roughly."""
    n_bytes = 0
    for part in workload.parts:
        n_bytes += sum(72 * len(key.values) for key in part.keys)
        for aggregate in part.aggregates:
            for block in aggregate.blocks:
                for term in block.query.terms:
                    n_bytes += sum(8 * factor.n_stored for factor in term.factors)
                n_bytes += 0 if block.partition is None else 8 * block.partition.n_stored
    return n_bytes


# Each is planned before the table is begun, while somebody waits.
WORKLOAD: Final = TextLimits(
    what="workload", n_bytes=64 * 1024, n_statements=100, hint="Keep the most important statements."
)
# Columns do not depend on how accurately a query is to be answered.
ANY_TARGET: Final = AccuracyTarget(half_width=1.0, confidence=0.95)


def workload_scopes(text: str, schema: Schema) -> tuple[Scope, ...]:
    """The columns of every linear query in a text of SELECTs, in order.

    Parameters
    ----------
    text : str
        SELECTs, separated by semicolons.
    schema : Schema
        Of the private table that all of them are on.

    Returns
    -------
    tuple of sorted scopes
        A statement's distinct scopes; those of several statements may repeat. Counts of all
        records have no columns, and are left out.

    Raises
    ------
    Refused
        If a statement could not be asked of the table, with its number in the text.
    """
    planner = Planner({schema.table: schema}, {schema.table: ANY_TARGET})
    statements = worded_statements(text, WORKLOAD)
    if not statements:
        raise InvalidRequest(
            "The workload has no statements.",
            hint="Write SELECTs, separated by semicolons, or leave out workload.",
        )
    scopes: list[Scope] = []
    for number, statement in enumerate(statements, start=1):
        checkpoint()
        workload = _planned(planner, statement.text, number)
        if not workload.parts:
            raise InvalidRequest(
                f"Statement {number} of the workload does not read {schema.table}.",
                hint=f"Count records of {schema.table} in it, or leave out the statement.",
            )
        scopes += _scopes_of(workload)
    if not scopes:
        raise InvalidRequest(
            "The workload uses no columns.",
            hint="Group by a column or use a condition, or leave out workload.",
        )
    return tuple(scopes)


def _planned(planner: Planner, sql: str, number: int) -> Workload:
    """A statement's plan; a refusal says which statement of the text it is of."""
    try:
        return planner.plan(sql)
    except Refused as refusal:
        message = f"Statement {number} of the workload: {refusal.message}"
        raise type(refusal)(message, hint=refusal.hint) from None


def _scopes_of(workload: Workload) -> list[Scope]:
    """The distinct columns of the linear queries of one statement."""
    aggregates = chain.from_iterable(part.aggregates for part in workload.parts)
    found = {block.scope for aggregate in aggregates for block in aggregate.blocks}
    return sorted(found - {()})
