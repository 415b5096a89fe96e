"""Forms of PostgreSQL that clients and their libraries write, as the plain forms that they mean.

    FROM tacit.public.t                    FROM public.t
    FROM current_schema() AS s             FROM (SELECT current_schema() AS s) AS s
    (a, b) = (1, 2)    ROW(a, b) IN ..     a = 1 AND b = 2
    (a, b) IS NULL                         a IS NULL AND b IS NULL
    FETCH FIRST ROW ONLY                   FETCH FIRST 1 ROWS ONLY
    city = 'Oslo' COLLATE "C"              city = 'Oslo'

This changes a tree alone, before anything looks at it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlglot import exp

from planner.sql.messages import origin

DATABASES: Final = frozenset({"tacit", "postgres"})  # by which a client may have connected
_COLLATIONS: Final = ("C", "POSIX", "default", "ucs_basic")  # texts are compared by their bytes
N_ROW_MAX: Final = 16  # values of a row: an order of rows has as many comparisons, squared

# Functions of one value that may stand in FROM, as their names there.
_FACTS: Final = frozenset(
    {
        *("current_schema", "current_database", "current_catalog", "current_user", "session_user"),
        *("current_setting", "pg_backend_pid", "pg_is_in_recovery", "version", "now"),
        *("pg_postmaster_start_time", "current_date", "current_timestamp", "set_config"),
    }
)
_NODES: Final = {
    exp.CurrentSchema: "current_schema",
    exp.CurrentDatabase: "current_database",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentVersion: "version",
    exp.CurrentTimestamp: "now",
}
# Words that are no names of tables, and need no parentheses.
_BARE: Final = {
    "current_user": exp.CurrentUser,
    "session_user": exp.SessionUser,
    "current_catalog": exp.CurrentCatalog,
    "current_date": exp.CurrentDate,
    "current_timestamp": exp.CurrentTimestamp,
}
# What binds closer than NOT where it is printed: the NOT of a NOT IN (1, 2) = b is of the IN alone.
_TIGHTER: Final = (exp.Predicate, exp.DPipe)
_ORDERED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.LT,
    exp.LTE: exp.LT,
    exp.GT: exp.GT,
    exp.GTE: exp.GT,
}


def write_plainly(nodes: Iterable[exp.Expr]) -> bool:
    """Write the forms among all nodes of a tree plainly; whether there was any."""
    has_written = False
    for node in nodes:
        match node:
            case exp.Table():
                found = _without_database(node) or _with_function(node)
            case exp.Column() if node.args.get("catalog") is not None:
                found = _without_database(node)
            case exp.Collate() if node.expression.name in _COLLATIONS:
                node.replace(node.this)
                found = True
            case exp.Fetch() if node.args.get("count") is None:
                node.set("count", exp.Literal.number(1))
                found = True
            case exp.Predicate():
                found = _of_rows(node)
            case exp.Not() if isinstance(node.parent, _TIGHTER):
                around = exp.Paren(this=exp.null())
                node.replace(around)
                around.set("this", node)
                found = True
            case _:
                found = False
        has_written |= found
    return has_written


def _without_database(node: exp.Table | exp.Column) -> bool:
    """Leave the name of this database out, before that of a schema."""
    catalog = node.args.get("catalog")
    if not isinstance(catalog, exp.Identifier):
        return False
    name = catalog.name if catalog.args.get("quoted") else catalog.name.lower()
    if name not in DATABASES:
        return False
    node.set("catalog", None)
    return True


def _with_function(table: exp.Table) -> bool:
    """Put a SELECT of its value in the place of a function in FROM."""
    function, name = table.this, ""
    if isinstance(function, exp.Identifier):
        is_bare = not function.args.get("quoted") and not table.args.get("db")
        kind = _BARE.get(function.name.lower()) if is_bare else None
        if kind is None:
            return False
        name, function = function.name.lower(), kind()
    elif isinstance(function, exp.Anonymous):
        name = function.name.lower()
    else:
        name = _NODES.get(type(function), "")
    if name not in _FACTS:
        return False
    alias = table.args.get("alias")
    called = alias.this if alias is not None and alias.this is not None else None
    columns = alias.args.get("columns") if alias is not None else None
    label = columns[0] if columns else called or exp.to_identifier(name, quoted=True)
    function.meta.update(origin(table))
    value = exp.alias_(function.copy(), label.copy(), copy=False)
    around = exp.TableAlias(this=(called or exp.to_identifier(name, quoted=True)).copy())
    table.replace(exp.Subquery(this=exp.select(value, copy=False), alias=around))
    return True


def _of_rows(node: exp.Expr) -> bool:
    """Compare rows value by value."""
    if isinstance(node, exp.Is):
        return isinstance(node.expression, exp.Null) and _row_is_null(node)
    if isinstance(node, exp.Between):
        return _between_rows(node)
    return _put(node, _among(node) if isinstance(node, exp.In) else _beside(node))


def _among(node: exp.In) -> exp.Expr | None:
    """A row that is one of several."""
    left, rights = _row(node.this), [_row(one) for one in node.expressions]
    if left is None or not rights or any(r is None or len(r) != len(left) for r in rights):
        return None
    return exp.or_(*(_equal(left, one) for one in rights if one is not None), copy=False)


def _beside(node: exp.Expr) -> exp.Expr | None:
    """A row compared with another."""
    left, right = _row(node.this), _row(node.args.get("expression"))
    if left is None or right is None or len(left) != len(right):
        return None
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        return _equal(left, right, type(node))
    if isinstance(node, exp.NEQ | exp.NullSafeNEQ):
        kind = exp.EQ if isinstance(node, exp.NEQ) else exp.NullSafeEQ
        return exp.not_(exp.paren(_equal(left, right, kind), copy=False), copy=False)
    return _ordered(node, left, right) if type(node) in _ORDERED else None


def _put(node: exp.Expr, found: exp.Expr | None) -> bool:
    """Put an expression in the place of another, if there is one."""
    if found is None:
        return False
    whole = exp.paren(found, copy=False)
    whole.meta.update(origin(node))
    node.replace(whole)
    return True


def _row_is_null(node: exp.Is) -> bool:
    """A row is NULL if all of its values are, and not NULL if none of them is."""
    values = _row(node.this)
    if values is None:
        return False
    tests: list[exp.Expr] = [exp.Is(this=one.copy(), expression=exp.null()) for one in values]
    if node.args.get("negate"):
        tests = [exp.not_(one, copy=False) for one in tests]
    return _put(node, exp.and_(*tests, copy=False))


def _between_rows(node: exp.Between) -> bool:
    """Between two rows: not before the one, and not behind the other."""
    rows = [_row(node.args[name]) for name in ("this", "low", "high")]
    value, low, high = rows
    if value is None or low is None or high is None or node.args.get("symmetric"):
        return False
    if not len(value) == len(low) == len(high):
        return False
    from_low = exp.paren(_ordered(exp.GTE(), value, low), copy=False)
    to_high = exp.paren(_ordered(exp.LTE(), value, high), copy=False)
    return _put(node, exp.and_(from_low, to_high, copy=False))


def _row(node: exp.Expr | None) -> Sequence[exp.Expr] | None:
    """The values of a row of several; None if it is none, or has a row within."""
    inner = None if node is None else node.unnest()
    if isinstance(inner, exp.Anonymous) and inner.name.upper() != "ROW":
        return None
    if not isinstance(inner, exp.Tuple | exp.Anonymous):
        return None
    values = inner.expressions
    has_row = any(one.find(exp.Tuple, exp.Query) is not None for one in values)
    return values if 1 < len(values) <= N_ROW_MAX and not has_row else None


def _equal(
    left: Sequence[exp.Expr], right: Sequence[exp.Expr], kind: type[exp.Expr] = exp.EQ
) -> exp.Expr:
    pairs = zip(left, right, strict=True)
    return exp.and_(*(_compared(kind, one, other) for one, other in pairs), copy=False)


def _ordered(node: exp.Expr, left: Sequence[exp.Expr], right: Sequence[exp.Expr]) -> exp.Expr:
    """The first values that differ decide; the last ones may be equal, if the sign says so."""
    strict = _ORDERED[type(node)]
    last = len(left) - 1
    found: exp.Expr = _compared(type(node), left[last], right[last])
    for place in reversed(range(last)):
        one, other = left[place], right[place]
        rest = exp.and_(_compared(exp.EQ, one, other), exp.paren(found), copy=False)
        found = exp.or_(_compared(strict, one, other), exp.paren(rest), copy=False)
    return found


def _compared(kind: type[exp.Expr], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return kind(this=one.copy(), expression=other.copy())
