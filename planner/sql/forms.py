"""Rewrites forms that clients use to the forms that the planner reads.

Forms of PostgreSQL that clients and their libraries write, as the plain forms that they mean.

    FROM tacit.public.t                    FROM public.t
    FROM current_schema() AS s             FROM (SELECT current_schema() AS s) AS s
    (a, b) = (1, 2)    ROW(a, b) IN ..     a = 1 AND b = 2
    (a, b) IS NULL                         a IS NULL AND b IS NULL
    FETCH FIRST ROW ONLY                   FETCH FIRST 1 ROWS ONLY
    city = 'Oslo' COLLATE "C"              city = 'Oslo'

This changes a tree alone, before anything looks at it.

Comparisons with the values of a list, which clients send as one parameter, as IN.

    x = ANY(ARRAY['a', 'b'])        x IN ('a', 'b')
    x <> ALL($1)                    x NOT IN (..)
    x = ANY('{a,b}'::text[])        x IN ('a', 'b')

Only lists that are written or bound are read; of an empty one nothing is a member. A list may be
one text, in PostgreSQL's form.

DECODE as other databases have it, written as CASE.

    DECODE(x, 'a', 1, NULL, 2, 0)
    CASE WHEN x IS NULL THEN 2 ELSE CASE x WHEN 'a' THEN 1 ELSE 0 END END

NULL is found by NULL, unlike in CASE. PostgreSQL's own DECODE(text, 'hex') makes bytes, and no
column has bytes. It is left as it is, and refused as other functions are.

Patterns of LIKE as one text, where clients put them together of several.

``LIKE '%' || $1 || '%'``, ``LIKE $1::varchar`` and ``LIKE UPPER('%a%')`` are how libraries write
what a person writes as one text. Whatever else a pattern is made of stays as it is, and is refused
where it is looked at.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import exp

from cube.refusals import TooLarge
from planner.sql.messages import origin, position, shown

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


_ITEM: Final = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>(?:[^\s",{}\\]|\\.)(?:(?:[^",{}\\]|\\.)*(?:[^\s",{}\\]|\\.))?))\s*[,}]""",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})", re.ASCII)


def read_lists(nodes: Iterable[exp.Expr]) -> bool:
    """Put IN in the place of every comparison with a list; whether there was any.

    Parameters
    ----------
    nodes : iterable of Expr
        All nodes of a tree.
    """
    has_read = False
    for node in nodes:
        if not isinstance(node, exp.EQ | exp.NEQ):
            continue
        is_equal = isinstance(node, exp.EQ)
        items = _items(node.expression, ("ANY", "SOME") if is_equal else ("ALL",))
        if items is None:
            continue
        found: exp.Expr = exp.false()
        if items:
            found = exp.In(this=node.this, expressions=items)
        found.meta.update(origin(node))
        node.replace(found if is_equal else exp.paren(exp.Not(this=found), copy=False))
        has_read = True
    return has_read


def _items(compared: exp.Expr, words: tuple[str, ...]) -> list[exp.Expr] | None:
    """The values of a list behind one of some words; None if it is no such list."""
    if isinstance(compared, exp.Any) and "ANY" in words:
        inner = compared.this.unnest()
    elif isinstance(compared, exp.Anonymous) and compared.name.upper() in words:
        inner = compared.expressions[0].unnest() if len(compared.expressions) == 1 else compared
    else:
        return None
    element: exp.DataType | None = None
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DType.ARRAY:
        element = inner.to.expressions[0] if inner.to.expressions else None
        inner = inner.this.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return _written_items(inner, element)
    return list(inner.expressions) if isinstance(inner, exp.Array) else None


def _written_items(text: exp.Literal, element: exp.DataType | None) -> list[exp.Expr] | None:
    """The values of a list that is one text, each cast to the type of its elements, if named."""
    try:
        items = list_items(text.name)
    except ValueError:
        return None
    values: list[exp.Expr] = []
    for item in items:
        value: exp.Expr = exp.null() if item is None else exp.Literal.string(item)
        value.meta.update(origin(text))
        is_text = element is None or element.this in exp.DataType.TEXT_TYPES
        is_number = element is not None and element.this in exp.DataType.NUMERIC_TYPES
        if item is not None and is_number and _NUMBER.fullmatch(item) is not None:
            number = exp.Literal.number(item.lstrip("+-"))
            value = exp.paren(exp.Neg(this=number), copy=False) if item[0] == "-" else number
        elif item is not None and not is_text:
            value = exp.cast(value, element.copy() if element is not None else "text")
        values.append(value)
    return values


def list_items(text: str) -> list[str | None]:
    r"""The items of a list as PostgreSQL writes it in one text, None for NULL.

    >>> list_items('{a, "b,c", NULL, "null"}')
    ['a', 'b,c', None, 'null']

    Raises
    ------
    ValueError
        If it is no list of one dimension.
    """
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}") and len(inner) > 1):
        raise ValueError(text)
    if not inner[1:-1].strip():
        return []
    found: list[str | None] = []
    place = 1
    while True:
        match = _ITEM.match(inner, place)
        if match is None:
            raise ValueError(text)
        bare = match["bare"]
        if bare is None:
            found.append(_ESCAPED.sub(r"\1", match["quoted"]))
        else:
            is_null = bare.upper() == "NULL"
            found.append(None if is_null else _ESCAPED.sub(r"\1", bare))
        place = match.end()
        if inner[place - 1] == "}":
            break
    if place != len(inner):
        raise ValueError(text)
    return found


N_COPIED_MAX = 1000  # nodes: what is compared is written out for each value that is no literal


