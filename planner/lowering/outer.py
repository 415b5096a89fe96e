"""Prepares the SQL that runs on answers, and statements that run on synthetic rows instead.

The SQL around the aggregates, checked and translated to DuckDB's dialect.

It reads only noisy and public relations, so it cannot cost privacy. It is restricted to a list all
the same: queries, joins, windows, aggregates and the scalar functions that are allowed on public
levels; no table function, no clock, no environment, no recursion.

Rewrites a statement for synthetic rows, if it falls back on a model or is a preview.

Synthetic rows take the place of the private table. Answers from them have no intervals, so columns
of intervals are NULL, and DP_SOURCE is 'model'.
"""

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import UnsupportedError

from cube.refusals import TooLarge, UnsupportedSql
from planner.domain import (
    FUNCTIONS,
    LEAVES,
    OPERATORS,
    PublicRelation,
    check_details,
    instead_of,
    n_nodes_run,
)
from planner.meaning import RelationTypes, SqlType, check_made, duckdb_sql, of_duckdb, written_query
from planner.sql import (
    COMPANIONS,
    IS_MADE,
    Parameters,
    column_name,
    every_node,
    is_best,
    is_probability,
    parse,
    position,
    read_query,
    text_of,
    unsupported,
)
from planner.workload import ColumnKind

_QUERIES: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered),
        *(exp.Limit, exp.Offset, exp.Distinct, exp.With, exp.CTE, exp.Subquery),
        *(exp.Union, exp.Except, exp.Intersect, exp.Table, exp.TableAlias, exp.Alias, exp.Star),
        *(exp.Values, exp.Tuple, exp.Exists, exp.Any, exp.All, exp.Qualify, exp.Grouping),
        *(exp.Rollup, exp.Cube, exp.GroupingSets),
    }
)
_AGGREGATES: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Sum, exp.Count, exp.CountIf, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Filter),
        *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
        *(exp.WithinGroup, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ArgMax),
        *(exp.ArgMin, exp.AnyValue, exp.GroupConcat, exp.ArrayAgg),
    }
)
_WINDOWS: frozenset[type[exp.Expr]] = frozenset(
    {
        *(exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank),
        *(exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue),
        *(exp.IgnoreNulls, exp.RespectNulls),
    }
)
_ALLOWED = OPERATORS | LEAVES | frozenset(FUNCTIONS) | _QUERIES | _AGGREGATES | _WINDOWS

N_NODES_RUN_MAX = (
    50_000  # the longest text has half as many; DuckDB parses this many in half a second
)


def outer_sql(tree: exp.Query, relations: RelationTypes) -> tuple[str, int]:
    """The query in DuckDB's dialect, and the length of the longest value that it can make.

    Parameters
    ----------
    tree : Query
    relations : callable
        The types of the columns of the relations that it reads.

    Raises
    ------
    UnsupportedSql
        If something in it is not allowed, or DuckDB has no such expression.
    """
    nodes = every_node(tree)
    others = [node for node in nodes if isinstance(node, exp.Fetch | exp.WithinGroup)]
    for other in others:
        if isinstance(other, exp.Fetch):
            _as_limit(other)
        else:
            _as_ordered(other)
    nodes = every_node(tree) if others else nodes
    for node in nodes:
        if isinstance(node, exp.Array) and isinstance(node.parent, exp.WidthBucket):
            continue  # its thresholds
        if node.meta.get(IS_MADE):
            continue  # a series, whose rows are counted
        if type(node) not in _ALLOWED:
            raise _refusal(node)
        check_details(node)
    n_characters = check_made(nodes)
    check_run(nodes)
    try:
        return duckdb_sql(written_query(tree, relations)), n_characters
    except UnsupportedError:
        raise UnsupportedSql(
            "DuckDB cannot compute the expressions over the answers.",
            hint="Leave out rarely used clauses, such as IGNORE NULLS.",
        ) from None


def public_types(public: Mapping[str, PublicRelation]) -> RelationTypes:
    """The types of the columns of public and synthetic tables, by their names in the outer SQL."""

    def types(table: exp.Table) -> Mapping[str, SqlType]:
        found = public.get(table.name)
        known = {} if found is None else found.types
        return {name.lower(): of_duckdb(sql_type) for name, sql_type in known.items()}

    return types


