"""Bounds the size of the values that a statement's functions make, before they are called.

DuckDB is neither interrupted nor limited within one call. So a function whose result can be much
longer than what it is given is bounded: the table, and `_MADE` for lists, aggregates and the
catalog's functions, say how long its result can be, from the lengths of its arguments, and a
statement that passes a limit is refused. A name stands for the longest value that has it.

Here too: how many nodes DuckDB makes of a tree, since it and the translation to its dialect write
some arguments out several times, and nesting multiplies the copies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlglot import exp

from cube.refusals import TooLarge
from planner.meaning.table import N_CHARACTERS_OF_A_VALUE, longest_text, may_lengthen
from planner.sql import Written, children, constant_value, every_node, position, shown, unsupported

N_CHARACTERS_COLUMN: Final = 256  # of a text in a column; longer ones are few
N_CHARACTERS_MAX: Final = 2**22  # of one value
N_MATCHED_MAX: Final = 2**28  # characters of a text times characters of the text sought in it
N_A_GROUP: Final = 100  # texts that an aggregate puts together: more are made in many calls
N_SERIES_MAX: Final = 10_000  # numbers of a series
N_BYTES_AN_ITEM: Final = 16  # of a list
N_NODES_MAX: Final = 50_000  # DuckDB parses this many in half a second
N_CHARACTERS_A_NODE: Final = 8  # of a template
N_WRITTEN_OUT: Final = 4  # values of an IN that become comparisons; a longer list is looked up

LengthOf: TypeAlias = Callable[[object], int]
Copies: TypeAlias = Mapping[type[exp.Expr], Callable[[Any], int]]


def _n_compared(node: exp.In) -> int:
    values = node.expressions
    is_list = all(isinstance(value, exp.Literal) for value in values)
    return min(len(values), N_WRITTEN_OUT) if is_list else len(values)


# How often the first argument is written out again, by measurement. Copies that are simplified
# later exist for a while.
COPIES: Final[Copies] = {
    exp.Nullif: lambda _node: 2,
    exp.Between: lambda node: 3 if node.args.get("symmetric") is None else 7,
    exp.Case: lambda node: 0 if node.this is None else 1 + len(node.args["ifs"]),
    exp.In: _n_compared,
    exp.SplitPart: lambda _node: 2,
    exp.ArrayToString: lambda _node: 2,
    exp.Initcap: lambda _node: 60,  # with the list of the signs between words
    exp.DecodeCase: lambda node: len(node.expressions),
}


def copied(node: exp.Expr, copies: Copies = COPIES) -> tuple[exp.Expr, int] | None:
    """The child that is written out again when a node is read, and how often; None if none is.

    ``NULLIF(a, b)`` is ``CASE WHEN a = b THEN NULL ELSE a END``, ``CASE a WHEN b ..`` and a short
    ``a IN (b, ..)`` compare a with each, BETWEEN compares twice.
    """
    count = copies.get(type(node))
    n_copies = 0 if count is None else count(node)
    return (node.this or node.expressions[0], n_copies) if n_copies else None


def n_nodes_run(nodes: Sequence[exp.Expr], copies: Copies = COPIES) -> int:
    """How many nodes DuckDB makes of a tree, of all its nodes, with every copy counted."""
    kinds = set(map(type, nodes))
    if kinds.isdisjoint(copies) and Written not in kinds:
        return len(nodes)
    known: dict[int, int] = {}
    for node in reversed(nodes):
        n_nodes = 1 + sum([known[id(child)] for child in children(node)])
        if isinstance(node, Written):
            n_nodes += _n_copied(node, known)
        again = copied(node, copies)
        if again is not None:
            n_nodes += known.get(id(again[0]), 0) * again[1]
        known[id(node)] = n_nodes
    return known[id(nodes[0])]


def _n_copied(node: Written, known: Mapping[int, int]) -> int:
    """The nodes of a template, and of the second and further copies of its parts."""
    template = str(node.this)
    parts = ((template.count(f"{{{place}}}"), one) for place, one in enumerate(node.expressions))
    copies = sum((count - 1) * known[id(one)] for count, one in parts if count)
    return copies + len(template) // N_CHARACTERS_A_NODE


def check_printed(tree: exp.Expr) -> None:
    """Refuse a tree that is too long once it is written out, before it is.

    Raises
    ------
    TooLarge
        If it has more than `N_NODES_MAX` nodes: DuckDB reads them where nothing interrupts.
    """
    n_nodes = n_nodes_run(every_node(tree))
    if n_nodes > N_NODES_MAX:
        raise TooLarge(
            f"The expressions have {n_nodes} words and signs once their functions are expanded; "
            f"{N_NODES_MAX} are allowed.",
            hint="Nest fewer functions, or compute the inner ones in a subquery.",
        )


def check_made(nodes: Sequence[exp.Expr]) -> int:
    """Refuse a statement whose functions can make too long a text or list; its longest value.

    Parameters
    ----------
    nodes : sequence of Expr
        `every_node` of the statement.

    Raises
    ------
    TooLarge
        If one value can be longer than `N_CHARACTERS_MAX`, or if a search takes too many steps.
    UnsupportedSql
        If a function's result is not bounded by its arguments.
    """
    made = _Made()
    if _may_make(nodes):
        for node in _in_order(nodes[0]):
            made.note(node)
    return made.longest


def _in_order(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Every node after what it is made of, and after what its names stand for."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        found.append(node)
        inner = children(node)
        left += sorted(inner, key=_place) if isinstance(node, exp.Query) else inner
    return reversed(found)


def _may_make(nodes: Sequence[exp.Expr]) -> bool:
    """Whether a value may be longer than that of a column, if no part's is; or a node seeks."""
    return any(
        kind in _MADE or issubclass(kind, _SEARCHES) or may_lengthen(kind)
        for kind in {type(node) for node in nodes} - {exp.Literal}
    ) or any(
        isinstance(node, exp.Literal) and len(node.name) > N_CHARACTERS_COLUMN for node in nodes
    )