def read_decodes(nodes: Iterable[exp.Expr]) -> bool:
    """Put CASE in the place of every DECODE with values and results; whether there was any.

    Parameters
    ----------
    nodes : iterable of Expr
        All nodes of a tree, from the root down.
    """
    found = [node for node in nodes if isinstance(node, exp.DecodeCase)]
    for node in reversed(found):  # inner ones first: what is copied is counted with them
        written = _as_case(node)
        written.meta.update(origin(node))
        node.replace(written)
    return bool(found)


def _as_case(node: exp.DecodeCase) -> exp.Expr:
    compared, *others = node.expressions
    default = others.pop() if len(others) % 2 else None
    pairs = [(value.unnest(), result) for value, result in list(pairwise(others))[::2]]
    if all(isinstance(value, exp.Null) or _is_literal(value) for value, _ in pairs):
        return _of_literals(node, compared, pairs, default)
    _check_copies(node, compared, len(pairs))
    branches = [
        exp.If(this=exp.NullSafeEQ(this=compared.copy(), expression=value), true=result)
        for value, result in pairs
    ]
    return exp.Case(ifs=branches, default=default)


def _of_literals(
    node: exp.DecodeCase,
    compared: exp.Expr,
    pairs: Sequence[tuple[exp.Expr, exp.Expr]],
    default: exp.Expr | None,
) -> exp.Expr:
    """CASE that compares once, within one that looks for NULL if that is among the values."""
    at_null = next((result for value, result in pairs if isinstance(value, exp.Null)), None)
    branches = [
        exp.If(this=value, true=result)
        for value, result in pairs
        if not isinstance(value, exp.Null)
    ]
    found: exp.Expr | None = default
    if branches:
        found = exp.Case(this=compared, ifs=branches, default=default)
    if at_null is None:
        return exp.null() if found is None else found
    _check_copies(node, compared, 2)
    is_null = exp.Is(this=compared.copy(), expression=exp.null())
    return exp.Case(ifs=[exp.If(this=is_null, true=at_null)], default=found)


def _is_literal(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg | exp.Cast):
        return _is_literal(node.this.unnest())
    return isinstance(node, exp.Literal | exp.Boolean)


def _check_copies(node: exp.DecodeCase, compared: exp.Expr, n_copies: int) -> None:
    """Refuse what would be written out many times, since nesting multiplies the copies."""
    n_nodes = sum(1 for _ in compared.walk())
    if n_copies > 1 and n_nodes * n_copies > N_COPIED_MAX:
        raise TooLarge(
            f"{shown(node)} repeats an expression of {n_nodes} words and signs for each of "
            f"{n_copies} values; {N_COPIED_MAX} words are allowed in total.",
            hint="Compute the expression in a subquery, and compare its column.",
            position=position(node),
        )


_TEXT_TYPES: Final = (exp.DType.TEXT, exp.DType.VARCHAR)
N_LETTERS_MAX: Final = 64 * 1024  # of a pattern: as long as a statement may be


def write_patterns(nodes: Iterable[exp.Expr]) -> None:
    """Replace each pattern among the nodes that is made of texts alone by the one text that it is.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("a LIKE '%' || UPPER('b'::varchar) || '%'", read="postgres")
    >>> write_patterns(tree.walk())
    >>> tree.sql()
    "a LIKE '%B%'"
    """
    for like in nodes:
        pattern = like.expression if isinstance(like, exp.Like | exp.ILike) else None
        text = None if pattern is None else constant_text(pattern)
        if pattern is not None and text is not None:
            whole = exp.Literal.string(text)
            first = pattern.find(exp.Literal)
            whole.meta.update({} if first is None else first.meta)
            like.set("expression", whole)


def constant_text(node: exp.Expr) -> str | None:  # noqa: PLR0911 - one for each form
    """The text that an expression of texts is; None if anything else is in it, or it grows."""
    match node:
        case exp.Literal():
            return node.name if node.is_string else None
        case exp.Paren():
            return constant_text(node.this)
        case exp.Cast() if node.to.this in _TEXT_TYPES and not node.to.expressions:
            return constant_text(node.this)
        case exp.Upper() | exp.Lower():
            text = constant_text(node.this)
            return text and _in_case(text, is_upper=isinstance(node, exp.Upper))
        case exp.DPipe() | exp.Concat():
            parts = [constant_text(one) for one in _chained(node)]
            known = [one for one in parts if one is not None]
            return _bounded("".join(known)) if len(known) == len(parts) else None
        case exp.Replace():
            return _replaced(node)
        case _:
            return None


def _chained(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of ||, which may be long, or of CONCAT."""
    parts: list[exp.Expr] = []
    while isinstance(node, exp.DPipe):
        parts.append(node.expression)
        node = node.this
    return [*(node.iter_expressions() if isinstance(node, exp.Concat) else [node]), *parts[::-1]]


def _replaced(node: exp.Replace) -> str | None:
    parts = (node.this, node.expression, node.args.get("replacement"))
    texts = [None if one is None else constant_text(one) for one in parts]
    text, old, new = texts
    if text is None or old is None or new is None:
        return None
    n_letters = len(text) + (text.count(old) * len(new) if old else 0)
    return None if n_letters > N_LETTERS_MAX else text.replace(old, new) if old else text


def _in_case(text: str, *, is_upper: bool) -> str:
    """A text in capitals, or without: letter by letter, as PostgreSQL does."""
    changed = (one.upper() if is_upper else one.lower() for one in text)
    return "".join(new if len(new) == 1 else old for old, new in zip(text, changed, strict=True))


def _bounded(text: str) -> str | None:
    return None if len(text) > N_LETTERS_MAX else text
