"""set_config(name, value, is_local) in a query: which settings it makes, once it has run.

The catalog answers such a query as any other; a wire carries out what it sets. Nothing here changes
a setting.
"""

from typing import Final, NamedTuple

from sqlglot import exp

from planner.sql.parameters import Parameters
from planner.sql.query_tree import parse
from planner.sql.statements import Query

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