def check_run(nodes: Sequence[exp.Expr]) -> None:
    """Raise TooLarge if DuckDB would make too many nodes of a tree, given all of its nodes.

    No interrupt works while it makes them.
    """
    n_nodes = n_nodes_run(nodes)
    if n_nodes > N_NODES_RUN_MAX:
        raise TooLarge(
            f"The expressions over the answers have {n_nodes} words and signs once each NULLIF "
            f"and CASE is expanded; {N_NODES_RUN_MAX} are allowed.",
            hint="Nest fewer of them, or compute the inner ones in a subquery.",
        )


def named_columns(query: exp.Query) -> None:
    """Name every column of the result as PostgreSQL does."""
    select = query
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    select.set("expressions", list(_named(select.expressions)))


def _as_limit(fetch: exp.Fetch) -> None:
    """FETCH FIRST n ROWS ONLY is LIMIT n."""
    options = fetch.args.get("limit_options")
    count = fetch.args.get("count")
    if count is None or (options is not None and options.args.get("percent")):
        raise unsupported(fetch, "is not supported in this form", "Use LIMIT.")
    if options is not None and options.args.get("with_ties"):
        raise unsupported(fetch, "keeps ties, and noisy answers have no ties", "Use LIMIT.")
    fetch.replace(exp.Limit(expression=count))


def _as_ordered(within: exp.Expr) -> None:
    """LISTAGG(x, ',') WITHIN GROUP (ORDER BY y) is STRING_AGG(x, ',' ORDER BY y)."""
    joined = within.this
    if isinstance(joined, exp.GroupConcat):
        ordered = exp.Order(this=joined.this, expressions=within.expression.expressions)
        joined.set("this", ordered)
        within.replace(joined)


def _named(items: Iterable[exp.Expr]) -> Iterable[exp.Expr]:
    for item in items:
        is_star = isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
        if is_star and not isinstance(item, exp.Count):
            yield item
        else:
            yield exp.alias_(item.unalias(), column_name(item), quoted=True, copy=False)


def _refusal(node: exp.Expr) -> UnsupportedSql:
    if isinstance(node, exp.Parameter | exp.Placeholder):
        return unsupported(
            node,
            "is a parameter, which is not supported here",
            "Write the value into the SQL text.",
        )
    if is_probability(node) or is_best(node):  # arguments have names of ours here: not quoted
        return UnsupportedSql(
            f"{node.name.upper()} is about answers of another SELECT.",
            hint="Ask for it in the SELECT that aggregates, under a name, and use that here.",
            position=position(node),
        )
    if isinstance(node, exp.Func):
        return unsupported(
            node,
            "is not a supported function over answers",
            instead_of(node, FUNCTIONS.values()),
        )
    return unsupported(
        node, "is not supported over answers", "Leave it out, or compute it from the result."
    )


SOURCE_MODEL = "model"


def modelled(sql: str, parameters: Parameters = ()) -> str:
    """The statement for synthetic rows.

    >>> modelled("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model') SUM(x) FROM t")
    'SELECT SUM(x) FROM t'

    Raises
    ------
    Refused
        As `parse`.
    """
    tree = parse(read_query(sql), parameters).tree
    for call in list(tree.find_all(exp.Anonymous)):
        kind = ColumnKind.REPORT if is_best(call) else COMPANIONS.get(call.name.upper())
        if kind is not None:
            call.replace(_instead(kind))
    return text_of(tree)


def n_rows_wanted(sql: str) -> int | None:
    """How many rows a query asks for by a LIMIT of its own; None without one that is written out.

    >>> n_rows_wanted("SELECT * FROM t LIMIT 100"), n_rows_wanted("SELECT * FROM t")
    (100, None)
    """
    tree = parse(read_query(sql)).tree
    limit = tree.args.get("limit")
    count = None if limit is None else limit.args.get("expression") or limit.args.get("count")
    if not isinstance(count, exp.Literal) or count.is_string or not count.is_int:
        return None
    return int(count.name)


def _instead(kind: ColumnKind) -> exp.Expr:
    """The replacement for a column that accompanies an answer."""
    match kind:
        case ColumnKind.SOURCE:
            return exp.Literal.string(SOURCE_MODEL)
        case ColumnKind.COST:
            return exp.cast(exp.Literal.number(0), exp.DataType.Type.DOUBLE)
        case ColumnKind.REPORT:
            return exp.cast(exp.null(), exp.DataType.Type.BIGINT)
        case _:
            return exp.cast(exp.null(), exp.DataType.Type.DOUBLE)