def _place(child: exp.Expr) -> int:
    """When a clause of a query is read."""
    kinds = (exp.With, exp.From, exp.Join, exp.Lateral)
    return next((n for n, kind in enumerate(kinds) if isinstance(child, kind)), len(kinds))


class _Made:
    """The longest values of a statement, in the order in which they are made."""

    def __init__(self) -> None:
        self._lengths: dict[int, int] = {}
        self._named: dict[str, int] = {}
        self.longest = N_CHARACTERS_COLUMN
        self._unnamed = N_CHARACTERS_COLUMN  # of a column that the statement does not name

    def note(self, node: exp.Expr) -> None:
        """Bound one node's value, whose parts are bounded already."""
        inner = [self._lengths[id(child)] for child in children(node)]
        if isinstance(node, exp.Column):
            length = self._named.get(node.name.casefold(), self._unnamed)
        else:
            length = _length(node, inner, self._of)
        if length > N_CHARACTERS_MAX:
            raise TooLarge(
                f"{shown(node)} can make a value of {length} characters or bytes; "
                f"{N_CHARACTERS_MAX} are allowed.",
                hint="Combine fewer or shorter texts.",
                position=position(node),
            )
        self._lengths[id(node)] = length
        self.longest = max(self.longest, length)
        self._name(node, length)

    def _of(self, node: object) -> int:
        return self._lengths.get(id(node), 0)

    def _name(self, node: exp.Expr, length: int) -> None:
        """Note what the names that a node gives stand for."""
        names = [node.alias] if isinstance(node, exp.Alias) else []
        if isinstance(node, exp.CTE | exp.Subquery | exp.Table | exp.Unnest | exp.Lateral):
            alias = node.args.get("alias")
            if isinstance(alias, exp.TableAlias):
                names = [one.name for one in alias.columns]
                names += [] if isinstance(node, exp.CTE | exp.Subquery) else [alias.name]
        for name in filter(None, names):
            folded = name.casefold()
            self._named[folded] = max(self._named.get(folded, 0), length)
        if not isinstance(node, exp.Alias | exp.Column | exp.Star) and _is_read(node):
            self._unnamed = max(self._unnamed, length)


def _is_read(node: exp.Expr) -> bool:
    """Whether it is a column of a query in FROM or WITH."""
    if not isinstance(node.parent, exp.Select) or node.arg_key != "expressions":
        return False
    around = node.parent.parent
    while isinstance(around, exp.Query):
        around = around.parent
    return isinstance(around, exp.CTE | exp.From | exp.Join | exp.Lateral)


_NO_TEXT: Final = (
    *(exp.Predicate, exp.Connector, exp.Not, exp.Length, exp.StrPosition, exp.StartsWith),
    *(exp.Extract, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Pow, exp.Count),
    *(exp.Identifier, exp.TableAlias, exp.DataType, exp.ArraySize, exp.Rank, exp.RowNumber),
)
_SEARCHES: Final = (
    *(exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.StrPosition, exp.Replace),
    *(exp.RegexpReplace, exp.Trim, exp.Translate),
)


def _length(node: exp.Expr, inner: list[int], of: LengthOf) -> int:
    """The most characters of a node's value; of a list, the most bytes."""
    if isinstance(node, _SEARCHES):
        _check_matched(node, of)
    if isinstance(node, _NO_TEXT):
        return 0
    bound = _MADE.get(type(node))
    return longest_text(node, inner) if bound is None else bound(node, inner, of)


