"""Parses a query into a tree, and finds the calls of set_config in it.

A query as a tree: parsed, within limits on nesting, its OPTIONS beside each SELECT.

What the tree means is for later passes.

set_config(name, value, is_local) in a query: which settings it makes, once it has run.

The catalog answers such a query as any other; a wire carries out what it sets. Nothing here changes
a setting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from cube.refusals import InvalidSql, TooLarge
from planner.sql.dialect import TACIT, TacitParser
from planner.sql.forms import read_decodes, read_lists, write_patterns, write_plainly
from planner.sql.messages import position_at, shortened, unsupported
from planner.sql.names import keep_priors
from planner.sql.nodes import every_node
from planner.sql.options import MANNER, NO_MANNER, REQUESTED, Option, read_options
from planner.sql.parameters import Parameters, bind, numbered
from planner.sql.statements import Query, commented_options, words_to_parse
from planner.sql.words import keyword
from planner.workload import RequestedTarget

N_BRACKETS_MAX = 8  # the parser reads everything before one anew, to tell a list from a text
N_NESTED_MAX = 30  # the parser recurses some twenty frames for each level; Python allows a thousand

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_DEEPER = dict.fromkeys(_OPENING, 1) | dict.fromkeys(_CLOSING, -1)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """One parsed query.

    Every SELECT in it that has OPTIONS carries what they name in its meta data, and `tree` what
    comments name.
    `has_subqueries` says whether there is any query inside `tree`, and `kinds` has the types of its
    nodes as it was parsed, so that a pass begins only where there is something for it.
    """

    tree: exp.Query
    has_subqueries: bool
    kinds: frozenset[type[exp.Expr]]


def parse(query: Query, parameters: Parameters = ()) -> QueryTree:
    """The tree of a query, with the values of its parameters if there are any.

    Raises
    ------
    InvalidSql
        If it does not parse; the message says where. If values do not fit its parameters.
    UnsupportedSql
        If there is no query between its parentheses.
    TooLarge, InvalidTarget
        If it is nested too deeply; if an option is no number in range.
    """
    every = words_to_parse(query)
    options = commented_options(every)
    words = numbered(without_limit_all([word for word in every if word.start >= query.start]))
    _check_nesting(words)
    tree = _tree(words, query.text)
    while isinstance(tree, exp.Subquery) and tree.is_wrapper:
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise unsupported(tree, "is not a SELECT", "Begin with SELECT.")
    nodes = every_node(tree)
    _check_names(nodes)
    if parameters:
        bind(tree, parameters)
        nodes = every_node(tree)
    if keep_priors(nodes):
        nodes = every_node(tree)
    if write_plainly(nodes):
        nodes = every_node(tree)
    has_lists = read_lists(nodes)
    if read_decodes(nodes) or has_lists:
        nodes = every_node(tree)
    write_patterns(nodes)
    queries = [node for node in nodes if isinstance(node, exp.Query)]
    for select in queries:
        if isinstance(select, exp.Select):
            _take_options(select)
    if options:
        _take_commented(tree, options)
    return QueryTree(tree, len(queries) > 1, frozenset(map(type, nodes)))


def without_limit_all(words: list[Token]) -> list[Token]:
    """The words without LIMIT ALL, which limits nothing."""
    places = [
        at
        for at, (one, other) in enumerate(pairwise(words))
        if len(other.text) == len("ALL") and (keyword(one), keyword(other)) == ("LIMIT", "ALL")
    ]
    left_out = {*places, *(at + 1 for at in places)}
    return [word for at, word in enumerate(words) if at not in left_out] if places else words


def _check_names(nodes: Iterable[exp.Expr]) -> None:
    """Refuse a parameter where a name belongs, which the parser takes."""
    for item in nodes:
        named = item.args["alias"] if isinstance(item, exp.Alias) else None
        if named is not None and not isinstance(named, exp.Identifier):
            raise unsupported(
                named,
                "is not a name",
                "A parameter can stand only for a value; write the name itself.",
            )


def _check_nesting(words: Iterable[Token]) -> None:
    depth = n_brackets = 0
    for word in words:
        n_brackets += word.token_type == TokenType.L_BRACKET
        if n_brackets > N_BRACKETS_MAX:
            raise TooLarge(
                f"The SQL has more than {N_BRACKETS_MAX} lists between [ and ].",
                hint="Lists are not supported: leave them out.",
                position=position_at(word.line, word.col),
            )
        depth += _DEEPER.get(word.token_type, 0)
        if depth > N_NESTED_MAX:
            raise TooLarge(
                f"The SQL is nested more than {N_NESTED_MAX} levels deep.",
                hint="Remove unneeded parentheses.",
                position=position_at(word.line, word.col),
            )


def _tree(words: list[Token], sql: str) -> exp.Expr:
    parser = TacitParser(error_level=ErrorLevel.IMMEDIATE, dialect=TACIT)
    try:
        (tree,) = (tree for tree in parser.parse(words, sql) if tree is not None)
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise InvalidSql(
            f"The SQL has a syntax error near {shortened(str(place['highlight']))}.",
            hint="Tacit uses the syntax of PostgreSQL.",
            position=position_at(place["line"], place["col"]),
        ) from None
    return tree


def _take_commented(tree: exp.Query, options: tuple[Option, ...]) -> None:
    """Fill in what a statement's own OPTIONS leave open from those in comments."""
    target, manner = read_options(options)
    tree.meta[REQUESTED] = tree.meta.get(REQUESTED, RequestedTarget()).over(target)
    if isinstance(tree, exp.Select):
        tree.meta[MANNER] = tree.meta.get(MANNER, NO_MANNER).over(manner)


def _take_options(select: exp.Select) -> None:
    """Take the privacy clause off a SELECT, and leave what it names in its meta data."""
    hint = select.args.get("hint")
    if hint is not None:
        target, manner = read_options(hint.expressions[0].args["options"])
        select.meta[REQUESTED], select.meta[MANNER] = target, manner
        select.set("hint", None)


_NAME: Final = "set_config"


class ConfigCall(NamedTuple):
    """One call: a setting's name, None if it is no constant; its value, None for the default."""

    name: str | None
    value: str | None
    is_local: bool


def config_calls(query: Query, parameters: Parameters) -> tuple[ConfigCall, ...]:
    """The calls of set_config in a query, in the order in which they stand.

    >>> config_calls(Query("SELECT set_config('jit', 'off', false)"), ())
    (ConfigCall(name='jit', value='off', is_local=False),)

    Raises
    ------
    Refused
        If the query cannot be parsed.
    """
    if _NAME not in query.text.lower():
        return ()
    calls = parse(query, parameters).tree.find_all(exp.Anonymous)
    return tuple(_call(call) for call in calls if call.name.lower() == _NAME)


def _call(call: exp.Anonymous) -> ConfigCall:
    values = [_bare(one) for one in call.expressions]
    match values:
        case [exp.Literal() as name, exp.Literal() as value, exp.Boolean() as is_local]:
            return ConfigCall(name.name, value.name, bool(is_local.this))
        case [exp.Literal() as name, exp.Null(), exp.Boolean() as is_local]:
            return ConfigCall(name.name, None, bool(is_local.this))
        case _:
            return ConfigCall(None, None, is_local=False)


def _bare(value: exp.Expr) -> exp.Expr:
    """A constant without a cast or parentheses around it."""
    while isinstance(value, exp.Cast | exp.Paren):
        value = value.this
    return value