def _grouped(_node: exp.Expr, inner: list[int], _of: LengthOf) -> int:
    return N_A_GROUP * sum(length + N_BYTES_AN_ITEM for length in inner)


def _printed(_node: exp.Expr, inner: list[int], _of: LengthOf) -> int:
    return sum(max(length, N_CHARACTERS_OF_A_VALUE) for length in inner)


def _listed(_node: exp.Expr, inner: list[int], _of: LengthOf) -> int:
    """A list of values; of those of several rows, one: an aggregate makes them in many calls."""
    return sum(length + N_BYTES_AN_ITEM for length in inner)


def _cut(_node: exp.Expr, inner: list[int], _of: LengthOf) -> int:
    """A text as a list, perhaps of its characters."""
    return max(inner, default=0) * (1 + N_BYTES_AN_ITEM)


def _joined(node: exp.Expr, _inner: list[int], of: LengthOf) -> int:
    """A list as a text, with something between two items."""
    n_items = 1 + of(node.this) // N_BYTES_AN_ITEM
    return 2 * of(node.this) + n_items * (
        of(node.args.get("expression")) + of(node.args.get("null"))
    )


def _numbers(node: exp.Expr, _inner: list[int], _of: LengthOf) -> int:
    return _n_numbers(node) * N_BYTES_AN_ITEM


def _called(node: exp.Expr, inner: list[int], _of: LengthOf) -> int:
    """A function of the catalog: mostly something that is looked up, of some length."""
    times = _TIMES.get(node.name.casefold(), 0)
    return max(N_CHARACTERS_COLUMN, times * max(inner, default=0) + N_BYTES_AN_ITEM)


# By how much these functions of the catalog lengthen what they are given.
_TIMES: Final = {"quote_ident": 2, "parse_ident": 1 + N_BYTES_AN_ITEM, "set_config": 1}


# How long the result of a function can be, where it can be longer than each of its arguments.
_MADE: Final[Mapping[type[exp.Expr], Callable[[exp.Expr, list[int], LengthOf], int]]] = {
    exp.Literal: lambda node, _inner, _of: len(node.name) if node.args["is_string"] else 0,
    exp.Anonymous: _called,
    exp.Array: _listed,
    exp.ArrayAgg: _listed,
    exp.ArrayAppend: _listed,
    exp.ArrayConcat: _listed,
    exp.ArrayToString: _joined,
    exp.ExplodingGenerateSeries: _numbers,
    exp.Format: _printed,
    exp.GenerateSeries: _numbers,
    exp.GroupConcat: _grouped,
    exp.List: _listed,
    exp.Pad: lambda node, inner, _of: max(_whole(node, node.args["expression"]), *inner),
    exp.RegexpSplit: _cut,
    exp.Repeat: lambda node, inner, _of: max(inner) * _whole(node, node.args["times"]),
    exp.StringToArray: _cut,
    exp.ToChar: lambda node, inner, of: max(inner) + 3 * of(node.args.get("format")),
}


def _check_matched(node: exp.Expr, of: LengthOf) -> None:
    """Refuse a search that takes the product of two long texts."""
    text, sought = of(node.this), of(node.args.get("expression") or node.args.get("substr"))
    if (text + 1) * (sought + 1) > N_MATCHED_MAX:
        raise TooLarge(
            f"{shown(node)} searches for up to {sought} characters in a text of up to {text} "
            "characters, which takes too long.",
            hint="Search for a shorter text, or in a shorter text.",
            position=position(node),
        )


def _n_numbers(node: exp.Expr) -> int:
    """How many numbers a series has: both ends are numbers, or ends of a list."""
    start, end, step = (node.args.get(name) for name in ("start", "end", "step"))
    if isinstance(end, exp.ArraySize) or _is_end(end):
        return N_A_GROUP
    first, last = _whole(node, start), _whole(node, end)
    n_numbers = abs(last - first) + 1
    if step is not None and _whole(node, step) == 0:
        n_numbers = N_SERIES_MAX + 1
    if n_numbers > N_SERIES_MAX:
        raise TooLarge(
            f"{shown(node)} makes more than {N_SERIES_MAX} numbers.",
            hint="Use a shorter series.",
            position=position(node),
        )
    return n_numbers


def _is_end(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.casefold() in _ENDS


_ENDS: Final = frozenset({"array_upper", "array_lower", "array_length", "cardinality"})


def _whole(node: exp.Expr, given: object) -> int:
    """A constant whole number; how long a result is depends on it."""
    if _is_end(given):
        return 1
    number = constant_value(given) if isinstance(given, exp.Expr) else None
    if number is None or number.denominator != 1:
        raise unsupported(
            node,
            "makes a result whose length does not follow from the SQL text",
            "Write its ends and lengths as whole numbers.",
        )
    return int(number)
